"""When a task is tried again: only where the same call may well succeed a moment later."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from plumbline.warehouse.errors import BadInput, PlumblineError

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
#: What the hub's HTTP client calls a network or server that is away. Its errors are no
#: ``ConnectionError`` and keep no error number; by name they need no import.
_OF_HTTP = frozenset(("NetworkError", "RemoteProtocolError", "TimeoutException"))
_HTTP_CLIENTS = frozenset(("httpx", "httpx2"))
_TRIES = 3
_DELAY_S = 5.0

_Found = TypeVar("_Found")


def may_pass(error: BaseException | None) -> bool:
    """Whether another try can help: a network's or server's hiccup passes, wrong input does not.

    An error counts by itself or by what it was raised from. A full disk, a missing file and a
    refused permission stay what they are; so do wrong usage, what is not installed, and a stop.

    >>> may_pass(ConnectionResetError()), may_pass(OSError(errno.ESTALE, "stale")), may_pass(None)
    (True, True, False)
    >>> may_pass(FileNotFoundError("model")), may_pass(OSError(errno.ENOSPC, "full"))
    (False, False)
    """
    if isinstance(error, PlumblineError) and not isinstance(error, BadInput):
        return False
    return any(_passes(one) for one in _causes(error))


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
    if any(k.__name__ in _OF_HTTP and _package(k) in _HTTP_CLIENTS for k in type(error).__mro__):
        return True
    return isinstance(error, OSError) and error.errno in _PASSING


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def patiently(work: Callable[[], _Found]) -> _Found:
    """Do what is outside of any task as often as a task with ``RETRY`` is tried; its result.

    >>> patiently(lambda: "done")
    'done'
    """
    for _ in range(_TRIES - 1):
        try:
            return work()
        except Exception as e:
            if not may_pass(e):
                raise
        time.sleep(_DELAY_S)
    return work()


def _condition(_task: Any, _run: Any, state: Any) -> bool:
    return may_pass(state.result(raise_on_failure=False))


#: For ``@task(**RETRY)``.
RETRY: dict[str, Any] = {
    "retries": _TRIES - 1,
    "retry_delay_seconds": _DELAY_S,
    "retry_condition_fn": _condition,
}
