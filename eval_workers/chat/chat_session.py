"""Runs the plans of a build with a server, a budget and a ledger; writes the ledger to a table.

A stopped build can be run again: it then sends only requests without a reply in the ledger. With
``server=None`` it replays: all replies come from the ledger, and nothing is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from plumbline.eval_workers.chat.asker import Ask, Asker, Plan
from plumbline.eval_workers.chat.budget import Budget, BudgetMeter, Price, Spent, money
from plumbline.eval_workers.chat.client import DEFAULT_URL, ChatClient
from plumbline.eval_workers.chat.ledger import Ledger, open_ledger
from plumbline.eval_workers.chat.requests import Reply, Request
from plumbline.eval_workers.chat.retries import RetryPolicy
from plumbline.warehouse.errors import disk_problems
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress

_Result = TypeVar("_Result")
#: Called with the number of finished plans, the number of all plans, and the spending so far.
Tell = Callable[[int, int, Spent], None]


@dataclass(frozen=True)
class Server:
    """A server's address, timeout and retries; the key is read from the environment when used."""

    base_url: str = DEFAULT_URL
    timeout_s: float = 120.0
    policy: RetryPolicy = field(default_factory=RetryPolicy)


@dataclass(frozen=True)
class Build:
    """A benchmark that is being written; ``server=None`` replays the ledger.

    Attributes:
        budget: limits of the benchmark; the spending of earlier runs counts.
        price: needed for ``budget.max_cost``; without a price, costs are NULL.
    """

    store: Store
    benchmark: str
    run_id: str
    server: Server | None
    budget: Budget = field(default_factory=Budget)
    price: Price | None = None
    tell: Tell | None = None

    def run(self, plans: Sequence[Plan[_Result]], kind: str) -> list[_Result]:
        """Carry out plans, publish the ledger as ``generation_request``; the plans' results.

        ``kind`` names the plans in an error. Replies before an error are kept. Raises
        ``Interrupted`` when the budget does not allow a further request or the server does not
        answer; ``BadInput`` when the server refuses a request, a replay lacks a reply, or the disk
        can't be written; ``UsageProblem`` while another process builds this benchmark.
        """
        with disk_problems(self.store.root), open_ledger(self.store, self.benchmark) as ledger:
            try:
                asker, results = asyncio.run(self._run(plans, ledger))
            finally:
                ledger.publish(self.store, self.benchmark, self.run_id)
        if asker.stop is not None:
            what, problem, fix = asker.stop.args
            done_text = f"{len(results)} of {len(plans)} {kind} are done"
            raise type(asker.stop)(what, f"{problem}; {done_text}", fix)
        return [results[position] for position in range(len(plans))]

    def replies(self, requests: Sequence[Request], kind: str) -> list[Reply]:
        """The reply to each request, in order; raises as ``run``."""
        return self.run([partial(_reply, request) for request in requests], kind)

    async def _run(
        self, plans: Sequence[Plan[_Result]], ledger: Ledger
    ) -> tuple[Asker, dict[int, _Result]]:
        policy = self.server.policy if self.server else RetryPolicy(concurrency=1)
        meter = BudgetMeter(self.budget, ledger.spent)

        def on_done(n_done: int) -> None:
            if self.tell is not None:
                self.tell(n_done, len(plans), meter.spent)

        async with self._client() as client:
            asker = Asker(client, ledger, meter, self.price, policy, self.run_id)
            return asker, await asker.run(plans, on_done)

    def _client(self) -> ChatClient | nullcontext[None]:
        if self.server is None:
            return nullcontext()
        return ChatClient(self.server.base_url, timeout_s=self.server.timeout_s)


async def _reply(request: Request, ask: Ask) -> Reply:
    return await ask(request)


def publish_rejects(build: Build, step: str, rejects: Sequence[Mapping[str, object]]) -> None:
    """Replace a build step's rows of ``reject``."""
    partition = {"stage": "generate", "subject": f"{build.benchmark}/{step}"}
    rows = [{**row, **partition, "run_id": build.run_id} for row in rejects]
    with disk_problems(build.store.root):
        build.store.replace("reject", rows, partition, build.run_id)


def spending(spent: Spent, currency: str | None) -> str:
    """Spending in words; without a currency no money.

    >>> spending(Spent(3, 1200, 0.05), "EUR"), spending(Spent(3, 1200, 0.0), None)
    ('3 requests, 1,200 tokens, 0.05 EUR', '3 requests, 1,200 tokens')
    """
    usage = f"{spent.n_requests:,} requests, {spent.n_tokens:,} tokens"
    return f"{usage}, {money(spent.cost, currency)}" if currency else usage


@contextmanager
def asking_bar(kind: str, currency: str | None) -> Iterator[Tell]:
    """Progress bar of finished plans, with the spending; ``kind`` names the unit."""
    with progress(kind) as update:
        yield lambda n_done, n_all, spent: update(n_done, n_all, note=spending(spent, currency))
