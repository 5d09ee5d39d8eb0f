"""Send requests to a server, within a budget, and record each attempt in the ledger.

Before a request is sent, its largest possible cost is set aside. A request that could exceed the
budget isn't sent. After the reply, the cost that the server reports replaces this amount.

A request whose reply is in the ledger is never sent again, so a stopped build can be run again.
After an error (the budget is spent, or the server doesn't answer or refuses the key), no new
request is sent, but requests in flight finish. With a budget of 0 requests, all replies come from
the ledger, and no connection is opened.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar

from plumbline.eval_workers.chat.client import ChatClient, ServerOptions, retried
from plumbline.eval_workers.chat.ledger import Ledger, open_ledger
from plumbline.eval_workers.chat.requests import Failure, Reply, Request, Spent
from plumbline.warehouse.errors import BadInput, Interrupted, PlumblineError, disk_problems
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress

_Result = TypeVar("_Result")
#: A function that returns the reply to a request. It raises ``_Stopped`` after an error.
Ask: TypeAlias = Callable[[Request], Awaitable[Reply]]
#: A function that makes one part of a build. It sends one request after another with ``Ask``.
Plan: TypeAlias = Callable[[Ask], Awaitable[_Result]]


@dataclass(frozen=True)
class Build:
    """Sends the requests for a benchmark to a server, and records them in a ledger."""

    store: Store
    benchmark: str
    run_id: str
    server: ServerOptions

    def run(self, plans: Sequence[Plan[_Result]], kind: str) -> list[_Result]:
        """Run plans, each of which makes one part of a build. Return their results in order.

        Publishes the ledger as ``generation_request``, even after an error. At most
        ``server.concurrency`` plans run at the same time. Messages call the plans ``kind``, such as
        `asks`. Raises ``Interrupted`` if the budget doesn't allow the next request, or if the
        server doesn't answer. Raises ``BadInput`` if the server refuses a request, if the budget is
        0 and a reply isn't stored, or if the disk can't be written to. Raises ``UsageProblem`` if
        another process is building this benchmark.
        """
        results: dict[int, _Result] = {}
        waiting = iter(enumerate(plans))
        with (
            progress(kind) as tell,
            disk_problems(self.store.root),
            open_ledger(self.store, self.benchmark) as ledger,
        ):
            asker = _Asker(self, ledger)

            async def work() -> None:
                for position, plan in waiting:
                    try:
                        results[position] = await plan(asker.ask)
                    except _Stopped:
                        continue  # other plans may find all replies in the ledger
                    tell(len(results), len(plans), note=str(asker.spent))

            try:
                asyncio.run(asker.run(work))
            finally:
                ledger.publish(self.store, self.benchmark, self.run_id)
        if (stop := asker.stop) is not None:
            what, problem, fix = stop.args
            done = f"{len(results)} of {len(plans)} {kind} are done"
            raise type(stop)(what, f"{problem}; {done}", fix)
        return [results[position] for position in range(len(plans))]

    def replies(self, requests: Sequence[Request], kind: str) -> list[Reply]:
        """Return each request's reply, in order. Send equal requests only once.

        Raises the errors of ``run``.
        """
        unique = {request.request_id: request for request in requests}
        plans = [partial(_reply, request) for request in unique.values()]
        found = dict(zip(unique, self.run(plans, kind), strict=True))
        return [found[request.request_id] for request in requests]


async def _reply(request: Request, ask: Ask) -> Reply:
    return await ask(request)


class _Stopped(Exception):
    """Raised by ``_Asker.ask`` after an error. ``_Asker.stop`` has the error."""


class _Asker:
    """Sends a build's requests. The first error is stored in ``stop``, and nothing more is sent."""

    def __init__(self, build: Build, ledger: Ledger) -> None:
        self._run_id, self._ledger, self._server = build.run_id, ledger, build.server
        self._slots = asyncio.Semaphore(self._server.concurrency)
        self._stopped = asyncio.Event()
        self._aside = list[Spent]()
        self.spent = ledger.spent
        self.stop: PlumblineError | None = None

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run ``concurrency`` copies of ``work`` at the same time. Return when all have ended."""
        n = self._server.concurrency
        client = nullcontext() if self._server.max_requests == 0 else ChatClient(self._server)
        async with client as self._client:
            await asyncio.gather(*(work() for _ in range(n)))
            for _ in range(n):  # wait for requests that are still in flight
                await self._slots.acquire()

    async def ask(self, request: Request) -> Reply:
        """Return the reply to a request. Raise ``_Stopped`` if an error has stopped the build."""
        if (reply := self._ledger.replies.get(request.request_id)) is not None:
            return reply
        url = self._server.base_url
        async with self._slots:
            try:
                return await retried(partial(self._attempt, request), url, self._stopped)
            except PlumblineError as e:
                self.stop = self.stop or e
                self._stopped.set()
                raise _Stopped from e

    async def _attempt(self, request: Request) -> Reply | Failure:
        """Make one attempt. Record it in the ledger before it starts and after it ends."""
        if self.stop is not None:  # an error came while this request waited
            raise _Stopped
        if self._client is None:
            raise BadInput("a request", "has no stored reply", "raise --max-requests to send it")
        at_most, actual = request.most, Spent()
        limits = self._server.max_requests, self._server.max_tokens
        if limit := sum(self._aside, self.spent + at_most).excess(*limits):
            problem = f"the next request could exceed {limit}"
            fix = "raise it and run the same command again to resume"
            raise Interrupted("the budget", problem, fix)
        self._aside.append(at_most)
        try:
            row = self._ledger.begin(request, at_most, self._run_id)
            start = time.monotonic()
            actual = at_most  # the cost if the attempt raises an error
            outcome = await self._client.attempt(request)
            actual = _cost(outcome, at_most)
            self._ledger.end(row, outcome, actual, round(time.monotonic() - start, 3))
        finally:
            self._aside.remove(at_most)
            self.spent += actual
        return outcome


def _cost(outcome: Reply | Failure, at_most: Spent) -> Spent:
    """Return an attempt's cost. If the server doesn't report the cost, return ``at_most``."""
    if isinstance(outcome, Failure):
        return at_most if outcome.charged else Spent(1)
    if outcome.refused:
        return Spent(1)
    if outcome.n_input_tokens is None or outcome.n_output_tokens is None:
        return at_most
    return Spent(1, outcome.n_input_tokens + outcome.n_output_tokens)
