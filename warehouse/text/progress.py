"""Progress of a long step: a bar on a terminal, a line every 30 s elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Protocol

from plumbline.warehouse.text.escape import say, terminal

if TYPE_CHECKING:
    from rich.progress import Progress

#: Seconds between two lines.
EVERY_S = 30.0
#: Steps of fewer seconds than this print no line.
PATIENCE_S = 5.0
_clock = time.monotonic


class Update(Protocol):
    """A function that shows the number done, the total, and a short note, such as a loss."""

    def __call__(self, n_done: int, n_all: int, /, note: str = "") -> None:
        """Show how far the step is; see ``progress``."""
        ...


@contextmanager
def progress(what: str, unit: str = "") -> Iterator[Update]:
    """Show the progress of the step ``what`` during the block; yields the function to update it.

    ``unit`` names what is counted ("pairs"). The rate is measured from the first call of the
    function. The time of a step is shown even if the function is never called. While several steps
    are open, only the innermost prints.

    >>> with progress("read the corpus", "documents") as update:
    ...     update(500, 1000)
    """
    step, ended = _Step(terminal(what), unit), threading.Event()

    def print_lines() -> None:
        while not ended.wait(EVERY_S):
            if _open[-1] is step and not sys.stderr.isatty():
                say(step.line(), err=True)

    ticker = threading.Thread(target=print_lines, daemon=True)
    _open.append(step)
    ticker.start()
    try:
        with step.bar:
            yield step.update
    finally:
        ended.set()
        ticker.join()
        _open.remove(step)
        if _clock() - step.start >= PATIENCE_S:
            say(step.line(), err=True)


class _Step:
    def __init__(self, what: str, unit: str) -> None:
        self.what, self.unit, self.start = what, unit, _clock()
        self.n_done, self.n_all, self._details = 0, 0, ""
        self._rate = 0.0
        self._first: tuple[int, float] | None = None  # number done and time of the first update
        self.bar = ExitStack()  # closes the bar that is shown on a terminal
        self._shown: Progress | None = None

    def update(self, n_done: int, n_all: int, /, note: str = "") -> None:
        now = _clock()
        self._first = self._first or (n_done, now)
        n_new, seconds = n_done - self._first[0], now - self._first[1]
        self._rate = n_new / seconds if n_new > 0 and seconds > 0 else 0.0
        rate = f"{self._rate:,.1f} {self.unit}/s" if self._rate and self.unit else ""
        self._details = ", ".join(filter(None, (rate, terminal(note))))
        self.n_done, self.n_all = n_done, n_all
        if n_all and sys.stderr.isatty():
            if self._shown is None:
                self._shown = self.bar.enter_context(_new_bar())
                self._shown.add_task(self.what, unit=self.unit, details="")
            (task,) = self._shown.task_ids
            self._shown.update(task, completed=n_done, total=n_all, details=self._details)

    def line(self) -> str:
        counted = f"{self.n_done:,} of {self.n_all:,} {self.unit}".rstrip() if self.n_all else ""
        parts = [counted, self._details, f"{_clock() - self.start:,.0f} s"]
        if self._rate and self.n_done < self.n_all:
            parts.append(f"about {(self.n_all - self.n_done) / self._rate:,.0f} s left")
        return f"{self.what}: {', '.join(filter(None, parts))}"


#: Steps that are open, the innermost last.
_open: list[_Step] = []


def _new_bar() -> Progress:
    from rich import progress as rich
    from rich.console import Console

    return rich.Progress(
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(bar_width=20),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[unit]} {task.fields[details]}", markup=False),
        rich.TimeElapsedColumn(),
        rich.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        speed_estimate_period=600.0,
    )
