"""Sends requests concurrently, with retries, within a budget; the ledger records each attempt.

A request whose reply is in the ledger is never sent again. After an error (budget spent, no answer
from the server, key refused) no new request is sent. Requests in flight finish, and ``stop`` holds
the error.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from plumbline.eval_workers.chat.budget import BudgetMeter, Price, Spent, most, spent
from plumbline.eval_workers.chat.client import Failure, RetryPolicy
from plumbline.eval_workers.chat.ledger import Ledger, ServerAnswer
from plumbline.eval_workers.chat.requests import Reply, Request
from plumbline.warehouse.errors import BadInput, Interrupted, PlumblineError

_RESUME = "run the same command again to resume"
_FIXES = {
    "mend": "check the model's name, the key and the options; earlier replies are kept",
    "start": f"is it running at this address? docs/generation.md; then {_RESUME}",
    "resume": _RESUME,
}

#: A function from the replies so far to the requests that a job still needs; empty once it is done.
Job = Callable[[Mapping[str, Reply]], Sequence[Request]]


class Client(Protocol):
    """Makes one attempt; see ``client.ChatClient``."""

    def attempt(self, request: Request) -> Awaitable[ServerAnswer | Failure]:
        """Send a request once."""
        ...


class Asker:
    """Sends requests that have no reply in the ledger; ``stop`` is the error that ended sending."""

    def __init__(
        self,
        client: Client,
        ledger: Ledger,
        meter: BudgetMeter,
        price: Price | None,
        policy: RetryPolicy,
    ) -> None:
        self._client = client
        self._ledger = ledger
        self._meter = meter
        self._price = price
        self._policy = policy
        self._slots = asyncio.Semaphore(policy.concurrency)
        self._stopped = asyncio.Event()
        self._in_flight: dict[str, asyncio.Future[Reply | None]] = {}
        self.stop: PlumblineError | None = None

    async def ask(self, request: Request) -> Reply | None:
        """The reply to a request; ``None`` once asking has stopped."""
        key = request.request_id
        if key in self._ledger.replies:
            return self._ledger.replies[key]
        if key not in self._in_flight:  # two jobs may need the same request
            self._in_flight[key] = asyncio.ensure_future(self._ask(request))
            self._in_flight[key].add_done_callback(lambda _: self._in_flight.pop(key))
        return await self._in_flight[key]

    async def _ask(self, request: Request) -> Reply | None:
        async with self._slots:
            for n_attempts in range(1, self._policy.max_attempts + 1):
                if self.stop is not None:
                    return None
                outcome = await self._attempt(request)
                if not isinstance(outcome, Failure):
                    return outcome
                if error := outcome.final(n_attempts, self._policy, "the server", **_FIXES):
                    self._stop(error)
                    return None
                wait_s = self._policy.wait_s(n_attempts, outcome.retry_after_s, random.random())
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._stopped.wait(), wait_s)
        return None

    async def _attempt(self, request: Request) -> Reply | Failure | None:
        """Make one attempt, recorded in the ledger before and after; ``None`` if asking stops."""
        at_most = most(request, self._price)
        number = await self._meter.set_aside(at_most)
        if number is None:
            problem = f"the next request could exceed {self._meter.limit_reached_by(at_most)}"
            self._stop(Interrupted("the budget", problem, f"with a larger one {_RESUME}"))
            return None
        if self.stop is not None:
            await self._meter.settle(number, Spent())
            return None
        self._ledger.reserve(request, at_most, has_price=self._price is not None)
        start = time.monotonic()
        outcome = await self._client.attempt(request)
        seconds = time.monotonic() - start
        if isinstance(outcome, Failure):
            actual = at_most if outcome.charged else Spent(1)
            self._ledger.failed(request.request_id, outcome.error, actual, seconds)
            await self._meter.settle(number, actual)
            return outcome
        actual = self._cost(outcome, at_most)
        reply = self._ledger.replied(request.request_id, outcome, actual, seconds)
        await self._meter.settle(number, actual)
        return reply

    def _cost(self, answer: ServerAnswer, at_most: Spent) -> Spent:
        """The cost of an answer: no tokens if refused, ``at_most`` if a count is missing."""
        if answer.refused:
            return Spent(1)
        if answer.n_input_tokens is None or answer.n_output_tokens is None:
            return at_most
        return spent(answer.n_input_tokens, answer.n_output_tokens, self._price)

    def _stop(self, reason: PlumblineError) -> None:
        if self.stop is None:
            self.stop = reason
            self._stopped.set()


class Replayer:
    """Replies from the ledger alone; a request without a recorded reply sets ``stop``."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.stop: PlumblineError | None = None

    async def ask(self, request: Request) -> Reply | None:
        """The recorded reply, or ``None``."""
        reply = self._ledger.replies.get(request.request_id)
        if reply is None and self.stop is None:
            request_text = f"{request.purpose}, word {request.word!r}, {request.pronoun}"
            problem = f"the ledger has no reply to request {request.request_id} ({request_text})"
            fix = "build it with the server, or with the options it was recorded with"
            if request.purpose == "revise" and request.round > 1:
                fix += f", such as revise_rounds = {request.round - 1}"
            self.stop = BadInput("replay", problem, fix)
        return reply


async def run_jobs(
    jobs: Sequence[Job],
    asker: Asker | Replayer,
    replies: Mapping[str, Reply],
    width: int,
    on_done: Callable[[int], None] = lambda n_done: None,
) -> None:
    """Run jobs in order, ``width`` at a time, until all are done or ``asker`` has stopped.

    A job's requests are sent together. ``replies`` is a live view of the ledger. ``on_done`` is
    called after each job with the number of finished jobs.
    """
    waiting = iter(jobs)
    n_done = 0

    async def work() -> None:
        nonlocal n_done
        for job in waiting:
            if not await _finish(job, asker, replies):
                return
            n_done += 1
            on_done(n_done)

    await asyncio.gather(*(work() for _ in range(max(1, width))))


async def _finish(job: Job, asker: Asker | Replayer, replies: Mapping[str, Reply]) -> bool:
    while requests := job(replies):
        if asker.stop is not None:
            return False
        answers = await asyncio.gather(*(asker.ask(request) for request in requests))
        if any(answer is None for answer in answers):
            return False
    return True
