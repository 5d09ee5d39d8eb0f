"""Stages of a run: announced, and tried again after transient errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from rich.console import Console

from plumbline.warehouse.errors import MissingComponent, UsageProblem, is_outage
from plumbline.warehouse.text.escape import terminal
from plumbline.warehouse.text.progress import progress

CONSOLE = Console(highlight=False, markup=False, emoji=False)

_Result = TypeVar("_Result")


class Stages:
    """Runs the stages of a command in this process, and prints their names.

    ``flows.TaskStages`` runs each stage as a Prefect task instead.

    >>> stages = Stages()
    >>> stages.run("double 4", lambda n: 2 * n, 4)
    double 4
    8
    """

    def __init__(self, console: Console = CONSOLE) -> None:
        self._console = console
        self._step = (0, 0)

    def number(self, n_steps: int) -> None:
        """Print numbered steps from here on, instead of the names of stages."""
        self._step = (0, n_steps)

    def step(self, doing: str) -> None:
        """Print the next step: its number, and what is done and why, in a line."""
        number, n_steps = self._step[0] + 1, self._step[1]
        self._step = (number, n_steps)
        if n_steps:
            self._console.print(f"{number}/{n_steps} {terminal(doing)}", style="bold")

    def run(self, name: str, work: Callable[..., _Result], *args: Any) -> _Result:
        """Run a stage and return its result; a long stage shows its elapsed time."""
        with self._announced(name):
            return self._result(name, work, *args)

    def retried(self, name: str, work: Callable[..., _Result], *args: Any) -> _Result:
        """Like ``run``, but transient errors are retried, up to ``_TRIES`` tries in all."""
        with self._announced(name):
            return self._retried_result(name, work, *args)

    def _result(self, name: str, work: Callable[..., _Result], *args: Any) -> _Result:
        return work(*args)

    def _retried_result(self, name: str, work: Callable[..., _Result], *args: Any) -> _Result:
        return with_retries(partial(work, *args))

    @contextmanager
    def _announced(self, name: str) -> Iterator[None]:
        if not self._step[1]:
            self._console.print(terminal(name), style="bold")
        with progress(name):
            yield


_TRIES = 3
_DELAY_S = 5.0


def may_pass(error: BaseException | None) -> bool:
    """True if another try can help, because the error is an outage or was caused by one.

    Wrong usage, a missing package and a stop by the user are never retried.

    >>> may_pass(ConnectionResetError()), may_pass(KeyboardInterrupt()), may_pass(None)
    (True, False, False)
    """
    is_final = isinstance(error, (UsageProblem, MissingComponent))
    return not is_final and is_outage(error)


def with_retries(work: Callable[[], _Result]) -> _Result:
    """Call ``work`` and retry it as often as Prefect does with ``RETRY``.

    >>> with_retries(lambda: "done")
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


#: Arguments of Prefect's ``Task`` for stages that are retried.
RETRY: dict[str, Any] = {
    "retries": _TRIES - 1,
    "retry_delay_seconds": _DELAY_S,
    "retry_condition_fn": _condition,
}
