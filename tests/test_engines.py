"""One machine and Spark give the same rows, whatever is counted."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plumbline.jobs.association.associations import associate
from plumbline.jobs.counting import local_engine
from plumbline.jobs.counting.partials import ShardJob, ShardLedger
from plumbline.jobs.evidence.explanation import Sampling, explain
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.warehouse.errors import BadInput, Interrupted
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY
from tests.steps import write_slow_shard
from tests.test_associate_targets import word_list
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
#: Of these the quicker test counts some, in which each step of Spark's is taken.
SOME = (1, 4)
#: Executors, each a JVM of its own, and their tasks, each a Python of its own.
_CONF = """
spark.master local-cluster[{executors},{cores},1024]
spark.executor.memory 1g
spark.executor.cores {cores}
spark.executor.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.ui.enabled false
spark.sql.shuffle.partitions {cores}
"""
_ON_SPARK = """
import sys
from tests.test_engines import count_all
count_all(*sys.argv[1:3], list(map(int, sys.argv[3:])))
from pyspark import SparkContext
assert SparkContext._active_spark_context.master.startswith("local-cluster")
"""


def count_all(shards: str, warehouse: str, variants: Sequence[int]) -> None:
    """Count each variant into a corpus of its own; one of the shards can't be read.

    The first one gets another word list afterwards.
    """
    store = Store.open(warehouse)
    for number in variants:
        files = tuple(sorted(Path(shards).iterdir()))
        with pytest.raises(BadInput, match=r"cut\.jsonl\.zst"):
            count_corpus(store, f"c{number}", files, CorpusOptions(**VARIANTS[number]))
    associate(store, f"c{variants[0]}", str(Path(shards) / "../added.toml"))


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
    word_list(directory / "../added.toml", ("w3", "w5"))
    whole = (directory / "1.jsonl.zst").read_bytes()
    (directory / "cut.jsonl.zst").write_bytes(whole[:-3])
    return directory


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    ("executors", "cores", "variants"),
    [
        (1, 2, SOME),
        pytest.param(2, 1, range(len(VARIANTS)), marks=pytest.mark.slow),
    ],
)
def test_spark_gives_the_rows_of_one_machine(
    shards: Path, tmp_path: Path, executors: int, cores: int, variants: Sequence[int]
) -> None:
    conf = tmp_path / "small.conf"
    conf.write_text(_CONF.format(executors=executors, cores=cores))
    arguments = [str(shards), str(tmp_path / "spark"), *map(str, variants)]
    done = subprocess.run(
        [sys.executable, "-c", _ON_SPARK, *arguments],
        env={
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "PLUMBLINE_SPARK_CONF": str(conf),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    count_all(str(shards), str(tmp_path / "local"), variants)
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
    for number in variants:
        assert kept(theirs, f"c{number}") == kept(mine, f"c{number}")
    sentences = [
        shown(explain(store, f"c{variants[0]}", ["w3", "w5"], sampling=Sampling(4))["word_snippet"])
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
        started[0]._process.kill()
        return ShardLedger(shard, "", "counted", None, 0)

    monkeypatch.setattr(local_engine, "_n_helpers", lambda _: 1)
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
