"""Progress of a long step: a bar on a terminal and in a notebook, a line every 30 s elsewhere."""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from plumbline.warehouse.text.escape import say, terminal

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

#: Seconds between two lines.
EVERY_S = 30.0
#: Steps of fewer seconds than this print no line.
PATIENCE_S = 5.0
_clock = time.monotonic


class Update(Protocol):
    """A function that shows the number done, the total, a rate per second and a note."""

    def __call__(
        self, n_done: int, n_all: int, rate: float | None = None, /, note: str = ""
    ) -> None:
        """Show how far the step is; see ``progress``."""
        ...


@contextmanager
def progress(what: str, unit: str = "") -> Iterator[Update]:
    """Show the progress of the step ``what`` during the block; yields the function to update it.

    ``unit`` names what is counted ("pairs"). The default rate is measured from the first call of
    the function. ``note`` is a short text, such as a loss. The time of a step is shown even if the
    function is never called. While several steps are open, only the innermost prints.

    >>> with progress("read the corpus", "documents") as update:
    ...     update(500, 1000)
    """
    step, ended = _Step(terminal(what), unit), threading.Event()
    ticker = threading.Thread(target=_tick, args=(step, ended), daemon=True)
    _open.append(step)
    ticker.start()
    try:
        yield step.update
    finally:
        ended.set()
        ticker.join()
        _open.remove(step)
        step.close()


class _Step:
    def __init__(self, what: str, unit: str) -> None:
        self.what, self.unit, self.start = what, unit, _clock()
        self.on_terminal = sys.stderr.isatty() or _in_notebook()
        self.n_done = self.n_all = 0
        self._note, self._rate, self._inner_printed = "", 0.0, False
        self._first: tuple[int, float] | None = None  # number done and time of the first update
        self._bar: tuple[Progress, TaskID] | None = None

    def update(self, n_done: int, n_all: int, rate: float | None = None, /, note: str = "") -> None:
        now = _clock()
        self._first = self._first or (n_done, now)
        n_new, seconds = n_done - self._first[0], now - self._first[1]
        self._rate = rate or (n_new / seconds if n_new > 0 and seconds > 0 else 0.0)
        self.n_done, self.n_all, self._note = n_done, n_all, terminal(note)
        if self.on_terminal and n_all:
            if self._bar is None:
                bar = _new_bar()
                self._bar = bar, bar.add_task(self.what, total=n_all, unit=self.unit, details="")
                bar.start()
            bar, task = self._bar
            bar.update(task, completed=n_done, total=n_all, details=self._details())

    def _details(self) -> str:
        rate = f"{self._rate:,.1f} {self.unit}/s" if self._rate and self.unit else ""
        return ", ".join(filter(None, (rate, self._note)))

    def line(self) -> str:
        counted = f"{self.n_done:,} of {self.n_all:,} {self.unit}".rstrip() if self.n_all else ""
        parts = [counted, self._details(), f"{_clock() - self.start:,.0f} s"]
        if self._rate and self.n_done < self.n_all:
            parts.append(f"about {(self.n_all - self.n_done) / self._rate:,.0f} s left")
        return f"{self.what}: {', '.join(filter(None, parts))}"

    def close(self) -> None:
        """Clear the bar; print a last line.

        No line for a short step, and for a step without a count if a step inside it printed a line.
        """
        if self._bar is not None:
            self._bar[0].stop()
        if _clock() - self.start < PATIENCE_S or (self._inner_printed and not self.n_all):
            return
        say(self.line(), err=True)
        for step in _open:
            step._inner_printed = True


#: Steps that are open, the innermost last.
_open: list[_Step] = []


def _in_notebook() -> bool:
    """True in a notebook that can show a bar, for which rich needs ipywidgets."""
    return "ipykernel" in sys.modules and importlib.util.find_spec("ipywidgets") is not None


def _tick(step: _Step, ended: threading.Event) -> None:
    """Print a line every 30 s until the step ends, except on a terminal and for an outer step."""
    while not ended.wait(EVERY_S):
        if _open[-1] is step and not step.on_terminal:
            say(step.line(), err=True)


def _new_bar() -> Progress:
    from rich import progress as rich
    from rich.console import Console

    return rich.Progress(
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(bar_width=20),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[unit]}", markup=False),
        rich.TextColumn("{task.fields[details]}", markup=False),
        rich.TimeElapsedColumn(),
        rich.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        speed_estimate_period=600.0,
    )
