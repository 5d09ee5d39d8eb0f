"""The progress bar of asking: finished words or pairs, requests, tokens and money spent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from plumbline.eval_workers.chat.budget import Spent, money
from plumbline.eval_workers.chat.session import Tell
from plumbline.warehouse.text.progress import progress


def spending(spent: Spent, currency: str | None) -> str:
    """Spending in words; without a currency no money.

    >>> spending(Spent(3, 1200, 0.05), "EUR"), spending(Spent(3, 1200, 0.0), None)
    ('3 requests, 1,200 tokens, 0.05 EUR', '3 requests, 1,200 tokens')
    """
    usage = f"{spent.n_requests:,} requests, {spent.n_tokens:,} tokens"
    return f"{usage}, {money(spent.cost, currency)}" if currency else usage


@contextmanager
def asking_bar(kind: str, currency: str | None) -> Iterator[Tell]:
    """Progress from the first answer on, with the spending; ``kind`` names the unit."""
    with progress(kind) as update:
        yield lambda n_done, n_all, spent: update(n_done, n_all, note=spending(spent, currency))
