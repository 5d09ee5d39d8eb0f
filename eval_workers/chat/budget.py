"""A build's budget of requests, tokens and money: a request that could exceed it isn't sent.

Before a request is sent, the most that it can cost is set aside: one token per byte of its prompt,
``FRAME_TOKENS``, and the longest reply it allows. After the reply, the tokens that the server
reports replace this estimate. A benchmark has one budget: the spending of earlier runs counts.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

from plumbline.eval_workers.chat.requests import Request
from plumbline.warehouse.errors import Interrupted, UsageProblem
from plumbline.warehouse.text.toml_file import Amount, Text, load, toml_table

#: Tokens set aside for the text around a message: roles, turns, a short system prompt; and the
#: expected number.
FRAME_TOKENS, _EXPECTED_FRAME_TOKENS = 64, 8
_CHARACTERS_A_TOKEN = 4


def expected_tokens(prompt: str) -> int:
    """Estimate the tokens of an English prompt, including those that a server adds around it."""
    return _EXPECTED_FRAME_TOKENS + math.ceil(len(prompt) / _CHARACTERS_A_TOKEN)


def money(amount: float, currency: str) -> str:
    """An amount as text: to the cent; below a cent, to two significant digits.

    >>> money(1234.5, "EUR"), money(0.00342, "EUR"), money(0.0, "EUR")
    ('1,234.50 EUR', '0.0034 EUR', '0.00 EUR')
    """
    digits = 1 - math.floor(math.log10(amount)) if 0 < amount < 0.01 else 2
    return f"{amount:,.{digits}f} {currency}"


@toml_table
class Rates:
    """A model's prices per million tokens."""

    input: Amount
    output: Amount


@toml_table
class Price(Rates):
    """``Rates`` with their currency."""

    currency: str

    def cost(self, n_input: float, n_output: float) -> float:
        """Cost of ``n_input`` and ``n_output`` tokens."""
        return (n_input * self.input + n_output * self.output) / 1e6


@dataclass(frozen=True)
class Budget:
    """Limits of a build; ``None`` for no limit. ``max_cost`` is in the price table's currency."""

    max_requests: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None


@dataclass(frozen=True)
class Spent:
    """Number of requests sent (every attempt counts), tokens of prompts and replies, and money."""

    n_requests: int = 0
    n_tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Spent(*(mine + theirs for mine, theirs in pairs))

    def excess(self, budget: Budget) -> str | None:
        """The first limit that this spending exceeds, in words; ``None`` if it exceeds none."""
        if budget.max_requests is not None and self.n_requests > budget.max_requests:
            return f"{budget.max_requests} requests"
        if budget.max_tokens is not None and self.n_tokens > budget.max_tokens:
            return f"{budget.max_tokens} tokens"
        if budget.max_cost is not None and self.cost > budget.max_cost * (1 + 1e-12):
            return f"a cost of {budget.max_cost:g}"
        return None


def most(request: Request, price: Price | None) -> Spent:
    """The most that one attempt at a request can cost.

    >>> from plumbline.eval_workers.chat.requests import ChatModel
    >>> request = ChatModel("m").request("judge", "Is it?", word="tea", pronoun="she", round=1,
    ...                                  temperature=0, max_tokens=30)
    >>> most(request, None)
    Spent(n_requests=1, n_tokens=100, cost=0.0)
    """
    n_input = len(request.prompt.encode("utf-8", "replace")) + FRAME_TOKENS
    return spent(n_input, request.max_tokens, price)


def spent(n_input: int, n_output: int, price: Price | None) -> Spent:
    """Spending on one request with these tokens; the cost is 0 without a price."""
    cost = price.cost(n_input, n_output) if price else 0.0
    return Spent(1, n_input + n_output, cost)


class BudgetMeter:
    """Spending so far and amounts set aside, checked against a budget."""

    def __init__(self, budget: Budget, already: Spent) -> None:
        self._budget = budget
        self.spent = already
        self._aside: list[Spent] = []
        self._settled = asyncio.Condition()

    async def set_aside(self, amount: Spent) -> None:
        """Set an amount aside; raises ``Interrupted`` if it exceeds the budget.

        If the amount fits only after requests in flight are settled, waits for these.
        """
        async with self._settled:
            while sum(self._aside, self.spent + amount).excess(self._budget):
                if limit := (self.spent + amount).excess(self._budget):
                    problem = f"the next request could exceed {limit}"
                    fix = "with a larger one run the same command again to resume"
                    raise Interrupted("the budget", problem, fix)
                await self._settled.wait()
            self._aside.append(amount)

    async def settle(self, amount: Spent, actual: Spent) -> None:
        """Replace an amount set aside by the actual cost."""
        async with self._settled:
            self._aside.remove(amount)
            self.spent += actual
            self._settled.notify_all()


@toml_table
class _Prices:
    currency: Text
    models: Mapping[str, Rates]


def price_of(model: str, path: Path) -> Price:
    """Read the price of a model from a TOML file.

    It holds ``currency = "EUR"``, and for each model ``[models."NAME"]`` with the prices ``input``
    and ``output`` per million tokens. Raises ``UsageProblem`` if the file does not exist or lacks
    the model, ``BadInput`` for any other content.
    """
    what = f"prices {path}"
    table = load(_Prices, path, what)
    if model not in table.models:
        raise UsageProblem(what, f"has no price of {model}", f'add [models."{model}"]')
    rates = table.models[model]
    return Price(rates.input, rates.output, table.currency)
