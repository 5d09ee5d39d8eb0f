"""Runs the jobs of a build with a server, a budget and a ledger; writes the ledger to a table.

A stopped build can be run again: it then sends only requests without a reply in the ledger. With
``server=None`` it replays: all replies come from the ledger, and nothing is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from plumbline.eval_workers.chat.asker import Asker, Job, Replayer, run_jobs
from plumbline.eval_workers.chat.budget import Budget, BudgetMeter, Price, Spent, money
from plumbline.eval_workers.chat.client import DEFAULT_URL, ChatClient, RetryPolicy
from plumbline.eval_workers.chat.ledger import Ledger, open_ledger
from plumbline.eval_workers.chat.requests import Reply
from plumbline.warehouse.errors import PlumblineError, disk_problems
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress

#: Called with the number of finished jobs, the number of all jobs, and the spending so far.
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

    def run(self, jobs: Sequence[Job], kind: str) -> Mapping[str, Reply]:
        """Finish jobs, publish the ledger as ``generation_request``, and return all its replies.

        ``kind`` names the jobs in an error. Replies before an error are kept. Raises
        ``Interrupted`` when the budget does not allow a further request or the server does not
        answer; ``BadInput`` when the server refuses a request, a replay lacks a reply, or the disk
        can't be written; ``UsageProblem`` while another process builds this benchmark.
        """
        with (
            disk_problems(self.store.root),
            open_ledger(self.store, self.benchmark, self.run_id) as ledger,
        ):
            try:
                stop = asyncio.run(self._run(jobs, ledger))
            finally:
                ledger.publish(self.store)
            if stop is not None:
                what, problem, fix = stop.args
                n_done = sum(not job(ledger.replies) for job in jobs)
                done_text = f"{n_done} of {len(jobs)} {kind} are done"
                raise type(stop)(what, f"{problem}; {done_text}", fix)
            return ledger.replies

    async def _run(self, jobs: Sequence[Job], ledger: Ledger) -> PlumblineError | None:
        if self.server is None:
            replayer = Replayer(ledger)
            await run_jobs(jobs, replayer, ledger.replies, 1)
            return replayer.stop
        policy = self.server.policy
        meter = BudgetMeter(self.budget, ledger.spent)
        async with ChatClient(self.server.base_url, timeout_s=self.server.timeout_s) as client:
            asker = Asker(client, ledger, meter, self.price, policy)

            def on_done(n_done: int) -> None:
                if self.tell is not None:
                    self.tell(n_done, len(jobs), meter.spent)

            width = policy.concurrency
            await run_jobs(jobs, asker, ledger.replies, width, on_done)
            return asker.stop


def publish_rejects(build: Build, step: str, rejects: list[dict[str, object]]) -> None:
    """Replace a build step's rows of ``reject``."""
    rows = [{**row, "run_id": build.run_id} for row in rejects]
    partition = {"stage": "generate", "subject": f"{build.benchmark}/{step}"}
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
    """Progress bar of finished jobs, with the spending; ``kind`` names the unit."""
    with progress(kind) as update:
        yield lambda n_done, n_all, spent: update(n_done, n_all, note=spending(spent, currency))
