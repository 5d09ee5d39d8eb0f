"""Which errors of the system are a disk's, and which errors of one model end a command."""

from __future__ import annotations

import errno
import socket
import ssl
import urllib.error
from email.message import Message
from pathlib import Path

import pytest
import requests

from plumbline.pipelines.command.failures import Failures
from plumbline.warehouse.errors import BadInput, Interrupted, disk_problems


@pytest.mark.parametrize(
    "error",
    [
        *(ConnectionResetError(errno.ECONNRESET, "reset"), BrokenPipeError(), ConnectionError("x")),
        *(TimeoutError("timed out"), socket.gaierror(-2, "Name or service not known")),
        *(OSError(errno.EHOSTUNREACH, "No route to host"), OSError(errno.ENETUNREACH, "no")),
        *(ssl.SSLError(1, "handshake"), urllib.error.URLError("refused")),
        urllib.error.HTTPError("http://here", 502, "bad gateway", Message(), None),
        *(requests.ConnectionError("refused"), requests.HTTPError("502"), ChildProcessError()),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_a_connection_stays_what_it_is(error: OSError, tmp_path: Path) -> None:
    with pytest.raises(type(error)) as caught, disk_problems(tmp_path):
        raise error
    assert caught.value is error


def test_a_stop_a_defect_and_the_failure_of_an_only_model_end_the_command() -> None:
    stops = (Interrupted("lock", "taken"), KeyboardInterrupt(), ZeroDivisionError("a defect"))
    for n, error in (*((3, stop) for stop in stops), (1, BadInput("model a", "is damaged"))):
        failures = Failures(n)
        with pytest.raises(type(error)):
            with failures.collected("m"):
                raise error
            failures.error()
