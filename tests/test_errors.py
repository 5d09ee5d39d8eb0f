"""Which errors of the system are a disk's."""

from __future__ import annotations

import errno
import socket
import ssl
import urllib.error
from email.message import Message
from pathlib import Path

import pytest
import requests

from plumbline.warehouse.errors import BadInput, disk_problems


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


@pytest.mark.parametrize(
    "error",
    [
        *(OSError(errno.ENOSPC, "full"), OSError(errno.EDQUOT, "quota"), OSError(errno.EIO, "i/o")),
        *(OSError(errno.EROFS, "read-only"), PermissionError(errno.EACCES, "denied")),
        *(FileNotFoundError(errno.ENOENT, "gone", "a/b"), IsADirectoryError(), FileExistsError()),
        # as pyarrow raises it, and a disk that another machine serves and that does not answer
        *(OSError("Error writing bytes to file"), TimeoutError(errno.ETIMEDOUT, "late", "a/b")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_a_disk_is_a_line(error: OSError, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="check the disk"), disk_problems(tmp_path):
        raise error
