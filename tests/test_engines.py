"""One machine and Spark give the same rows, whatever is counted."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plumbline.jobs.counting import local_engine
from plumbline.jobs.counting.merge import PairSum
from plumbline.jobs.counting.partials import ShardJob, ShardLedger
from plumbline.jobs.evidence.concordance import Sampling
from plumbline.jobs.evidence.explanation import explain
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.warehouse.errors import BadInput, Interrupted, disk_problems
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY
from tests.steps import python, write_slow_shard
from tests.test_evidence import kept
from tests.test_why_sentences import shown

#: Everything that decides which rows there are, once with each value.
VARIANTS: list[dict[str, Any]] = [
    {},
    {"rule": "windows", "window": 5},
    {"min_count": 4},
    {"targets": "all"},
    {"targets": "all", "min_count": 4, "rule": "windows", "language": "es"},
    {"targets": "she-he", "min_count": 10**6},
]
TABLES = ("word_count", "pair_count", "corpus", "corpus_shard", "reject", "word_list")
#: Two executors, each a JVM of its own, and their tasks, each a Python of its own.
_CONF = """
spark.master local-cluster[2,1,1024]
spark.executor.memory 1g
spark.executor.cores 1
spark.executor.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.ui.enabled false
spark.sql.shuffle.partitions 1
"""
_ON_SPARK = """
import sys
from tests.test_engines import count_all
count_all(*sys.argv[1:])
from pyspark import SparkContext
assert SparkContext._active_spark_context.master.startswith("local-cluster")
"""


def count_all(shards: str, warehouse: str) -> None:
    """Count each variant into a corpus of its own; one of the shards can't be read."""
    store = Store.open(warehouse)
    for number, variant in enumerate(VARIANTS):
        files = tuple(sorted(Path(shards).iterdir()))
        with pytest.raises(BadInput, match=r"cut\.jsonl\.zst"):
            count_corpus(store, f"c{number}", files, CorpusOptions(**variant))


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shards with rejected lines, two of the same content, an empty one and one cut short."""
    rng = np.random.default_rng(11)
    vocabulary = np.array([f"w{k}" for k in range(300)] + ["she", "he", "her", "été"] * 9)
    directory = tmp_path_factory.mktemp("shards")
    for number in range(3):
        words = rng.choice(vocabulary, (60, 25))
        write_jsonl_zst(directory / f"{number}.jsonl.zst", map(" ".join, words))
    (directory / "twin.jsonl.zst").write_bytes((directory / "0.jsonl.zst").read_bytes())
    (directory / "bad.jsonl").write_text('{"text": "she ran"}\nnot json\n\n{"text": 3}\n')
    (directory / "empty.jsonl").write_text("")
    whole = (directory / "1.jsonl.zst").read_bytes()
    (directory / "cut.jsonl.zst").write_bytes(whole[:-3])
    return directory


@pytest.mark.slow
@pytest.mark.spark
def test_spark_gives_the_rows_of_one_machine(shards: Path, tmp_path: Path) -> None:
    conf = tmp_path / "small.conf"
    conf.write_text(_CONF)
    env = {**os.environ, "PLUMBLINE_SPARK_CONF": str(conf), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = python(_ON_SPARK, str(shards), str(tmp_path / "spark"), env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    count_all(str(shards), str(tmp_path / "local"))
    ours, sparks = connect(tmp_path / "local"), connect(tmp_path / "spark")
    for table in TABLES:
        columns = ours.sql(f"FROM {table}").columns
        left_out = ", ".join({"seconds", "run_id"} & set(columns))
        exclude = f" EXCLUDE ({left_out})" if left_out else ""
        query = f"SELECT *{exclude} FROM {table} ORDER BY ALL"
        rows = ours.sql(query).fetchall()
        assert rows == sparks.sql(query).fetchall(), table
        assert rows, table
    theirs, mine = (Store.open(tmp_path / name) for name in ("spark", "local"))
    for number in range(len(VARIANTS)):
        assert kept(theirs, f"c{number}") == kept(mine, f"c{number}")
    sentences = [
        shown(explain(store, "c0", ["w3", "w5"], sampling=Sampling(4))["word_snippet"])
        for store in (theirs, mine)
    ]
    assert sentences[0] == sentences[1] != []


def test_a_lost_helper_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []

    class Noted(local_engine._Helper):
        def __init__(self, job: ShardJob) -> None:
            super().__init__(job)
            self.busy = threading.Event()
            started.append(self)

        def count(self, shard: str) -> ShardLedger:
            self.busy.set()
            return super().count(shard)

    def killing(job: ShardJob, shard: str) -> ShardLedger:
        assert started[0].busy.wait(60)
        started[0].process.kill()
        return ShardLedger(shard, "", "counted", None, 0)

    monkeypatch.setattr(local_engine, "n_processes", lambda _: 2)
    monkeypatch.setattr(local_engine, "_Helper", Noted)
    monkeypatch.setattr(ShardJob, "count", killing)
    names = [str(tmp_path / f"{n}.jsonl") for n in range(2)]
    for name in names:
        write_slow_shard(Path(name))
    (tmp_path / "partials").mkdir()
    options = CorpusOptions(targets="she-he")
    job = ShardJob(str(tmp_path / "partials"), options.listed, options)
    with pytest.raises(Interrupted, match=r"ended with status -9 .*same command again") as lost:
        local_engine.LocalEngine(tmp_path, 1 << 30).count(names, job, print)
    assert lost.value.exit_code == 5


ORPHANED = """
import os, sys
from pathlib import Path
from plumbline.jobs.counting.local_engine import _Helper
from plumbline.jobs.counting.partials import ShardJob
from plumbline.jobs.kernel.corpus_options import CorpusOptions

