"""The progress bar of scoring: pairs, pairs a second, time left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from plumbline.warehouse.text.escape import terminal

if TYPE_CHECKING:
    from rich.progress import Task, TaskID

    from plumbline.eval_workers.score import Progress

_ALL = "all benchmarks"
#: Seconds over which the rate is taken: on a CPU a chunk may take a minute.
_PERIOD_S = 600.0


def rate(task: Task) -> str:
    """Pairs a second of a bar's task; empty before there is one."""
    speed = task.finished_speed or task.speed
    return f"{speed:,.1f} pairs/s" if speed else ""


@contextmanager
def scoring_bar() -> Iterator[Progress]:
    """A bar for each benchmark that has pairs to score, and one for all when there are several.

    Pairs that were done before are there from the start, and count for no rate.
    """
    from rich import progress as rich
    from rich.console import Console
    from rich.text import Text

    class Rate(rich.ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(rate(task))

    columns = (
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        Rate(),
        rich.TimeRemainingColumn(),
    )
    bars = rich.Progress(*columns, console=Console(stderr=True), speed_estimate_period=_PERIOD_S)
    tasks: dict[str, TaskID] = {}
    counts: dict[str, tuple[int, int]] = {}

    def show(name: str, n_done: int, n_pairs: int) -> None:
        if name not in tasks:
            tasks[name] = bars.add_task(terminal(name), completed=n_done, total=n_pairs)
        bars.update(tasks[name], completed=n_done, total=n_pairs)

    def advance(name: str, n_done: int, n_pairs: int) -> None:
        if not n_pairs:
            return
        is_known = name in counts
        counts[name] = n_done, n_pairs
        bars.start()
        show(name, n_done, n_pairs)
        if is_known and len(counts) > 1:
            done, pairs = (sum(column) for column in zip(*counts.values(), strict=True))
            show(_ALL, done, pairs)

    try:
        yield advance
    finally:
        if tasks:
            bars.stop()
