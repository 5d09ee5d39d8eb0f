"""Networks and servers that are away: what may pass by itself, so that the same try helps later."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator

from plumbline.warehouse.errors import BadInput, Interrupted

#: A network or its server that is away for a moment; a file of a shared disk that moved.
_PASSING = frozenset(
    getattr(errno, name)
    for name in (
        *("EAGAIN", "EBUSY", "ECONNABORTED", "ECONNREFUSED", "ECONNRESET", "EHOSTUNREACH"),
        *("EINTR", "ENETDOWN", "ENETRESET", "ENETUNREACH", "EPIPE", "ESTALE", "ETIMEDOUT"),
    )
)
#: Too many requests, and servers that say they can't just now.
_BUSY = frozenset((408, 425, 429, 500, 502, 503, 504))
_ASKED_TO_STAY_OFFLINE = "OfflineModeIsEnabled"
#: What clients call a network or server that is away. Their errors are no ``ConnectionError`` of
#: Python's and keep no error number; by name they need no import.
_OF_CLIENTS = {
    "httpx": frozenset(("NetworkError", "RemoteProtocolError", "TimeoutException")),
    "requests": frozenset(("ConnectionError", "Timeout", "ChunkedEncodingError")),
}
_OF_CLIENTS["httpx2"] = _OF_CLIENTS["httpx"]
#: The client of object stores says all in words, also in a plain ``OSError``; without the status
#: of an answer, only these mean wrong input.
_OF_STORES = re.compile(r"Generic \S+ error: ")
_STATUS = re.compile(r"status code: (\d{3})")
_WRONG = re.compile(r"[Cc]onfiguration|incorrectly configured|InvalidPath|[Uu]nsupported|Range req")


def is_outage(error: BaseException | None) -> bool:
    """Whether an error, or what it was raised from, is of a network or server that is away.

    A full disk, a missing file and a refused permission are not.

    >>> is_outage(ConnectionResetError()), is_outage(OSError(errno.ESTALE, "stale"))
    (True, True)
    >>> is_outage(FileNotFoundError("model")), is_outage(OSError(errno.ENOSPC, "full"))
    (False, False)
    """
    return any(_passes(one) for one in _causes(error))


def failure(cause: BaseException, what: str, problem: str, fix: str) -> BadInput | Interrupted:
    """The line for what ``cause`` stopped: status 5 where it was an outage, else bad input.

    >>> failure(TimeoutError(), "model m", "can't be had", "check its name")
    Interrupted('model m', "can't be had", 'run the same command again; check its name')
    """
    if is_outage(cause):
        return Interrupted(what, problem, f"run the same command again; {fix}")
    return BadInput(what, problem, fix)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _passes(error: BaseException) -> bool:
    if type(error).__name__ == _ASKED_TO_STAY_OFFLINE:  # a ConnectionError by its class
        return False
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is not None:
        return status in _BUSY
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    if any(kind.__name__ in _OF_CLIENTS.get(_package(kind), ()) for kind in type(error).__mro__):
        return True
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _PASSING
    return bool(_OF_STORES.match(str(error))) and _is_away(str(error))


def _is_away(said: str) -> bool:
    status = _STATUS.search(said)
    return int(status[1]) in _BUSY if status else not _WRONG.search(said)


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]
