"""Asks a server what plans need, within a budget; the ledger records each attempt.

A request whose reply is in the ledger is never sent again, so a stopped build can be run again.
After an error (budget spent, no answer from the server, key refused) no new request is sent, and
requests in flight finish. With ``server=None`` a build replays: all replies come from the ledger.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias, TypeVar

from plumbline.eval_workers.chat.budget import Budget, BudgetMeter, Price, Spent, money, most, spent
from plumbline.eval_workers.chat.client import DEFAULT_URL, ChatClient
from plumbline.eval_workers.chat.ledger import Ledger, open_ledger
from plumbline.eval_workers.chat.requests import Failure, Reply, Request
from plumbline.eval_workers.chat.retries import Advice, RetryPolicy, retried
from plumbline.warehouse.errors import BadInput, PlumblineError, disk_problems
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress

_RESUME = "run the same command again to resume"
_ADVICE = Advice(
    refused="check the model's name, the key and the options; earlier replies are kept",
    silent=f"is it running at this address? docs/generation.md; then {_RESUME}",
    long_wait=_RESUME,
)

_Result = TypeVar("_Result")
#: Gives the reply to a request; raises ``_Stopped`` once asking has stopped.
Ask: TypeAlias = Callable[[Request], Awaitable[Reply]]
#: Asks for what one part of a build needs, in the order in which it needs it; gives its result.
Plan: TypeAlias = Callable[[Ask], Awaitable[_Result]]
#: Called with the number of finished plans, the number of all plans, and the spending so far.
Tell: TypeAlias = Callable[[int, int, Spent], None]


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

    def run(self, plans: Sequence[Plan[_Result]], kind: str) -> list[_Result]:
        """Carry out plans, publish the ledger as ``generation_request``; the plans' results.

        ``kind`` names the plans in errors and in the progress bar. Replies before an error are
        kept. Raises ``Interrupted`` when the budget does not allow a further request or the server
        does not answer; ``BadInput`` when the server refuses a request, a replay lacks a reply, or
        the disk can't be written; ``UsageProblem`` while another process builds this benchmark.
        """
        with (
            _asking_bar(kind, self.price.currency if self.price else None) as tell,
            disk_problems(self.store.root),
            open_ledger(self.store, self.benchmark) as ledger,
        ):
            try:
                stop, results = asyncio.run(self._run(plans, ledger, tell))
            finally:
                ledger.publish(self.store, self.benchmark, self.run_id)
        if stop is not None:
            what, problem, fix = stop.args
            done_text = f"{len(results)} of {len(plans)} {kind} are done"
            raise type(stop)(what, f"{problem}; {done_text}", fix)
        return [results[position] for position in range(len(plans))]

    def replies(self, requests: Sequence[Request], kind: str) -> list[Reply]:
        """The reply to each request, in order; raises as ``run``."""
        return self.run([partial(_reply, request) for request in requests], kind)

    async def _run(
        self, plans: Sequence[Plan[_Result]], ledger: Ledger, tell: Tell
    ) -> tuple[PlumblineError | None, dict[int, _Result]]:
        """Carry out plans in order, as many at a time as requests; their results by position.

        A plan that a stop leaves without a reply has no result.
        """
        waiting = iter(enumerate(plans))
        results: dict[int, _Result] = {}

        async def work(asker: _Asker) -> None:
            for position, plan in waiting:
                try:
                    results[position] = await plan(asker.ask)
                except _Stopped:
                    continue  # a later plan may find all its replies in the ledger
                tell(len(results), len(plans), asker.meter.spent)

        async with self._client() as client:
            asker = _Asker(self, client, ledger)
            await asyncio.gather(*(work(asker) for _ in range(asker.policy.concurrency)))
            await asyncio.gather(*asker.in_flight.values(), return_exceptions=True)
        return asker.stop, results

    def _client(self) -> ChatClient | nullcontext[None]:
        if self.server is None:
            return nullcontext()
        return ChatClient(self.server.base_url, timeout_s=self.server.timeout_s)


async def _reply(request: Request, ask: Ask) -> Reply:
    return await ask(request)


class _Stopped(Exception):
    """Asking has stopped; ``_Asker.stop`` is the reason."""


class _Asker:
    """Sends a build's requests; ``stop`` is the first error, after which nothing is sent."""

    def __init__(self, build: Build, client: ChatClient | None, ledger: Ledger) -> None:
        self._build, self._client, self._ledger = build, client, ledger
        self.meter = BudgetMeter(build.budget, ledger.spent)
        self.policy = build.server.policy if build.server else RetryPolicy(concurrency=1)
        self._slots = asyncio.Semaphore(self.policy.concurrency)
        self._stopped = asyncio.Event()
        self.in_flight: dict[str, asyncio.Task[Reply]] = {}
        self.stop: PlumblineError | None = None

    async def ask(self, request: Request) -> Reply:
        """The reply to a request; raises ``_Stopped`` once asking has stopped."""
        key = request.request_id
        if key in self._ledger.replies:
            return self._ledger.replies[key]
        if self.stop is not None:
            raise _Stopped
        if key not in self.in_flight:  # two plans may need the same request
            self.in_flight[key] = asyncio.create_task(self._send(request))
            self.in_flight[key].add_done_callback(lambda _: self.in_flight.pop(key))
        return await self.in_flight[key]

    async def _send(self, request: Request) -> Reply:
        async with self._slots:
            attempt = partial(self._attempt, request)
            try:
                return await retried(attempt, self.policy, "the server", _ADVICE, self._stopped)
            except PlumblineError as e:
                self.stop = self.stop or e
                self._stopped.set()
                raise _Stopped from e

    async def _attempt(self, request: Request) -> Reply | Failure:
        """Make one attempt, recorded in the ledger before and after."""
        if self._client is None:
            raise _not_recorded(request)
        price = self._build.price
        at_most, actual = most(request, price), Spent()
        await self.meter.set_aside(at_most)
        try:
            if self.stop is not None:  # it may have come while this request waited for the budget
                raise _Stopped
            has_price = price is not None
            row = self._ledger.begin(request, at_most, self._build.run_id, has_price=has_price)
            start = time.monotonic()
            actual = at_most  # what an attempt that raises an error counts as
            outcome = await self._client.attempt(request)
            actual = _cost(outcome, at_most, price)
            self._ledger.end(row, outcome, actual, round(time.monotonic() - start, 3))
        finally:
            await self.meter.settle(at_most, actual)
        return outcome


def _cost(outcome: Reply | Failure, at_most: Spent, price: Price | None) -> Spent:
    """The cost of an attempt: no tokens if nothing is charged, ``at_most`` if it is unknown."""
    if isinstance(outcome, Failure):
        return at_most if outcome.charged else Spent(1)
    if outcome.refused:
        return Spent(1)
    if outcome.n_input_tokens is None or outcome.n_output_tokens is None:
        return at_most
    return spent(outcome.n_input_tokens, outcome.n_output_tokens, price)


def _not_recorded(request: Request) -> BadInput:
    """The error of a replay for a request without a recorded reply."""
    request_text = f"{request.purpose}, word {request.word!r}, {request.pronoun}"
    problem = f"the ledger has no reply to request {request.request_id} ({request_text})"
    fix = "build it with the server, or with the options it was recorded with"
    return BadInput("replay", problem, fix)


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
def _asking_bar(kind: str, currency: str | None) -> Iterator[Tell]:
    """Progress bar of finished plans, with the spending; ``kind`` names the unit."""
    with progress(kind) as update:
        yield lambda n_done, n_all, spent: update(n_done, n_all, note=spending(spent, currency))
