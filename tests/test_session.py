"""The Spark session: which settings, which master, what an executor must see."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from plumbline.jobs.counting import corpus as count
from plumbline.jobs.counting.corpus import CountRequest, count_corpus
from plumbline.jobs.spark.session import losses_named, read_conf, settings_for, spark_session
from plumbline.warehouse.errors import Interrupted, UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY

VARIABLE = "PLUMBLINE_SPARK_CONF"


@pytest.fixture(autouse=True)
def unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def test_a_file_of_ones_own_is_named_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "own.conf"
    file.write_text("# why\nspark.master   yarn\n\nspark.executor.memory\t1g\n")
    assert read_conf(str(file)) == {"spark.master": "yarn", "spark.executor.memory": "1g"}
    monkeypatch.setenv(VARIABLE, str(file))
    assert settings_for(None, {}, {}) == read_conf(str(file))
    with pytest.raises(UsageProblem, match=r"other\.conf.*only local, cluster and files"):
        read_conf(str(tmp_path / "other.conf"))


def test_the_master_chooses_the_file() -> None:
    local, cluster = read_conf("local"), read_conf("cluster")
    assert settings_for(None, {}, {}) == local
    assert settings_for("local[3]", {}, {}) == {**local, "spark.master": "local[3]"}
    for master in ("spark://host:7077", "yarn", "k8s://https://host", "local-cluster[2,1,2048]"):
        assert settings_for(master, {}, {}) == {**cluster, "spark.master": master}
        assert settings_for(None, {}, {"spark.master": master}) == settings_for(master, {}, {})


def test_what_spark_submit_was_given_stands_before_the_file() -> None:
    submitted = {"spark.master": "yarn", "spark.executor.memory": "9g", "spark.yarn.queue": "q"}
    settings = settings_for(None, {}, submitted)
    assert settings.items() >= submitted.items()
    assert settings["spark.executor.cores"] == read_conf("cluster")["spark.executor.cores"]
    assert settings_for(None, {"spark.yarn.queue": "r"}, submitted)["spark.yarn.queue"] == "r"
    with pytest.raises(UsageProblem, match="master local: Spark already runs on yarn"):
        settings_for("local", {}, submitted)


def test_a_cluster_without_a_master_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n')
    code = "import sys; from plumbline.pipelines.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = ["corpus", "count", "a.jsonl", "--corpus", "c", "--warehouse", "w"]
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, VARIABLE: "cluster", "PYTHONPATH": str(REPOSITORY)},
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"error: {VARIABLE} cluster: names no master "
        "(give --master, or name a file with spark.master in it)\n"
    )


@pytest.mark.spark
def test_a_session_that_runs_keeps_its_master() -> None:
    session = spark_session()
    assert spark_session(session.sparkContext.master) is session
    with pytest.raises(UsageProblem, match=r"master yarn: Spark already runs on local\["):
        spark_session("yarn")


def test_a_java_that_is_gone_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = subprocess.Popen([sys.executable, "-S", "-c", ""])
    gone.wait()
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=gone))
    with pytest.raises(Interrupted, match="Spark: its Java process has gone"), losses_named():
        raise ConnectionRefusedError(111, "Connection refused")
    with pytest.raises(UsageProblem), losses_named():
        raise UsageProblem("warehouse", "not there")


@pytest.mark.spark
def test_a_worker_that_dies_is_one_line_and_wrong_code_is_not() -> None:
    numbers = spark_session().sparkContext.parallelize([0, 1], 2)
    said = r"Python worker exited.*same command again"
    with pytest.raises(Interrupted, match=said) as caught, losses_named():
        numbers.map(lambda _: os.kill(os.getpid(), signal.SIGKILL)).collect()
    assert caught.value.exit_code == 5 and len(str(caught.value)) < 400
    with pytest.raises(Exception, match="ZeroDivisionError") as wrong, losses_named():
        numbers.map(lambda n: 1 // (n - n)).collect()
    assert not isinstance(wrong.value, Interrupted)


@pytest.mark.spark
def test_an_executor_that_does_not_see_the_warehouse_is_named(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written then: the tables stay as they were."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text('{"text": "she ran"}\n')
    before = count_corpus(store, CountRequest("c", (tmp_path / "a.jsonl",))).row
    monkeypatch.setattr(count, "directory", lambda *_: tmp_path / "elsewhere")
    both = CountRequest("c", (tmp_path / "a.jsonl", tmp_path / "b.jsonl"))
    with pytest.raises(UsageProblem, match=f"not there on {socket.gethostname()} .*file system"):
        count_corpus(store, both, master=spark_session().sparkContext.master)
    assert store.read("corpus").to_pylist() == [before]
    assert store.read("word_count").num_rows == 2
