"""What a benchmark is built with: the keys of its configuration file, and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from plumbline.eval_workers import spec_file
from plumbline.eval_workers.generation import prompts
from plumbline.eval_workers.generation.asker import Manners
from plumbline.eval_workers.generation.budget import Budget, Price, price_of
from plumbline.eval_workers.generation.client import DEFAULT_URL, checked_url
from plumbline.eval_workers.generation.requests import ChatModel
from plumbline.eval_workers.generation.session import Server
from plumbline.eval_workers.generation.write import WritingSpec
from plumbline.warehouse.errors import UsageProblem

TokenLimit = Literal["max_tokens", "max_completion_tokens"]


@dataclass(frozen=True)
class BuildSpec:
    """What to build a benchmark with. Paths are relative to the working directory.

    Attributes:
        corpus: whose seed words are used, and whose leans give MaxPMI; may be empty with ``words``.
        contrast: contrast of those leans.
        seed: of the sample of seed words, and of the offline writer.
        n_words: the first so many of the sample; ``None`` for all.
        words: seed words in place of a sample.
        model, base_url, timeout_s, concurrency: who is asked, where, and how.
        token_limit, send_seed: what the server takes, see ``ChatModel``.
        n_sentences: wanted for each word and pronoun.
        max_words, temperature, generate_rounds, revise_rounds: see ``WritingSpec``.
        judge: whether both sides of each pair are judged; without, ``is_natural`` is NULL.
        naturalness_model: hub id or directory of a model for a second opinion on the pairs, see
            ``opinion``; none without it.
        max_difference_nats_per_token: most that the sides of a natural pair differ by under it.
        eta: bound on \\|MaxPMI\\|, in nats, of the pairs that go out with the card.
        prompts, prices: files in place of the wordings that come with Plumbline, and of no prices.
        max_requests, max_tokens, max_cost: the budget; ``None`` for no limit.
    """

    corpus: str = ""
    contrast: str = "she/he"
    seed: int = 0
    n_words: int | None = None
    words: tuple[str, ...] = ()
    model: str = ""
    base_url: str = DEFAULT_URL
    timeout_s: float = 120.0
    concurrency: int = 8
    token_limit: TokenLimit = "max_tokens"
    send_seed: bool = True
    n_sentences: int = 5
    max_words: int = 10
    temperature: float = 0.7
    generate_rounds: int = 3
    revise_rounds: int = 10
    judge: bool = True
    naturalness_model: str = ""
    max_difference_nats_per_token: float = 1.0
    eta: float = 0.65
    prompts: str = ""
    prices: str = ""
    max_requests: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None

    def __post_init__(self) -> None:
        for name in ("n_words", "n_sentences", "max_words", "concurrency", "timeout_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageProblem(f"{name} = {value}", "has to be more than 0")
        limits = ("max_difference_nats_per_token", "max_requests", "max_tokens", "max_cost")
        for name in ("seed", "temperature", "eta", *limits):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise UsageProblem(f"{name} = {value}", "has to be 0 or more")
        limit = self.max_difference_nats_per_token
        if limit != BuildSpec.max_difference_nats_per_token and not self.naturalness_model:
            fix = "add naturalness_model = ID_OR_PATH"
            raise UsageProblem("max_difference_nats_per_token", "needs a model that scores", fix)
        checked_url(self.base_url)  # it is recorded with the run
        if self.max_cost is not None and not self.prices:
            raise UsageProblem("max_cost", "needs the model's price", "add prices = FILE")

    def writing(self) -> WritingSpec:
        """What is to be written. Raises ``UsageProblem`` without a model, and as ``prompts.load``.

        >>> BuildSpec(model="m", max_words=7).writing().max_words
        7
        """
        if not self.model:
            fix = "give --model NAME, or --offline for sentences of a fixed grammar"
            raise UsageProblem("model", "is not given", fix)
        return WritingSpec(
            ChatModel(self.model, 0 if self.send_seed else None, self.token_limit),
            prompts.load(Path(self.prompts) if self.prompts else None),
            n_sentences=self.n_sentences,
            max_words=self.max_words,
            temperature=self.temperature,
            revise_rounds=self.revise_rounds,
            generate_rounds=self.generate_rounds,
        )

    def server(self) -> Server:
        """Where to ask."""
        return Server(self.base_url, self.timeout_s, Manners(concurrency=self.concurrency))

    def budget(self) -> Budget:
        """What the build may cost."""
        return Budget(self.max_requests, self.max_tokens, self.max_cost)

    def price(self) -> Price | None:
        """The model's price; ``None`` without a price table. Raises as ``price_of``."""
        return price_of(self.model, Path(self.prices)) if self.prices else None


def load(path: Path | None, given: Mapping[str, object]) -> BuildSpec:
    """Read a configuration file, if one is named; see ``spec_file.load``.

    >>> load(None, {"model": "m", "n_words": None}).model
    'm'
    """
    return spec_file.load(BuildSpec(), path, given)
