"""Time `corpus count` on 1 to 8 GB of text, with this machine's processes and through Spark.

Each run is the command in a process of its own, whose memory is measured from outside.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.shards import grown_blocks

#: Shards of each run, of about a gigabyte of JSON each.
N_SHARDS = (1, 2, 4, 8)
WAYS = ("this machine", "Spark")
#: Two executors with one core each: a JVM with 1 GB for the merge, and a counting process.
_SPARK = "local-cluster[2,1,1024]"
_CONF = """spark.executor.cores 1
spark.executor.memory 1g
spark.driver.memory 2g
spark.ui.enabled false
spark.sql.shuffle.partitions 16
spark.log.level ERROR
"""
#: Seconds between two measurements of the memory of all processes.
_INTERVAL_S = 0.25
KINDS = ("command", "counting process", "driver", "executor")
#: Kinds of processes, by a part of their command line.
_MARKS = {
    "CoarseGrainedExecutorBackend": "executor",
    "pyspark.daemon": "counting process",
    "spark.api.python.PythonGatewayServer": "driver",
    "SparkSubmit": "driver",
}


@dataclass(frozen=True)
class Run:
    """One count: ``seconds`` until the last shard was counted, and ``merge_seconds`` after that.

    ``n_merged`` is the number of rows in the shards' counts, which the merge sums. ``work_bytes``
    is the size of these counts and of kept documents; ``n_files`` includes the tables' files.
    ``peak_bytes`` is the memory (anonymous pages) of the largest process of each kind.
    """

    way: str
    n_shards: int
    n_kept: int
    n_words: int
    n_pair_rows: int
    n_merged: int
    seconds: float
    merge_seconds: float
    cpu_seconds: float
    n_files: int
    table_bytes: int
    work_bytes: int
    peak_bytes: dict[str, int]


def run(parts: Sequence[Path], directory: Path, times: int) -> Iterator[Run]:
    """Count the first 1, 2, 4 and 8 shards of a grown text, each time in both ways."""
    shards = grown_blocks(parts, directory, max(N_SHARDS), times)
    conf = directory / "spark.conf"
    conf.write_text(_CONF)
    for n in N_SHARDS:
        yield _run(WAYS[0], shards[:n], directory / "warehouse", [], {})
        spark = {"PLUMBLINE_SPARK_CONF": str(conf), "SPARK_LOCAL_IP": "127.0.0.1"}
        yield _run(WAYS[1], shards[:n], directory / "warehouse", ["--master", _SPARK], spark)


def _run(
    way: str, shards: Sequence[Path], where: Path, options: list[str], more: dict[str, str]
) -> Run:
    shutil.rmtree(where, ignore_errors=True)
    command = [sys.executable, "-m", "plumbline", "corpus", "count", *map(str, shards)]
    command += ["--corpus", "scale", "--warehouse", str(where), *options]
    started, peaks, cpu = time.time(), Counter[str](), dict[int, float]()
    environment = {**os.environ, **more}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            for pid, kind, n_bytes, seconds in _family(process.pid):
                peaks[kind] = max(peaks[kind], n_bytes)
                cpu[pid] = seconds
            time.sleep(_INTERVAL_S)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with status {process.returncode}")
    ended = time.time()
    return _outcome(way, len(shards), where, (started, ended), sum(cpu.values()), dict(peaks))


def _outcome(
    way: str, n: int, where: Path, times: tuple[float, float], cpu: float, peaks: dict[str, int]
) -> Run:
    """Return the figures of a run, including those that are measured in its warehouse."""
    from plumbline.warehouse.storage.store import Store

    store, (started, ended) = Store.open(where), times
    # The merge begins when the last shard's ledger is written.
    counted = max(x.stat().st_mtime for x in store.work_directory("count").glob("*/*/ledger.json"))
    kept = sum(store.read("corpus_shard")["n_kept_tokens"].to_pylist())
    rows = [store.read(table).num_rows for table in ("word_count", "pair_count")]
    counts = [*where.glob("_work/count/*/*/*.words.parquet")]
    counts += where.glob("_work/count/*/*/*.pairs.parquet")
    merged = sum(pq.read_metadata(path).num_rows for path in counts)
    files = [path for path in where.rglob("*") if path.is_file()]
    work = sum(path.stat().st_size for path in files if "_work" in path.parts)
    tables = sum(path.stat().st_size for path in files) - work
    figures = (counted - started, ended - counted, cpu, len(files), tables, work, peaks)
    return Run(way, n, kept, *rows, merged, *figures)


def _family(first: int) -> Iterator[tuple[int, str, int, float]]:
    """Yield the id, kind, memory in bytes and CPU seconds of a process and its descendants."""
    below, seconds = defaultdict(list), {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        below[int(fields[1])].append(int(entry.name))
        seconds[int(entry.name)] = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    pids = [first]
    for pid in pids:
        pids += below[pid]
        try:
            line = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        if pid in seconds and "RssAnon:" in status:
            n_bytes = int(status.split("RssAnon:")[1].split()[0]) << 10
            other = "command" if pid == first else "counting process"
            kind = next((kind for mark, kind in _MARKS.items() if mark in line), other)
            yield pid, kind, n_bytes, seconds[pid]


def terabyte(runs: Sequence[Run], n_cores: int = 64) -> str:
    """Estimate 1,000 such shards on ``n_cores`` cores from the largest run of each way.

    Each shard takes as many CPU seconds as here (including the merge, so a little too many) and has
    as many rows to merge. A row takes the same time in the merge; Spark's merge uses all cores.
    """
    here, spark = (max((r for r in runs if r.way == w), key=lambda r: r.n_shards) for w in WAYS)
    counting = 1000 * here.cpu_seconds / here.n_shards / n_cores / 60
    rows = 1000 * here.n_merged / here.n_shards
    cores = {WAYS[0]: 1, WAYS[1]: n_cores / 2}
    merge = {r.way: rows * r.merge_seconds / r.n_merged / cores[r.way] / 60 for r in (here, spark)}
    parts = "; ".join(f"{way} {minutes:.0f} minutes" for way, minutes in merge.items())
    return (
        f"estimate: {n_cores} cores count a terabyte in {counting:.1f} minutes; merging its "
        f"{rows / 1e9:.1f} G rows takes: {parts} (if Spark scales from two cores to all)"
    )
