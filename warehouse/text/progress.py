"""Show a long step's progress: update one line on a terminal, else print a line every 30 s."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from plumbline.warehouse.text.escape import say, terminal

#: Seconds between two lines in a file, and on a terminal.
EVERY_S, ON_TERMINAL_S = 30.0, 0.2
#: Seconds between two checks whether a line is due.
TICK_S = 1.0
#: When a step ends, no line is printed for fewer seconds than this.
PATIENCE_S = 5.0
_clock = time.monotonic
#: Moves a terminal's cursor to the start of its line, and clears the line.
_START_OF_LINE = "\r\x1b[K"


class Update(Protocol):
    """A function that updates a progress line. ``note`` is a short text, such as a loss."""

    def __call__(self, n_done: int, n_all: int, /, note: str = "") -> None:
        """Show that ``n_done`` of ``n_all`` items are done."""


@contextmanager
def progress(what: str, unit: str = "") -> Iterator[Update]:
    """Show the progress of the step ``what`` during the block. Yield a function to update it.

    ``unit`` names what is counted ("pairs"). The rate is measured from the first call of the
    function. If the function is never called, only the duration is shown. If several steps are
    open, only the innermost shows its progress. When a step ends, a line says how long it took,
    unless lines of the steps within it told almost all of this time.

    >>> with progress("read the corpus", "documents") as update:
    ...     update(500, 1000)
    """
    step, ended = _Step(terminal(what), unit), threading.Event()

    def tick() -> None:
        while not ended.wait(TICK_S):
            if _open[-1] is step:
                step.show()

    ticker = threading.Thread(target=tick, daemon=True)
    _open.append(step)
    ticker.start()
    try:
        yield step.update
    finally:
        ended.set()
        ticker.join()
        _open.remove(step)
        if sys.stderr.isatty():
            print(_START_OF_LINE, end="", file=sys.stderr, flush=True)
        seconds = _clock() - step.start
        if seconds - step.told >= PATIENCE_S:
            say(step.line(), err=True)
            step.told = seconds
        if _open:
            _open[-1].told += step.told


class _Step:
    def __init__(self, what: str, unit: str) -> None:
        self.what, self.unit = what, unit
        self.start = self.shown = _clock()
        self.n_done = self.n_all = 0
        self.note = ""
        self.rate = self.told = 0.0  # told: seconds in the last lines of steps within this one
        self.first: tuple[int, float] | None = None  # n_done and time of the first update

    def update(self, n_done: int, n_all: int, /, note: str = "") -> None:
        now = _clock()
        self.n_done, self.n_all, self.note = n_done, n_all, terminal(note)
        self.first = self.first or (n_done, now)
        n_new, seconds = n_done - self.first[0], now - self.first[1]
        self.rate = n_new / seconds if n_new > 0 and seconds > 0 else 0.0
        self.show()

    def show(self) -> None:
        now, is_terminal = _clock(), sys.stderr.isatty()
        if now - self.shown < (ON_TERMINAL_S if is_terminal else EVERY_S):
            return
        self.shown = now
        if is_terminal:
            line = self.line()[: shutil.get_terminal_size().columns - 1]
            print(f"{_START_OF_LINE}{line}", end="", file=sys.stderr, flush=True)
        else:
            say(self.line(), err=True)

    def line(self) -> str:
        counted = f"{self.n_done:,} of {self.n_all:,} {self.unit}".rstrip() if self.n_all else ""
        rate = f"{self.rate:,.1f} {self.unit}/s" if self.rate and self.unit else ""
        parts = [counted, rate, self.note, f"{_clock() - self.start:,.0f} s"]
        if self.rate and self.n_done < self.n_all:
            parts.append(f"about {(self.n_all - self.n_done) / self.rate:,.0f} s left")
        return f"{self.what}: {', '.join(filter(None, parts))}"


#: Steps that are open, the innermost last.
_open: list[_Step] = []
