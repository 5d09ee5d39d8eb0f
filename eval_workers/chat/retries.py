"""The one retry loop of all requests to servers."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from plumbline.eval_workers.chat.requests import Failure
from plumbline.warehouse.errors import BadInput, Interrupted

if TYPE_CHECKING:
    from plumbline.eval_workers.chat.client import Server

_Outcome = TypeVar("_Outcome")
_CHECK = "check the model's name, the key and the options; earlier replies are kept"
_RESUME = "run the same command again to resume"


async def retried(
    attempt: Callable[[], Awaitable[_Outcome | Failure]], server: Server, stopped: asyncio.Event
) -> _Outcome:
    """Attempt a request until it succeeds, with a wait after each failure.

    Each failure doubles the wait, up to ``server.longest_wait_s``. A server may ask for a longer
    wait within that limit. A wait ends early once ``stopped`` is set. Raises ``BadInput`` for a
    refused request, ``Interrupted`` after the last attempt or if the server asks for a wait beyond
    the limit, and what ``attempt`` raises.
    """
    name = f"server {server.base_url}"
    for n_attempts in itertools.count(1):
        outcome = await attempt()
        if not isinstance(outcome, Failure):
            return outcome
        if outcome.permanent:
            raise BadInput(name, f"refuses the request: {outcome.error}", _CHECK)
        if not outcome.retry or n_attempts == server.max_attempts:
            tries = f"{n_attempts} attempts" if n_attempts > 1 else "one attempt"
            fix = f"is it running at this address? then {_RESUME}"
            raise Interrupted(name, f"no reply after {tries}: {outcome.error}", fix)
        asked_s = outcome.retry_after_s or 0.0
        if asked_s > server.longest_wait_s:
            raise Interrupted(name, f"asks to wait {asked_s:.0f} s ({outcome.error})", _RESUME)
        doubled_s = min(server.first_wait_s * 2.0 ** (n_attempts - 1), server.longest_wait_s)
        with suppress(TimeoutError):
            wait_s = max(doubled_s, asked_s) * random.uniform(1.0, 1.25)
            await asyncio.wait_for(stopped.wait(), wait_s)
    raise AssertionError("the last attempt returns or raises")
