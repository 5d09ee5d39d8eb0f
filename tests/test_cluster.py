"""Counting on a cluster: executor processes, code from the archive, an executor killed."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyspark
import pytest

from plumbline.jobs.spark.archive import NAME
from plumbline.jobs.spark.java import find_java_home
from plumbline.jobs.spark.spark_session import CODE_ARCHIVE, read_conf
from plumbline.pipelines.command.main import main as plumbline
from plumbline.pipelines.deployment import write_dist
from plumbline.warehouse.input.shards import write_jsonl_zst
from tests.conftest import REPOSITORY, in_session
from tests.distributions import clashing_packages, source_files
from tests.test_count_kill import contents

T = TypeVar("T")
N_SHARDS = 12
#: Shards that take seconds.
LONG = (4, 5)
#: The few settings that fit a cluster into this machine; the rest is cluster.conf as shipped.
SMALL = {
    "spark.executor.memory": "1g",
    "spark.executor.cores": "1",
    "spark.ui.enabled": "false",
    # No job starts before both executors are there: each gets a task of the first one.
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``make dist`` writes."""
    return write_dist(tmp_path_factory.mktemp("dist"))[0].parent


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shards in one directory, the last with a rejected line."""
    rng = np.random.default_rng(7)
    vocabulary = np.array([f"word{k}" for k in range(3000)] + ["she", "he", "her", "him"] * 40)
    directory = tmp_path_factory.mktemp("shards")
    for number in range(N_SHARDS - 1):
        words = rng.choice(vocabulary, (100, 60))
        # While two of them are counted there is time to kill who counts.
        n_times = 2400 if number in LONG else 1
        write_jsonl_zst(directory / f"{number:02}.jsonl.zst", [*map(" ".join, words)] * n_times)
    (directory / "bad.jsonl").write_text('{"text": "she ran"}\nnot json\n')
    return directory


@pytest.fixture(scope="module")
def undisturbed(shards: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The tables as one JVM on this machine counts them."""
    warehouse = tmp_path_factory.mktemp("local") / "warehouse"
    assert plumbline(count(shards, warehouse)) == 0
    return contents(warehouse)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return spark_home(tmp_path)


def spark_home(directory: Path) -> Path:
    """A Spark of its own by links, as Spark keeps its executors' directories beside its jars."""
    home = directory / "spark"
    home.mkdir()
    for part in ("bin", "jars", "python"):
        (home / part).symlink_to(Path(pyspark.__file__).parent / part)
    return home


def count(shards: Path, warehouse: Path) -> list[str]:
    patterns = [str(shards / "*.zst"), str(shards / "*.jsonl")]
    return ["corpus", "count", *patterns, "--corpus", "c", "--warehouse", str(warehouse)]


def environment(home: Path, **more: str) -> dict[str, str]:
    """An environment in which nothing but what is given leads to the checkout's code."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYSPARK", "SPARK"))}
    own = {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "JAVA_HOME": str(find_java_home()),
        # Seven short-lived JVMs on a few cores: compiling their bytecode well does not pay.
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    return {**kept, **own, **more}


def start(command: list[str], log: Path, **options: Any) -> subprocess.Popen[bytes]:
    """Start a process at the head of a session of its own that writes to a file."""
    with log.open("wb") as output:
        return subprocess.Popen(
            command, stdout=output, stderr=output, start_new_session=True, cwd=log.parent, **options
        )


def until(found: Callable[[], T], process: subprocess.Popen[bytes], log: Path) -> T:
    """Wait for something true while a process runs; returns it."""
    deadline = time.monotonic() + 120
    while not (result := found()):
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.005)
    return result


def executors(process: subprocess.Popen[bytes]) -> list[int]:
    """Process ids of the executors' JVMs that a session leader started, itself or through Spark."""
    of = in_session(process.pid).items()
    return sorted(pid for pid, line in of if "CoarseGrainedExecutorBackend" in line)


def test_the_archive_holds_what_the_wheel_ships(dist: Path, wheel: Path) -> None:
    with zipfile.ZipFile(dist / NAME) as archive, zipfile.ZipFile(wheel) as shipped:
        code = {name for name in archive.namelist() if ".dist-info/" not in name}
        assert code == {name for name in shipped.namelist() if ".dist-info/" not in name}
        assert all(archive.read(name) == shipped.read(name) for name in code)
    assert {name.removeprefix("plumbline/") for name in code} == source_files()


def test_equal_sources_give_equal_archives(dist: Path, tmp_path: Path) -> None:
    again = write_dist(tmp_path)
    assert [p.read_bytes() for p in again] == [(dist / p.name).read_bytes() for p in again]


