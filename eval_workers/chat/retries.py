"""The one retry loop of all requests to servers."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from plumbline.eval_workers.chat.requests import Failure
from plumbline.warehouse.errors import BadInput, Interrupted

_Outcome = TypeVar("_Outcome")


@dataclass(frozen=True)
class RetryPolicy:
    """Number of requests at the same time, attempts at each, and waits between them in seconds.

    Each failure doubles the wait, up to ``longest_wait_s``. If a server asks for a longer wait than
    that, the build stops.
    """

    concurrency: int = 8
    max_attempts: int = 6
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0

    def wait_s(self, n_failures: int, retry_after_s: float | None, chance: float) -> float:
        """Seconds to wait after ``n_failures``; ``chance`` in [0, 1) sets the jitter.

        The doubled wait times 0.5 to 1; if the server asks for more, its wait plus up to 0.25 s.

        >>> policy = RetryPolicy()
        >>> policy.wait_s(3, None, 0.0), policy.wait_s(3, None, 0.5), policy.wait_s(3, 9.0, 0.0)
        (2.0, 3.0, 9.0)
        """
        doubled = min(self.first_wait_s * 2.0 ** (n_failures - 1), self.longest_wait_s)
        asked = (retry_after_s or 0.0) + min(doubled, 1.0) * chance / 4
        return max(doubled * (1 + chance) / 2, asked)


@dataclass(frozen=True)
class Advice:
    """What to do if a server refuses a request, does not answer, or asks for a long wait."""

    refused: str
    silent: str
    long_wait: str


async def retried(
    attempt: Callable[[], Awaitable[_Outcome | Failure]],
    policy: RetryPolicy,
    server: str,
    advice: Advice,
    stopped: asyncio.Event,
) -> _Outcome:
    """Attempt a request until it succeeds; ``server`` names the server in errors.

    A wait ends early once ``stopped`` is set. Raises ``BadInput`` for a refused request,
    ``Interrupted`` after the last attempt or for a too long wait, and what ``attempt`` raises.
    """
    for n_attempts in itertools.count(1):
        outcome = await attempt()
        if not isinstance(outcome, Failure):
            return outcome
        if outcome.permanent:
            raise BadInput(server, f"refuses the request: {outcome.error}", advice.refused)
        if not outcome.retry or n_attempts == policy.max_attempts:
            tries = f"{n_attempts} attempts" if n_attempts > 1 else "one attempt"
            raise Interrupted(server, f"no reply after {tries}: {outcome.error}", advice.silent)
        if (outcome.retry_after_s or 0.0) > policy.longest_wait_s:
            problem = f"asks to wait {outcome.retry_after_s:.0f} s ({outcome.error})"
            raise Interrupted(server, problem, advice.long_wait)
        with suppress(TimeoutError):
            wait_s = policy.wait_s(n_attempts, outcome.retry_after_s, random.random())
            await asyncio.wait_for(stopped.wait(), wait_s)
    raise AssertionError("the last attempt returns or raises")
