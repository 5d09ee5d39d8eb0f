"""Errors of parts of the work: another try, and models that fail without stopping the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from plumbline.warehouse.errors import (
    BadInput,
    Interrupted,
    MissingComponent,
    PlumblineError,
    UsageProblem,
    is_outage,
)
from plumbline.warehouse.text.escape import say

#: How often a stage is tried after transient errors, and the seconds between two tries.
TRIES, DELAY_S = 3, 5.0
_Result = TypeVar("_Result")


class ShardsFailed(BadInput):
    """Some shards can't be read; everything else is done."""


def may_pass(error: BaseException | None) -> bool:
    """True if another try can help, because the error is an outage or was caused by one.

    Wrong usage, a missing package and a stop by the user are never retried.

    >>> may_pass(ConnectionResetError()), may_pass(KeyboardInterrupt()), may_pass(None)
    (True, False, False)
    """
    is_final = isinstance(error, (UsageProblem, MissingComponent))
    return not is_final and is_outage(error)


def with_retries(work: Callable[[], _Result]) -> _Result:
    """Call ``work``; after a transient error call it again, ``TRIES`` times in all.

    >>> with_retries(lambda: "done")
    'done'
    """
    for _ in range(TRIES - 1):
        try:
            return work()
        except Exception as e:
            if not may_pass(e):
                raise
        time.sleep(DELAY_S)
    return work()


class Failures:
    """Collects failures of ``n`` models. Raises a stop and a defect at once; with one model all.

    Attributes:
        lines: a line for each model that failed, with the model's name.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._models: list[str] = []
        self._may_pass = False
        self.lines: list[str] = []

    @contextmanager
    def collected(self, model: str) -> Iterator[None]:
        """Catch, print and keep an error of the block as a failure of ``model``."""
        try:
            yield
        except Exception as e:
            passes = may_pass(e)
            is_stop = isinstance(e, Interrupted) and not passes
            if self._n == 1 or is_stop or not (passes or isinstance(e, PlumblineError)):
                raise
            line = " ".join(str(e).split())
            self.lines.append(line if model in line else f"{model}: {line}")
            say(f"failed: {self.lines[-1]}", err=True)
            self._models.append(model)
            self._may_pass |= passes

    def error(self) -> Exception | None:
        """One error for all failures, ``Interrupted`` if another try may help; or ``None``."""
        if not self._models:
            return None
        names = ", ".join(self._models)
        problem = f"{len(self._models)} of {self._n} failed: {names}; first: {self.lines[0]}"
        kind = Interrupted if self._may_pass else BadInput
        return kind("models", problem, "the others are done; the same command tries these again")

    def check(self) -> None:
        """Raise ``error``, if there is one."""
        if (error := self.error()) is not None:
            raise error
