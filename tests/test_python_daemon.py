"""Spark's Python workers whose task hangs up on them, and those that fail."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

pytest.importorskip("pyspark")

from pyspark import daemon

from plumbline.jobs.spark import python_daemon
from plumbline.jobs.spark.session import spark_session

pytestmark = pytest.mark.spark


def hung_up(worker: Callable[[socket.socket, bool], int], authenticated: bool) -> int:
    """What a worker gives whose task has gone before it said a word."""
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        return worker(ours, authenticated)


def test_a_task_that_hangs_up_first_is_no_traceback() -> None:
    with pytest.raises((EOFError, ConnectionError)):
        hung_up(daemon.worker, authenticated=False)
    assert hung_up(python_daemon.worker, authenticated=False) != 0


def test_other_errors_are_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(sock: socket.socket, authenticated: bool) -> int:
        raise EOFError if authenticated else ValueError("a defect")

    monkeypatch.setattr(python_daemon, "_worker", failing)
    with pytest.raises(EOFError):
        hung_up(python_daemon.worker, authenticated=True)
    with pytest.raises(ValueError, match="a defect"):
        hung_up(python_daemon.worker, authenticated=False)


def test_workers_are_started_by_it_and_their_errors_arrive() -> None:
    context = spark_session().sparkContext

    def parents(_: int) -> str:
        command = ["ps", "-o", "args=", "-p", str(__import__("os").getppid())]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    (line,) = context.parallelize([1], 1).map(parents).collect()
    assert "plumbline.jobs.spark.python_daemon" in line

    def fails(_: int) -> int:
        raise EOFError("of the task itself")

    with pytest.raises(Exception, match="of the task itself"):
        context.parallelize([1], 1).map(fails).collect()
    assert sys.modules["pyspark.daemon"].worker is not python_daemon.worker  # only in the daemon
