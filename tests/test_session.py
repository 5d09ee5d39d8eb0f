"""The Spark session: which settings, which master, what an executor must see."""

import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PythonException

from plumbline.jobs.ingest import count_corpus as count
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.jobs.spark import engine
from plumbline.jobs.spark.spark_session import (
    one_line_losses,
    read_conf,
    settings_for,
    spark_session,
)
from plumbline.warehouse.errors import Interrupted, UsageProblem
from plumbline.warehouse.storage.store import Store

VARIABLE = "PLUMBLINE_SPARK_CONF"


@pytest.fixture(autouse=True)
def unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def test_what_spark_submit_was_given_stands_before_the_file() -> None:
    submitted = {"spark.master": "yarn", "spark.executor.memory": "9g", "spark.yarn.queue": "q"}
    settings = settings_for(None, submitted)
    assert settings.items() >= submitted.items()
    assert settings["spark.executor.cores"] == read_conf("cluster")["spark.executor.cores"]
    alone = settings_for(None, {})
    assert alone["spark.driver.bindAddress"] == alone["spark.driver.host"] == "127.0.0.1"
    with pytest.raises(UsageProblem, match="master local: Spark already runs on yarn"):
        settings_for("local", submitted)


_SPARK = "org.apache.spark.SparkException"


def java_error(kind: str, message: str) -> Py4JJavaError:
    """What py4j raises for an exception of Java, as far as it is looked at."""
    thrown = SimpleNamespace(
        getClass=lambda: SimpleNamespace(getName=lambda: kind), getMessage=lambda: message
    )
    error = Py4JJavaError.__new__(Py4JJavaError)
    error.java_exception = thrown
    return error


def failed_job(reason: str) -> Py4JJavaError:
    """What ends a job of which one task failed four times."""
    job = "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times"
    task = "Lost task 0.3 in stage 1.0 (TID 6) (10.0.0.1 executor 3)"
    return java_error(_SPARK, f"{job}, most recent failure: {task}: {reason}")


_CRASHED = f"{_SPARK}: Python worker exited unexpectedly (crashed). Consider setting"
_EXITED = (
    "ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: Command"
)
_NO_MODULE = f"{_SPARK}: \nError from python worker:\n  python: No module named x"
_HEAP = "java.lang.OutOfMemoryError: Java heap space"
_NO_FOOTER = "[FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER] Encountered error while reading file"
#: What Spark 4.3 raises, with the loss that it is, None where it is a defect.
RAISED = [
    (failed_job(f"{_CRASHED}\n\tat"), "Python worker exited"),
    (failed_job(f"{_EXITED} exited with code 137\nDriver stacktrace:"), "ExecutorLost.*137"),
    (failed_job("org.apache.spark.shuffle.MetadataFetchFailedException: x"), "FetchFailed"),
    (java_error(*_HEAP.split(": ")), "Java heap space"),
    (java_error(_SPARK, "Job 3 cancelled because SparkContext was shut down"), "shut down"),
    (Py4JNetworkError("Answer from Java side is empty"), "Java process has ended"),
    (Py4JError("An error occurred while calling o1.x"), "Java process has ended"),
    (Py4JError("An error occurred while calling o1.x. Trace:\npy4j.Py4JException"), None),
    (failed_job(_NO_MODULE), None),
    (failed_job("java.lang.NullPointerException\n\tat ExecutorLostFailure"), None),
    (failed_job("java.io.IOException: No space left on device\n\tat"), None),
    (java_error(_SPARK, _NO_FOOTER), None),
    (PythonException("ValueError: Python worker exited unexpectedly"), None),
    (ValueError("ExecutorLostFailure"), None),
]


@pytest.mark.parametrize(("error", "said"), RAISED)
def test_only_a_loss_is_called_one(error: Exception, said: str | None) -> None:
    with pytest.raises(Interrupted if said else type(error), match=said), one_line_losses():
        raise error


def test_a_job_that_gets_no_resources_ends_with_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose tasks run, or have run, is waited for."""
    monkeypatch.setattr(engine, "PATIENCE_S", 0.3)
    cancelled, stage = threading.Event(), SimpleNamespace(numCompletedTasks=0, numTasks=4)
    tracker = SimpleNamespace(getActiveStageIds=lambda: [1], getStageInfo=lambda _: stage)
    context = SimpleNamespace(
        statusTracker=lambda: tracker, setLogLevel=lambda _: None, cancelAllJobs=cancelled.set
    )
    spark = object.__new__(engine.SparkEngine)
    spark._spark = SimpleNamespace(sparkContext=context)  # type: ignore[assignment]

    def work() -> bool:
        if cancelled.wait(1.5):
            raise RuntimeError("Job 1 cancelled")
        return True

    stage.numActiveTasks = 1
    assert spark._run(work, lambda *_: None)
    stage.numActiveTasks = 0
    with pytest.raises(Interrupted, match="started no task for 0 s"):
        spark._run(work, lambda *_: None)


@pytest.mark.spark
@pytest.mark.slow
def test_an_executor_that_does_not_see_the_warehouse_is_named(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written then: the tables stay as they were."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text('{"text": "she ran"}\n')
    before = count_corpus(store, "c", (tmp_path / "a.jsonl",)).row
    monkeypatch.setattr(count, "partials_directory", lambda *_: tmp_path / "elsewhere")
    both = (tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    with pytest.raises(UsageProblem, match=f"not there on {socket.gethostname()} .*file system"):
        count_corpus(store, "c", both, master=spark_session().sparkContext.master)
    assert store.read("corpus").to_pylist() == [before]
    assert store.read("word_count").num_rows == 2
