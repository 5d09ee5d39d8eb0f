"""The progress bar of tuning: steps done and the three losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from plumbline.eval_workers.mitigation.options import Progress

_SHORT = {"distance": "L_d", "total": "L_g", "difference": "L_l"}


def said(losses: Mapping[str, float]) -> str:
    """The losses of a step in a few characters.

    >>> said({"distance": 0.01234, "total": 0.5, "difference": 0.25, "loss": 1.0})
    'L_d 0.0123 L_g 0.5 L_l 0.25'
    """
    return " ".join(f"{short} {losses[name]:.3g}" for name, short in _SHORT.items())


@contextmanager
def tuning_bar(name: str) -> Iterator[Progress]:
    """A bar on the error stream from the first step on."""
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(bar_width=20),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[losses]}", markup=False),
        rich.TimeRemainingColumn(),
    )
    bar = rich.Progress(*columns, console=Console(stderr=True))

    def tell(n_done: int, n_steps: int, losses: Mapping[str, float]) -> None:
        if not bar.task_ids:
            bar.add_task(f"tune {name}", total=n_steps, losses="")
            bar.start()
        bar.update(bar.task_ids[0], completed=n_done, losses=said(losses))

    try:
        yield tell
    finally:
        if bar.task_ids:
            bar.stop()
