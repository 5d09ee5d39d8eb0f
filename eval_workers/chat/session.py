"""Running a build: jobs, server, budget and ledger put together; writes the tables.

Every function here may be called again after it was stopped, and then asks only what is not in the
ledger. With ``server=None`` it replays: replies come from the ledger, and nothing is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from plumbline.eval_workers.chat.asker import Asker, Job, Replayer, run_jobs
from plumbline.eval_workers.chat.budget import Budget, BudgetMeter, Price, Spent
from plumbline.eval_workers.chat.client import DEFAULT_URL, ChatClient
from plumbline.eval_workers.chat.ledger import Ledger, open_ledger
from plumbline.eval_workers.chat.requests import Reply
from plumbline.eval_workers.chat.retry_policy import RetryPolicy
from plumbline.warehouse.errors import PlumblineError, disk_problems
from plumbline.warehouse.storage.store import Store

#: Called with the jobs done, all jobs, and what has been spent.
Tell = Callable[[int, int, Spent], None]


@dataclass(frozen=True)
class Server:
    """Where to ask, and how. The key is read from the environment when asking begins."""

    base_url: str = DEFAULT_URL
    timeout_s: float = 120.0
    policy: RetryPolicy = field(default_factory=RetryPolicy)


@dataclass(frozen=True)
class Build:
    """A benchmark that is being written; ``server=None`` replays what the ledger holds.

    Attributes:
        budget: of the benchmark: what earlier runs spent counts.
        price: needed for ``budget.max_cost``; without one costs are NULL.
    """

    store: Store
    benchmark: str
    run_id: str
    server: Server | None
    budget: Budget = field(default_factory=Budget)
    price: Price | None = None
    tell: Tell | None = None

    def run(self, jobs: Sequence[Job], kind: str) -> Mapping[str, Reply]:
        """Bring jobs to their end and make ``generation_request`` of the ledger; all its replies.

        ``kind`` names the jobs in the line of an error. Raises ``Interrupted`` when the budget does
        not allow a further request or the server does not answer, ``BadInput`` when the server
        refuses what is asked, a replay finds no reply, or the disk can't be written,
        ``UsageProblem`` while another process builds this benchmark. What was answered is kept.
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
                left = f"{n_done} of {len(jobs)} {kind} are done"
                raise type(stop)(what, f"{problem}; {left}", fix)
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
    """Put the rejects of a step in the place of those it had."""
    rows = [{**row, "run_id": build.run_id} for row in rejects]
    partition = {"stage": "generate", "subject": f"{build.benchmark}/{step}"}
    with disk_problems(build.store.root):
        build.store.replace("reject", rows, partition, build.run_id)