options = CorpusOptions(targets="she-he")
job = ShardJob(sys.argv[1], options.listed, options)
helper = _Helper(job)
print(helper.process.pid, flush=True)
helper.count(sys.argv[2])
"""


def test_a_helper_ends_with_a_killed_parent(tmp_path: Path) -> None:
    """In the middle of a shard, and it prints nothing."""
    shard, parts = tmp_path / "a.jsonl.zst", tmp_path / "partials"
    parts.mkdir()
    write_slow_shard(shard)
    parent = subprocess.Popen(
        [sys.executable, "-c", ORPHANED, str(parts), str(shard)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert parent.stdout and parent.stderr
    parent.stdout.readline()
    while not list(parts.iterdir()):
        assert parent.poll() is None
        time.sleep(0.01)
    parent.kill()
    assert parent.stderr.read() == b""  # until the helper has ended, too
    assert not list(parts.glob("*/ledger.json")), "it counted to the end"
    parent.communicate()


@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("memory_bytes", [1, 64 * 100, 1 << 30])
def test_pairs_are_the_same_in_any_memory(
    tmp_path: Path, both_ways: bool, memory_bytes: int
) -> None:
    """A range per row, some ranges, one range; compared with DuckDB's sums of the same rows."""
    rng = np.random.default_rng(5)
    words = [f"w{k:02}" for k in range(20)]
    files = [tmp_path / f"{n}.parquet" for n in (0, 1, 1)]
    for file in files:
        draw = {name: rng.choice(words, 200) for name in ("word", "target")}
        pq.write_table(pa.table({**draw, "n_pair": rng.integers(1, 1 << 40, 200)}), file)
    stay = [word for word in words if word not in ("w00", "w11", "w19")]
    (tmp_path / "work").mkdir()
    pairs = PairSum(
        files, pa.array(stay, pa.large_string()), both_ways, tmp_path / "work", memory_bytes
    )
    found = pa.Table.from_batches(pairs.sums(30))
    other = "UNION ALL SELECT target, word, n_pair FROM rows WHERE word <> target"
    expected = duckdb.execute(
        f"""
        WITH rows AS (FROM read_parquet($files)),
        ways AS (FROM rows {other if both_ways else ""})
        SELECT word, target, sum(n_pair)::BIGINT AS n_pair FROM ways
        WHERE word IN $stay AND target IN $stay GROUP BY ALL ORDER BY ALL
        """,
        {"files": list(map(str, files)), "stay": stay},
    ).fetchall()
    assert list(map(tuple, (row.values() for row in found.to_pylist()))) == expected
    assert (len(list((tmp_path / "work").iterdir())) > 1) == (memory_bytes < 1 << 30)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_disk_that_fills_during_the_merge_is_named(tmp_path: Path) -> None:
    rows = {"word": ["tea"], "target": ["she"], "n_pair": [2]}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    (tmp_path / "run-0").symlink_to("/dev/full")
    words = pa.array(["she", "tea"], pa.large_string())
    pairs = PairSum([tmp_path / "a.parquet"], words, True, tmp_path, 1 << 20)
    with pytest.raises(BadInput, match="No space left"), disk_problems(tmp_path):
        next(pairs.sums(10))
