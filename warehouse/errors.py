"""Errors that users see: each has a one-line message, and each class has an exit status.

Any other exception is a bug and is shown with its traceback.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

from plumbline.warehouse.text.escape import hidden, terminal

#: Classes of file errors. Other subclasses of ``OSError`` come from connections and processes.
_OF_FILES = (
    *(OSError, FileNotFoundError, FileExistsError, PermissionError),
    *(NotADirectoryError, IsADirectoryError),
)
#: Error numbers of a plain ``OSError`` that come from a network.
_OF_NETWORKS = frozenset(
    (errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETRESET, errno.ENETUNREACH)
)
#: Error numbers of transient errors: of networks, of servers, and of files moved on a shared disk.
_TRANSIENT = _OF_NETWORKS | {
    *(errno.EAGAIN, errno.EBUSY, errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET),
    *(errno.EINTR, errno.EPIPE, errno.ESTALE, errno.ETIMEDOUT),
}
#: HTTP status codes that busy servers send, also for too many requests.
_BUSY = frozenset((408, 425, 429, 500, 502, 503, 504))
_OFFLINE_MODE = "OfflineModeIsEnabled"
#: Names of client libraries' errors for an unreachable network or server, by package. The errors
#: aren't ``ConnectionError`` and have no error number. Names, unlike classes, need no import.
_OF_CLIENTS = {
    "httpx": frozenset(("NetworkError", "RemoteProtocolError", "TimeoutException")),
    "requests": frozenset(("ConnectionError", "Timeout", "ChunkedEncodingError")),
}
_OF_CLIENTS["httpx2"] = _OF_CLIENTS["httpx"]
#: Start of the object-store client's messages. Some of its errors are plain ``OSError``s and
#: differ only in the message. If it has no HTTP status, ``_WRONG`` tells whether input was wrong.
_OF_STORES = re.compile(r"Generic \S+ error: ")
_STATUS = re.compile(r"status code: (\d{3})")
_WRONG = re.compile(r"[Cc]onfiguration|incorrectly configured|InvalidPath|[Uu]nsupported|Range req")


class PlumblineError(Exception):
    """Base class of errors that show users a one-line message. Subclasses set the exit status.

    The message may quote text from a file or server. So secrets are hidden, and ``str``
    returns a single line that can't control a terminal.

    >>> print(BadInput("word \\x1b[2J", "not\\nfound", "type it again"))
    word \\x1b[2J: not found (type it again)
    """

    exit_code = 1

    def __init__(self, what: str, problem: str = "", fix: str = "") -> None:
        what, problem, fix = map(hidden, (what, problem, fix))
        super().__init__(what, problem, fix)
        message = f"{what}: {problem}" if problem else what
        self.message = f"{message} ({fix})" if fix else message

    def __str__(self) -> str:
        return terminal(" ".join(self.message.split()))

    def _render_traceback_(self) -> list[str]:
        """Return what notebooks show instead of a traceback: the class and the message."""
        return [f"{type(self).__name__}: {self}"]


class UsageProblem(PlumblineError):
    """The user's request contradicts itself or names something that doesn't exist."""

    exit_code = 2


class BadInput(PlumblineError):
    """A file, row or model does not have the expected form."""

    exit_code = 3


class MissingComponent(PlumblineError):
    """A program or package is missing. The message says how to install it."""

    exit_code = 4


class Interrupted(PlumblineError):
    """A command stopped early. Running the same command again may be enough.

    The user stopped the command, a process was killed, or a network or server was unreachable. If
    the user must change something first, the error is ``BadInput`` instead.
    """

    exit_code = 5


class ModelChanged(PlumblineError):
    """A model's figures changed by more than `--fail-if` allows."""

    exit_code = 6


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Suggest known names similar to an unknown name. If there are none, return ``otherwise``.

    >>> did_you_mean("winobais", ["use-5", "winobias"], "list them"), did_you_mean("x", [], "none")
    ('did you mean winobias?', 'none')
    """
    near = get_close_matches(name, list(known), 3)
    return f"did you mean {', '.join(near)}?" if near else otherwise


@contextmanager
def disk_problems(path: Path) -> Iterator[None]:
    """Turn a file error (``OSError``) in the block into ``BadInput`` that names ``path``.

    Other ``OSError``s, such as those of connections, pass unchanged.
    """
    try:
        yield
    except OSError as e:
        if not _is_of_disk(e):
            raise
        problem = (e.filename and e.strerror) or (os.strerror(e.errno) if e.errno else str(e))
        where = f", {e.filename}" if e.filename and str(e.filename) != str(path) else ""
        fix = "check the disk; finished work is kept: run the same command again to resume"
        raise BadInput(f"{path}{where}", problem, fix) from e


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add ``path`` to errors about a full disk that name no file."""
    try:
        yield
    except OSError as e:
        if e.errno in (errno.ENOSPC, errno.EDQUOT) and e.filename is None:
            e.filename, e.strerror = str(path), os.strerror(e.errno)
        raise


def _is_of_disk(error: OSError) -> bool:
    """Return whether an ``OSError`` is about a file, not a connection.

    Return false for libraries' own classes, because `urllib` stores an address in ``filename``.
    """
    if error.filename is not None and type(error).__module__ == "builtins":
        return True
    return type(error) in _OF_FILES and error.errno not in _OF_NETWORKS


def is_outage(error: BaseException | None) -> bool:
    """Return whether an error or one of its causes means that a server or network is down or busy.

    A full disk, a missing file and a denied permission are not outages.
    """
    while error is not None:
        if _means_outage(error):
            return True
        error = error.__cause__
    return False


def failure(cause: BaseException, what: str, problem: str, fix: str) -> BadInput | Interrupted:
    """Return the error to raise: ``Interrupted`` if ``cause`` is an outage, else ``BadInput``."""
    if is_outage(cause):
        return Interrupted(what, problem, f"run the same command again; {fix}")
    return BadInput(what, problem, fix)


def _means_outage(error: BaseException) -> bool:
    if type(error).__name__ == _OFFLINE_MODE:  # offline mode isn't an outage
        return False
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is not None:
        return status in _BUSY
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    for kind in type(error).__mro__:
        if kind.__name__ in _OF_CLIENTS.get(kind.__module__.partition(".")[0], ()):
            return True
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _TRANSIENT
    message = str(error)
    if not _OF_STORES.match(message):
        return False
    answer = _STATUS.search(message)
    return int(answer[1]) in _BUSY if answer else not _WRONG.search(message)
