"""Progress of steps that go through several benchmarks or texts: one count of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from plumbline.warehouse.text.progress import progress

if TYPE_CHECKING:
    from plumbline.eval_workers.score import Progress


@contextmanager
def scoring_bar() -> Iterator[Progress]:
    """Pairs done of all benchmarks that were announced so far; the last one's name as the note.

    Pairs that were done before are counted from the start, and don't count for the rate.
    """
    done: dict[str, int] = {}
    pairs: dict[str, int] = {}
    with progress("score", "pairs") as update:

        def advance(name: str, n_done: int, n_pairs: int) -> None:
            done[name], pairs[name] = n_done, n_pairs
            update(sum(done.values()), sum(pairs.values()), note=name)

        yield advance
