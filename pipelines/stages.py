"""Stages of a run: announced, timed, and tried again where that can help; signals that stop it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

from plumbline.pipelines.task_retries import patiently
from plumbline.warehouse.text.escape import terminal
from plumbline.warehouse.text.progress import progress

CONSOLE = Console(highlight=False, markup=False, emoji=False)

_Result = TypeVar("_Result")


class Stages:
    """Runs the stages of a command in this process, and keeps their wall times.

    ``flows.TaskStages`` runs the same stages as Prefect's tasks.

    >>> stages = Stages()
    >>> stages.run("double 4", lambda n: 2 * n, 4)
    double 4
    8
    """

    def __init__(self) -> None:
        self.seconds: list[tuple[str, float]] = []

    def run(self, name: str, work: Callable[..., _Result], *given: Any) -> _Result:
        """The result of a stage; a long one shows how long it takes."""
        with self._announced(name):
            return self._result(name, work, *given)

    def retried(self, name: str, work: Callable[..., _Result], *given: Any) -> _Result:
        """As ``run``; the work is tried again after what may pass, see ``retries``."""
        with self._announced(name):
            return self._retried_result(name, work, *given)

    def _result(self, name: str, work: Callable[..., _Result], *given: Any) -> _Result:
        return work(*given)

    def _retried_result(self, name: str, work: Callable[..., _Result], *given: Any) -> _Result:
        return patiently(partial(work, *given))

    @contextmanager
    def _announced(self, name: str) -> Iterator[None]:
        CONSOLE.print(terminal(name), style="bold")
        start = time.monotonic()
        with progress(name):
            yield
        self.seconds.append((name, time.monotonic() - start))

    def table(self) -> Table:
        """The stages and their wall times."""
        table = Table("stage", title="wall time", title_justify="left")
        table.add_column("seconds", justify="right")
        for name, seconds in self.seconds:
            table.add_row(terminal(name), f"{seconds:.1f}")
        table.add_row("all", f"{sum(s for _, s in self.seconds):.1f}", style="bold")
        return table


def sigterm_interrupts() -> None:
    """Have SIGTERM end this process as Ctrl-C does; Prefect's flows take it over and call it again.

    By default a process ends at once and leaves behind what it started. Prefect's own exception
    breaks into a running event loop, where an interrupt cancels its tasks in order.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(*_: object) -> None:
    # What a shell starts in the background ignores Ctrl-C; a SIGTERM is meant for it all the same.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)
