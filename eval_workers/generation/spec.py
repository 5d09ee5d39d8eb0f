"""What a benchmark is built with: the keys of its configuration file, and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.chat.budget import Budget, Price, price_of
from plumbline.eval_workers.chat.client import DEFAULT_URL, checked_url
from plumbline.eval_workers.chat.requests import ChatModel, TokenLimit
from plumbline.eval_workers.chat.retry_policy import RetryPolicy
from plumbline.eval_workers.chat.session import Server
from plumbline.eval_workers.generation import prompts
from plumbline.eval_workers.generation.write import WritingSpec
from plumbline.warehouse import options
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT


@dataclass(frozen=True, config=STRICT)
class BuildSpec:
    """What to build a benchmark with. Paths are relative to the working directory.

    ``corpus`` may be empty with ``words``, which replace a sample of its seed words. ``contrast``
    and ``eta`` are those of MaxPMI. ``token_limit``, ``send_seed``: see ``ChatModel``;
    ``max_words``, ``temperature``, ``generate_rounds``, ``revise_rounds``: see ``WritingSpec``.
    Without ``judge`` ``is_natural`` is NULL. ``naturalness_model``: see ``opinion``.
    """

    corpus: Annotated[str, Field(description="Corpus whose seed words are used.")] = ""
    contrast: Annotated[str, Field(description="Contrast of the leans.")] = "she/he"
    seed: Annotated[int, Field(ge=0, description="Seed of the sample of words.")] = 0
    n_words: Annotated[
        int | None, Field(gt=0, description="The first so many seed words of the sample.")
    ] = None
    words: Annotated[
        tuple[str, ...], Field(description="Seed words instead of a sample, by commas.")
    ] = ()
    model: Annotated[str, Field(description="Model, as the server names it.")] = ""
    base_url: Annotated[str, Field(description="Address of the server.")] = DEFAULT_URL
    timeout_s: Annotated[float, Field(gt=0, description="Seconds until a request fails.")] = 120.0
    concurrency: Annotated[int, Field(gt=0, description="Requests at a time.")] = 8
    token_limit: Annotated[
        TokenLimit, Field(description="The server's name for the limit on tokens.")
    ] = "max_tokens"
    send_seed: Annotated[bool, Field(description="Send the server a seed.")] = True
    n_sentences: Annotated[int, Field(gt=0, description="Sentences for each word and pronoun.")] = 5
    max_words: Annotated[int, Field(gt=0, description="Most words of a sentence.")] = 10
    temperature: Annotated[float, Field(ge=0, description="Temperature of writing.")] = 0.7
    generate_rounds: Annotated[int, Field(description="Rounds of writing for a word.")] = 3
    revise_rounds: Annotated[int, Field(description="Rounds of revising a sentence.")] = 10
    judge: Annotated[bool, Field(description="Have both sides of pairs judged.")] = True
    naturalness_model: Annotated[
        str, Field(description="Model for a second opinion: hub id or directory.")
    ] = ""
    max_difference_nats_per_token: Annotated[
        float, Field(ge=0, description="Most nats per token its natural pairs' sides differ by.")
    ] = 1.0
    eta: Annotated[
        float, Field(ge=0, description="Bound on |MaxPMI|, in nats, of pairs that are shared.")
    ] = 0.65
    prompts: Annotated[str, Field(description="Wordings of your own (TOML).")] = ""
    prices: Annotated[str, Field(description="Price table (TOML).")] = ""
    max_requests: Annotated[int | None, Field(ge=0, description="Most requests.")] = None
    max_tokens: Annotated[int | None, Field(ge=0, description="Most tokens.")] = None
    max_cost: Annotated[
        float | None, Field(ge=0, description="Most money, in the price table's currency.")
    ] = None

    def __post_init__(self) -> None:
        limit = self.max_difference_nats_per_token
        if limit != 1.0 and not self.naturalness_model:
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
        return Server(self.base_url, self.timeout_s, RetryPolicy(concurrency=self.concurrency))

    def budget(self) -> Budget:
        """What the build may cost."""
        return Budget(self.max_requests, self.max_tokens, self.max_cost)

    def price(self) -> Price | None:
        """The model's price; ``None`` without a price table. Raises as ``price_of``."""
        return price_of(self.model, Path(self.prices)) if self.prices else None


def load(path: Path | None, given: Mapping[str, object]) -> BuildSpec:
    """Read a configuration file, if one is named; see ``options.load``.

    >>> load(None, {"model": "m", "n_words": None}).model
    'm'
    """
    return options.load(BuildSpec(), path, given)
