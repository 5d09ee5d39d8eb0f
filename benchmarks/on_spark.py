"""Time counting the same shards with the kernel alone, with processes, and through Spark."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plumbline.jobs.kernel.corpus_options import CorpusOptions


@dataclass(frozen=True)
class Way:
    """A way to count the shards: wall seconds of counting and of the merge, and CPU seconds."""

    name: str
    n_cores: int
    seconds: float
    merge_seconds: float
    cpu_seconds: float


def run(shards: Sequence[Path], targets: str = "gendered") -> tuple[list[Way], int]:
    """Time counting all shards in five ways; also return their kept tokens.

    All shards are read once before. Spark's session and its Python workers are started first, as in
    the middle of a long job. The kernel alone runs first and last; its time is the mean of both.
    """
    from plumbline.jobs.counting.shard import count_shard
    from plumbline.jobs.kernel.corpus_options import CorpusOptions

    options = CorpusOptions(targets=targets)
    for shard in shards:
        shard.read_bytes()

    def count(shard: Path) -> int:
        return count_shard(shard, options.listed, options, lambda kind, table: None).n_kept_tokens

    def alone() -> tuple[float, float, int]:
        started, cpu = time.perf_counter(), time.process_time()
        kept = sum(map(count, shards))
        return time.perf_counter() - started, time.process_time() - cpu, kept

    count(shards[0])
    before, cpu, kept = alone()
    ways = [
        _counted(shards, options, n_cores, spark) for spark in (False, True) for n_cores in (1, 2)
    ]
    seconds = statistics.median([before, alone()[0]])
    return [Way("kernel alone", 1, seconds, 0.0, cpu), *ways], kept


def _counted(shards: Sequence[Path], options: CorpusOptions, n_cores: int, spark: bool) -> Way:
    from plumbline.jobs.ingest.count_corpus import count_corpus
    from plumbline.warehouse.storage.store import Store

    master = f"local[{n_cores}]" if spark else None
    with tempfile.TemporaryDirectory() as directory, _cores(n_cores), _session(master, n_cores):
        store = Store.open(Path(directory) / "warehouse")
        cpu, started = _cpu_seconds(), time.time()
        count_corpus(store, "bench", shards, options, master=master)
        ended, cpu = time.time(), _cpu_seconds() - cpu
        # The merge begins when the last shard's ledger is written.
        ledgers = store.work_directory("count").glob("*/*.json")
        counted_at = max(ledger.stat().st_mtime for ledger in ledgers)
    name = f"{'Spark' if spark else 'this machine'}, {n_cores} core(s)"
    return Way(name, n_cores, counted_at - started, ended - counted_at, cpu)


@contextmanager
def _cores(n_cores: int) -> Iterator[None]:
    """Limit this process and what it starts to some cores for the block."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:n_cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def _session(master: str | None, n_cores: int) -> Iterator[None]:
    """Start Spark for the block, with the kernel loaded in each worker, if there is a master."""
    if master is None:
        yield
        return
    from plumbline.jobs.spark.spark_session import spark_session, stop_session

    context = spark_session(master).sparkContext
    context.parallelize(range(n_cores), n_cores).map(_loaded).collect()
    yield
    stop_session()


def _loaded(n: int) -> int:
    """Load the kernel into a worker."""
    from plumbline.jobs.kernel.counter import warm_up

    warm_up()
    time.sleep(2.0)  # so that each worker gets one call
    return n


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process, of its descendants, and of children that ended."""
    ticks: dict[int, tuple[int, int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    total, below = 0, [os.getpid()]
    while below:
        parent = below.pop()
        total += ticks[parent][1]
        below += [pid for pid, (above, _) in ticks.items() if above == parent]
    return total / os.sysconf("SC_CLK_TCK")