def settings_file(path: Path, master: str, events: Path) -> Path:
    """cluster.conf with another size, a master, and a log of what happened to tasks."""
    events.mkdir()
    logged = {"enabled": "true", "dir": events.as_uri(), "rolling.enabled": "false"}
    more = {f"spark.eventLog.{k}": v for k, v in {**logged, "compress": "false"}.items()}
    values = {**read_conf("cluster"), **SMALL, **more, "spark.master": master}
    path.write_text("".join(f"{key} {value}\n" for key, value in values.items()))
    return path


def tasks_by_outcome(events: Path) -> dict[str, set[int]]:
    """Indices of the counting stage's tasks by how they ended; it is the stage of most tasks."""
    (log,) = events.iterdir()
    seen = [json.loads(line) for line in log.read_text().splitlines()]
    ends = [e for e in seen if e["Event"] == "SparkListenerTaskEnd"]
    stage, _ = Counter(e["Stage ID"] for e in ends).most_common(1)[0]
    outcomes: dict[str, set[int]] = {}
    for e in ends:
        if e["Stage ID"] == stage:
            outcomes.setdefault(e["Task End Reason"]["Reason"], set()).add(e["Task Info"]["Index"])
    return outcomes


@pytest.mark.spark
@pytest.mark.slow
def test_an_executor_killed_in_the_middle_of_a_count(
    dist: Path, shards: Path, undisturbed: Any, home: Path, tmp_path: Path
) -> None:
    """Two executors in processes of their own, code from the archive alone; one is killed."""
    warehouse, report, log = tmp_path / "w", tmp_path / "report.json", tmp_path / "log"
    events = tmp_path / "events"
    conf = settings_file(tmp_path / "own.conf", "local-cluster[2,1,2048]", events)
    driver = shutil.copy(REPOSITORY / "tests" / "cluster_driver.py", tmp_path)
    clashing_packages(tmp_path)  # a driver's own directory comes before the archive
    paths = {"PYTHONPATH": str(dist / NAME), "PLUMBLINE_SPARK_CONF": str(conf)}
    command = [sys.executable, str(driver), str(report), *count(shards, warehouse)]
    # Of two executors, each is at one of the long shards once the four before them are done.
    process = start(command, log, env=environment(home, **paths))
    until(lambda: len(list(warehouse.glob("_work/count/*/*/ledger.json"))) == 4, process, log)
    running = executors(process)
    assert len(running) == 2
    os.kill(running[0], signal.SIGKILL)
    until(lambda: running[0] not in executors(process), process, log)
    assert process.wait(120) == 0, log.read_text()[-3000:]
    outcomes = tasks_by_outcome(events)
    assert outcomes["ExecutorLostFailure"] and outcomes["Success"] == set(range(N_SHARDS))
    assert contents(warehouse) == undisturbed
    check_origin(json.loads(report.read_text()), str(dist / NAME), home / "work")


def check_origin(found: dict[str, Any], archive: str, work: Path) -> None:
    """The driver ran from the archive, the executors from what they were sent of it."""
    assert found["driver"].startswith(archive)
    tasks = found["tasks"]
    assert len({task["daemon"] for task in tasks}) == 2, "a Python daemon for each executor"
    for task in tasks:
        assert Path(task["directory"]).is_relative_to(work)
        for module in ("jobs", "warehouse"):
            assert f"/{CODE_ARCHIVE}/plumbline/{module}/" in task[module]
            assert not task[module].startswith((archive, str(REPOSITORY)))


@contextmanager
def standalone_cluster(home: Path, tmp_path: Path) -> Iterator[str]:
    """A standalone master with two workers on the loopback; gives its address."""
    start_class = [str(home / "bin" / "spark-class")]
    name = "org.apache.spark.deploy"
    where = ["--host", "127.0.0.1", "--webui-port", "0"]
    log = tmp_path / "master.log"
    master = [*start_class, f"{name}.master.Master", *where, "--port", "0"]
    processes = [start(master, log, env=environment(home))]
    try:
        pattern = re.compile(r"Starting Spark master at (spark://\S+)")
        found = until(lambda: pattern.search(log.read_text()), processes[0], log)
        assert found is not None
        for number in range(2):
            log = tmp_path / f"worker-{number}.log"
            size = ["--cores", "4", "--memory", "4g", "--work-dir", str(tmp_path / "work")]
            worker = [*start_class, f"{name}.worker.Worker", *where, *size, found[1]]
            processes.append(start(worker, log, env=environment(home)))
        yield found[1]
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(60)
