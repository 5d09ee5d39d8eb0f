"""The progress bar of asking: words or pairs done, requests, tokens and money spent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from plumbline.eval_workers.generation.budget import Spent, money
from plumbline.eval_workers.generation.session import Tell


def spending(spent: Spent, currency: str | None) -> str:
    """What was spent, in words; without a currency no money.

    >>> spending(Spent(3, 1200, 0.05), "EUR"), spending(Spent(3, 1200, 0.0), None)
    ('3 requests, 1,200 tokens, 0.05 EUR', '3 requests, 1,200 tokens')
    """
    said = f"{spent.n_requests:,} requests, {spent.n_tokens:,} tokens"
    return f"{said}, {money(spent.cost, currency)}" if currency else said


@contextmanager
def asking_bar(kind: str, currency: str | None) -> Iterator[Tell]:
    """A bar on the error stream from the first answer on; ``kind`` names what is counted."""
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[spent]}", markup=False),
    )
    bar = rich.Progress(*columns, console=Console(stderr=True))

    def tell(n_done: int, n_all: int, spent: Spent) -> None:
        if not bar.task_ids:
            bar.add_task(kind, spent="")
            bar.start()
        said = spending(spent, currency)
        bar.update(bar.task_ids[0], completed=n_done, total=n_all, spent=said)

    try:
        yield tell
    finally:
        if bar.task_ids:
            bar.stop()
