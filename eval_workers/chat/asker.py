"""Asks a server what plans need, within a budget; the ledger records each attempt.

A request whose reply is in the ledger is never sent again. After an error (budget spent, no answer
from the server, key refused) no new request is sent, and requests in flight finish. Without a
server, all replies come from the ledger.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from plumbline.eval_workers.chat.budget import BudgetMeter, Price, Spent, most, spent
from plumbline.eval_workers.chat.client import ChatClient
from plumbline.eval_workers.chat.ledger import Ledger
from plumbline.eval_workers.chat.requests import Failure, Reply, Request
from plumbline.eval_workers.chat.retries import Advice, RetryPolicy, retried
from plumbline.warehouse.errors import BadInput, PlumblineError

_RESUME = "run the same command again to resume"
_ADVICE = Advice(
    refused="check the model's name, the key and the options; earlier replies are kept",
    silent=f"is it running at this address? docs/generation.md; then {_RESUME}",
    long_wait=_RESUME,
)

_Result = TypeVar("_Result")
#: Gives the reply to a request; raises ``Stopped`` once asking has stopped.
Ask = Callable[[Request], Awaitable[Reply]]
#: Asks for what one part of a build needs, in the order in which it needs it; gives its result.
Plan = Callable[[Ask], Awaitable[_Result]]


class Stopped(Exception):
    """Asking has stopped; ``Asker.stop`` is the reason."""


class Asker:
    """Carries out plans; ``stop`` is the first error, after which nothing is sent."""

    def __init__(
        self,
        client: ChatClient | None,
        ledger: Ledger,
        meter: BudgetMeter,
        price: Price | None,
        policy: RetryPolicy,
        run_id: str,
    ) -> None:
        self._client = client
        self._ledger = ledger
        self._meter = meter
        self._price = price
        self._policy = policy
        self._run_id = run_id
        self._slots = asyncio.Semaphore(policy.concurrency)
        self._stopped = asyncio.Event()
        self._in_flight: dict[str, asyncio.Task[Reply]] = {}
        self.stop: PlumblineError | None = None

    async def run(
        self, plans: Sequence[Plan[_Result]], on_done: Callable[[int], None]
    ) -> dict[int, _Result]:
        """Carry out plans in order, as many at a time as requests; their results by position.

        A plan that a stop leaves without a reply has no result. ``on_done`` is called after each
        plan with the number of finished plans.
        """
        waiting = iter(enumerate(plans))
        results: dict[int, _Result] = {}

        async def work() -> None:
            for position, plan in waiting:
                try:
                    results[position] = await plan(self.ask)
                    on_done(len(results))
                except Stopped:
                    continue  # a later plan may find all its replies in the ledger

        await asyncio.gather(*(work() for _ in range(self._policy.concurrency)))
        await asyncio.gather(*self._in_flight.values(), return_exceptions=True)
        return results

    async def ask(self, request: Request) -> Reply:
        """The reply to a request; raises ``Stopped`` once asking has stopped."""
        key = request.request_id
        if key in self._ledger.replies:
            return self._ledger.replies[key]
        if self.stop is not None:
            raise Stopped
        if key not in self._in_flight:  # two plans may need the same request
            self._in_flight[key] = asyncio.create_task(self._send(request))
            self._in_flight[key].add_done_callback(lambda _: self._in_flight.pop(key))
        return await self._in_flight[key]

    async def _send(self, request: Request) -> Reply:
        async with self._slots:
            attempt = partial(self._attempt, request)
            try:
                return await retried(attempt, self._policy, "the server", _ADVICE, self._stopped)
            except PlumblineError as e:
                self.stop = self.stop or e
                self._stopped.set()
                raise Stopped from e

    async def _attempt(self, request: Request) -> Reply | Failure:
        """Make one attempt, recorded in the ledger before and after."""
        if self._client is None:
            raise _not_recorded(request)
        if self.stop is not None:
            raise Stopped
        at_most = most(request, self._price)
        await self._meter.set_aside(at_most)
        if self.stop is not None:  # it came while this request waited for the budget
            await self._meter.settle(at_most, Spent())
            raise Stopped
        has_price = self._price is not None
        row = self._ledger.begin(request, at_most, self._run_id, has_price=has_price)
        start = time.monotonic()
        outcome = await self._client.attempt(request)
        actual = self._cost(outcome, at_most)
        self._ledger.end(row, outcome, actual, round(time.monotonic() - start, 3))
        await self._meter.settle(at_most, actual)
        return outcome

    def _cost(self, outcome: Reply | Failure, at_most: Spent) -> Spent:
        """The cost of an attempt: no tokens if nothing is charged, else ``at_most`` if unknown."""
        if isinstance(outcome, Failure):
            return at_most if outcome.charged else Spent(1)
        if outcome.refused:
            return Spent(1)
        if outcome.n_input_tokens is None or outcome.n_output_tokens is None:
            return at_most
        return spent(outcome.n_input_tokens, outcome.n_output_tokens, self._price)


def _not_recorded(request: Request) -> BadInput:
    """The error of a replay for a request without a recorded reply."""
    request_text = f"{request.purpose}, word {request.word!r}, {request.pronoun}"
    problem = f"the ledger has no reply to request {request.request_id} ({request_text})"
    fix = "build it with the server, or with the options it was recorded with"
    if request.purpose == "revise" and request.round > 1:
        fix += f", such as revise_rounds = {request.round - 1}"
    return BadInput("replay", problem, fix)
