"""Limit the requests and tokens of a build. A request that could exceed the budget isn't sent.

Before a request is sent, the most that it can cost is set aside. This is one token per byte of the
prompt, plus ``FRAME_TOKENS``, plus the longest reply that the request allows. After the reply, the
tokens that the server reports replace this estimate. A benchmark has one budget, which includes the
spending of earlier runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from plumbline.eval_workers.chat.requests import Request
from plumbline.warehouse.errors import Interrupted

#: Tokens set aside for the text around a message: roles, turns, a short system prompt.
FRAME_TOKENS = 64


def expected_tokens(prompt: str) -> int:
    """Estimate the tokens of an English prompt, including tokens that the server adds around it."""
    return 8 + math.ceil(len(prompt) / 4)


@dataclass(frozen=True)
class Budget:
    """The limits of a build. ``None`` means no limit."""

    max_requests: int | None = None
    max_tokens: int | None = None


UNLIMITED = Budget()


@dataclass(frozen=True)
class Spent:
    """The number of requests sent, and of tokens in prompts and replies. Every attempt counts.

    >>> str(Spent(3, 1200))
    '3 requests, 1,200 tokens'
    """

    n_requests: int = 0
    n_tokens: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.n_requests + other.n_requests, self.n_tokens + other.n_tokens)

    def __str__(self) -> str:
        return f"{self.n_requests:,} requests, {self.n_tokens:,} tokens"

    def excess(self, budget: Budget) -> str | None:
        """Say which limit this spending exceeds. Return ``None`` if it exceeds no limit."""
        if budget.max_requests is not None and self.n_requests > budget.max_requests:
            return f"{budget.max_requests} requests"
        if budget.max_tokens is not None and self.n_tokens > budget.max_tokens:
            return f"{budget.max_tokens} tokens"
        return None


def most(request: Request) -> Spent:
    """Return the most that one attempt at a request can cost.

    >>> from plumbline.eval_workers.chat.requests import ChatModel
    >>> request = ChatModel("m").request("judge", "Is it?", word="tea", pronoun="she", round=1,
    ...                                  temperature=0, max_tokens=30)
    >>> most(request)
    Spent(n_requests=1, n_tokens=100)
    """
    n_input = len(request.prompt.encode("utf-8", "replace")) + FRAME_TOKENS
    return Spent(1, n_input + request.max_tokens)


class BudgetMeter:
    """Keeps the spending and the amounts set aside within a budget."""

    def __init__(self, budget: Budget, already: Spent) -> None:
        self._budget = budget
        self.spent = already
        self._aside: list[Spent] = []

    def set_aside(self, amount: Spent) -> None:
        """Set an amount aside. Raises ``Interrupted`` if it could exceed the budget."""
        if limit := sum(self._aside, self.spent + amount).excess(self._budget):
            problem = f"the next request could exceed {limit}"
            fix = "raise it and run the same command again to resume"
            raise Interrupted("the budget", problem, fix)
        self._aside.append(amount)

    def settle(self, amount: Spent, actual: Spent) -> None:
        """Replace an amount that was set aside with the actual cost."""
        self._aside.remove(amount)
        self.spent += actual
