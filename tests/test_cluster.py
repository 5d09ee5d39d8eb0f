"""Counting on clusters: separate executor processes, code from the archive, executors killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyspark
import pytest

from jobs.archive import NAME
from jobs.java import find_java_home
from jobs.session import read_conf
from pipelines.dist import write_dist
from tests.conftest import REPOSITORY
from tests.test_count_kill import contents
from warehouse.shards import write_jsonl_zst

N_SHARDS = 16
#: The few settings that fit a cluster into this machine; the rest is cluster.conf as shipped.
SMALL = {
    "spark.executor.memory": "1g",
    "spark.executor.cores": "1",
    "spark.ui.enabled": "false",
}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``make dist`` writes."""
    return write_dist(tmp_path_factory.mktemp("dist"))[0].parent


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shards, one of them damaged and one with a rejected line, in one directory."""
    rng = np.random.default_rng(7)
    vocabulary = np.array([f"word{k}" for k in range(3000)] + ["she", "he", "her", "him"] * 40)
    directory = tmp_path_factory.mktemp("shards")
    for number in range(N_SHARDS):
        words = rng.choice(vocabulary, (1500, 60))
        write_jsonl_zst(directory / f"{number:02}.jsonl.zst", map(" ".join, words))
    (directory / "bad.jsonl").write_text('{"text": "she ran"}\nnot json\n')
    return directory


@pytest.fixture(scope="module")
def undisturbed(shards: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The tables as one JVM on this machine counts them."""
    warehouse = tmp_path_factory.mktemp("local") / "warehouse"
    code = "import sys; from pipelines.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, *count(shards, warehouse), "--master", "local[2]"]
    subprocess.run(command, check=True, capture_output=True, cwd=REPOSITORY)
    return contents(warehouse)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A Spark of its own by links, as Spark keeps its executors' directories beside its jars."""
    home = tmp_path / "spark"
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
    }
    return {**kept, **own, **more}


def until(found: Callable[[], Any], process: subprocess.Popen[bytes], log: Path) -> Any:
    """Wait for something true while a process runs; returns it."""
    deadline = time.monotonic() + 120
    while not (result := found()):
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.005)
    return result


def executors(process: subprocess.Popen[bytes]) -> list[int]:
    """Process ids of the executors' JVMs that a session leader started, itself or through Spark."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
            if (
                b"CoarseGrainedExecutorBackend" in command
                and os.getsid(int(entry.name)) == process.pid
            ):
                found.append(int(entry.name))
        except (OSError, ValueError):
            continue  # it has ended meanwhile
    return sorted(found)


def test_the_archive_holds_what_the_wheel_ships(dist: Path) -> None:
    tomllib = pytest.importorskip("tomllib")
    setup = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["setuptools"]
    expected = set()
    for package in setup["packages"]:
        directory = REPOSITORY.joinpath(*package.split("."))
        for pattern in ("*.py", *setup["package-data"].get(package, [])):
            expected |= {str(f.relative_to(REPOSITORY)) for f in directory.glob(pattern)}
    with zipfile.ZipFile(dist / NAME) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        for name in expected:
            assert archive.read(name) == (REPOSITORY / name).read_bytes()
    # A package's data patterns reach into directories that are packages themselves.
    assert held == expected


def test_equal_sources_give_equal_archives(dist: Path, tmp_path: Path) -> None:
    again = write_dist(tmp_path)
    assert [p.read_bytes() for p in again] == [(dist / p.name).read_bytes() for p in again]


def test_the_archive_alone_counts_with_the_kernel_compiled_before(
    dist: Path, tmp_path: Path
) -> None:
    """Under another path: the same kernels from the cache, and every data file is found."""
    from jobs.sweep import warm_up

    warm_up()
    code = (
        "from jobs import block, sweep; from warehouse import connect, wordlists\n"
        "sweep.warm_up()\n"
        "assert block.__file__.startswith(PLACE), block.__file__\n"
        "stats = block.run_block.stats\n"
        "assert stats.cache_hits and not stats.cache_misses, stats\n"
        "assert wordlists.load('gendered').targets and connect.sql_names('')\n"
        "from importlib.metadata import version; version('plumbline')\n"
    )
    archive = shutil.copy(dist / NAME, tmp_path / "elsewhere.zip")
    run = [sys.executable, "-c", code.replace("PLACE", repr(str(archive)))]
    paths = {"PYTHONPATH": str(archive)}
    done = subprocess.run(
        run, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **paths}
    )
    assert done.returncode == 0, done.stderr


def settings_file(path: Path, master: str, events: Path) -> Path:
    """cluster.conf with another size, a master, and a log of what happened to tasks."""
    events.mkdir()
    logged = {"enabled": "true", "dir": events.as_uri(), "rolling.enabled": "false"}
    more = {f"spark.eventLog.{k}": v for k, v in {**logged, "compress": "false"}.items()}
    values = {**read_conf("cluster"), **SMALL, **more, "spark.master": master}
    path.write_text("".join(f"{key} {value}\n" for key, value in values.items()))
    return path


def lost_tasks(events: Path) -> tuple[set[int], set[int]]:
    """Indices of the first stage's tasks that were lost with an executor, and that succeeded."""
    (log,) = events.iterdir()
    seen = [json.loads(line) for line in log.read_text().splitlines()]
    ends = [e for e in seen if e["Event"] == "SparkListenerTaskEnd"]
    by_reason: dict[str, set[int]] = {}
    stages: dict[int, int] = {}
    for e in ends:
        stages[e["Stage ID"]] = stages.get(e["Stage ID"], 0) + 1
    counting = max(stages, key=lambda s: stages[s])
    for e in ends:
        if e["Stage ID"] == counting:
            reason = e["Task End Reason"]["Reason"]
            by_reason.setdefault(reason, set()).add(e["Task Info"]["Index"])
    return by_reason.get("ExecutorLostFailure", set()), by_reason.get("Success", set())


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
    paths = {"PYTHONPATH": str(dist / NAME), "PLUMBLINE_SPARK_CONF": str(conf)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, str(driver), str(report), *count(shards, warehouse)],
            stdout=output,
            stderr=output,
            cwd=tmp_path,
            env=environment(home, **paths),
            start_new_session=True,
        )
    partials = until(lambda: list(warehouse.glob("_work/count/*/*.json")), process, log)
    running = executors(process)
    os.kill(running[0], signal.SIGKILL)
    done = len(list(warehouse.glob("_work/count/*/*.json")))
    assert len(running) == 2 and 0 < len(partials) <= done < N_SHARDS - 2
    assert process.wait(120) == 0, log.read_text()[-3000:]
    lost, succeeded = lost_tasks(events)
    assert lost and succeeded == set(range(N_SHARDS + 1))
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
            assert f"/{NAME}/{module}/" in task[module]
            assert not task[module].startswith((archive, str(REPOSITORY)))
