"""Progress bar of tuning: steps done and the three losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from plumbline.eval_workers.training.mitigation.options import Progress
from plumbline.warehouse.text.progress import progress

_SHORT = {"distance": "L_d", "total": "L_g", "difference": "L_l"}


def losses_line(losses: Mapping[str, float]) -> str:
    """Short text of a step's losses.

    >>> losses_line({"distance": 0.01234, "total": 0.5, "difference": 0.25, "loss": 1.0})
    'L_d 0.0123 L_g 0.5 L_l 0.25'
    """
    return " ".join(f"{short} {losses[name]:.3g}" for name, short in _SHORT.items())


@contextmanager
def tuning_bar(name: str) -> Iterator[Progress]:
    """Show steps and losses for the length of the block."""
    with progress(f"tune {name}", "steps") as update:
        yield lambda step, n_steps, losses: update(step, n_steps, note=losses_line(losses))
