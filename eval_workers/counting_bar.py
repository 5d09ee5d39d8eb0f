"""A progress bar of things that are counted: done, of how many, how many a second, time left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from plumbline.warehouse.text.escape import terminal


class Tell(Protocol):
    """Called with those done, all, and how many a second where the caller knows it."""

    def __call__(self, n_done: int, n_all: int, rate: float | None = None, /) -> None:
        """Show how far it is."""
        ...


@contextmanager
def counting_bar(what: str, unit: str) -> Iterator[Tell]:
    """A bar on the error stream from the first call on; nothing where there is nothing to do.

    ``what`` stands before it, ``unit`` names what is counted. A rate that is not given is that
    since the block began.
    """
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[rate]}", markup=False),
        rich.TimeRemainingColumn(),
    )
    bar = rich.Progress(*columns, console=Console(stderr=True), speed_estimate_period=600.0)
    start = time.monotonic()

    def tell(n_done: int, n_all: int, rate: float | None = None, /) -> None:
        if not n_all:
            return
        if not bar.task_ids:
            bar.add_task(terminal(what), completed=n_done, total=n_all, rate="")
            bar.start()
        rate = rate if rate is not None else n_done / max(time.monotonic() - start, 1e-9)
        said = f"{rate:,.1f} {unit}/s" if rate else ""
        bar.update(bar.task_ids[0], completed=n_done, total=n_all, rate=said)

    try:
        yield tell
    finally:
        if bar.task_ids:
            bar.stop()
