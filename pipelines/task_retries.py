"""Retry policy of tasks: only where the same call may well succeed a moment later."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from plumbline.warehouse.errors import MissingComponent, UsageProblem, is_outage

_TRIES = 3
_DELAY_S = 5.0

_Result = TypeVar("_Result")


def may_pass(error: BaseException | None) -> bool:
    """True if another try can help: an outage passes, wrong input does not.

    An error counts by itself or by what it was raised from. Wrong usage, what is not installed and
    a stop stay what they are.

    >>> may_pass(ConnectionResetError()), may_pass(KeyboardInterrupt()), may_pass(None)
    (True, False, False)
    """
    is_final = isinstance(error, (UsageProblem, MissingComponent))
    return not is_final and is_outage(error)


def patiently(work: Callable[[], _Result]) -> _Result:
    """Call ``work``, which is outside of any task, as often as a task with ``RETRY`` is tried.

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
