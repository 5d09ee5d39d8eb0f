"""What FairPair is run with: the keys of its configuration file, and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from plumbline.eval_workers import spec_file
from plumbline.eval_workers.backends.base import ModelOptions
from plumbline.eval_workers.backends.sampling import SamplingOptions
from plumbline.eval_workers.fairpair.perturb_llm import load_wording
from plumbline.eval_workers.fairpair.prompt import MeasureOptions
from plumbline.eval_workers.generation.asker import Manners
from plumbline.eval_workers.generation.budget import Budget, Price, price_of
from plumbline.eval_workers.generation.client import DEFAULT_URL, checked_url
from plumbline.eval_workers.generation.requests import ChatModel, Endpoint
from plumbline.eval_workers.generation.session import Server
from plumbline.eval_workers.sample_server import ServedModel
from plumbline.warehouse.errors import UsageProblem

#: Name of the perturber that asks nobody; any other is a chat model's.
RULES = "rules"
#: Put before each prompt for chat models, which would answer it otherwise.
INSTRUCTION = "Continue the following text. Write only what comes next:"


@dataclass(frozen=True)
class Target:
    """A model to sample: loaded here with ``options``, or behind a server where ``served`` says.

    One of the two is ``None``.
    """

    model: str
    options: ModelOptions | None = None
    served: ServedModel | None = None


@dataclass(frozen=True)
class FairPairSpec:
    """What FairPair is run with. Paths are relative to the working directory.

    Attributes:
        model: hub ids, directories, or names on the server, parted by commas.
        models: in place of it a list as ``plumbline score --models`` takes it.
        prompts: file of prompts in place of what the warehouse holds.
        n: samples of each prompt and side.
        temperature, top_p, max_new_tokens, seed: see ``SamplingOptions``; the seed is also that of
            folds, permutations and resamples.
        instruction: put before each prompt; for the endpoint `chat` there is one by default.
        base_url: address of the server that holds the models; without it they are loaded here.
        endpoint, token_limit: see ``ServedModel``.
        timeout_s, concurrency: how servers are asked.
        prices: price table of served models and chat perturbers.
        max_requests, max_tokens, max_cost: budget of each model's sampling, and of perturbing.
        revision, dtype, device, batch_tokens, bos, backend, tensor_parallel, adapter, quantisation,
            trust_remote_code: see ``ModelOptions``.
        perturber: `rules`, or the name of a chat model.
        perturber_url: its server; by default ``base_url``, or OpenAI's.
        terms: word lists of the rules, in place of those that come with Plumbline.
        wording: what a chat perturber is asked, in place of the wording that comes with Plumbline.
        phi: scoring functions; by default the paper's two, as far as they know the language.
        folds, level, n_permutations, n_resamples: see ``MeasureOptions``.

    Raises ``UsageProblem`` for values out of range.
    """

    model: str = ""
    models: str = ""
    prompts: str = ""
    n: int = 100
    temperature: float = 1.0
    top_p: float = 0.9
    max_new_tokens: int = 128
    seed: int = 0
    instruction: str | None = None
    base_url: str = ""
    endpoint: Endpoint = "completions"
    token_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    timeout_s: float = 120.0
    concurrency: int = 8
    prices: str = ""
    max_requests: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    revision: str | None = None
    dtype: str = "float32"
    device: str = "auto"
    batch_tokens: int | None = None
    bos: str | None = None
    backend: str = "transformers"
    tensor_parallel: int = 1
    adapter: str | None = None
    quantisation: str | None = None
    trust_remote_code: str | None = None
    perturber: str = RULES
    perturber_url: str = ""
    terms: str = ""
    wording: str = ""
    phi: tuple[str, ...] = ()
    folds: int = 0
    level: float = 0.95
    n_permutations: int = 999
    n_resamples: int = 1000

    def __post_init__(self) -> None:
        if self.n < 2:
            raise UsageProblem(f"n = {self.n}", "has to be 2 or more: V compares samples in pairs")
        for name in ("concurrency", "timeout_s", "tensor_parallel"):
            if not getattr(self, name) > 0:
                raise UsageProblem(f"{name} = {getattr(self, name)}", "has to be more than 0")
        for name in ("seed", "max_requests", "max_tokens", "max_cost"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise UsageProblem(f"{name} = {value}", "has to be 0 or more")
        if self.endpoint not in get_args(Endpoint):
            known = " or ".join(get_args(Endpoint))
            raise UsageProblem(f"endpoint {self.endpoint!r}", "is none", f"take {known}")
        if self.model and self.models:
            raise UsageProblem("--model and --models", "exclude each other", "give one of them")
        if self.endpoint == "chat" and not self.base_url:
            raise UsageProblem("endpoint chat", "needs a server", "give --base-url ADDRESS")
        if self.max_cost is not None and not self.prices:
            raise UsageProblem("max_cost", "needs the model's price", "add prices = FILE")
        for url in filter(None, (self.base_url, self.perturber_url)):
            checked_url(url)  # it is recorded with the run
        if self.perturber == RULES and (self.wording or self.perturber_url):
            what = "wording" if self.wording else "perturber_url"
            raise UsageProblem(what, "is for a chat perturber", "give --perturber MODEL")
        if self.perturber != RULES and self.terms:
            raise UsageProblem("terms", "are for the rules", "leave out --perturber")
        _ = self.sampling(), self.measuring()

    def sampling(self) -> SamplingOptions:
        """How samples are drawn.

        >>> FairPairSpec(n=7).sampling() == SamplingOptions()
        True
        """
        instruction = self.instruction
        if instruction is None and self.endpoint == "chat":
            instruction = INSTRUCTION
        return SamplingOptions(
            temperature=float(self.temperature),
            top_p=float(self.top_p),
            max_new_tokens=self.max_new_tokens,
            seed=self.seed,
            instruction=instruction or None,
        )

    def measuring(self) -> MeasureOptions:
        """How samples are measured."""
        counts = (self.n_permutations, self.n_resamples)
        return MeasureOptions(self.folds, self.level, *counts, seed=self.seed)

    def targets(self) -> tuple[Target, ...]:
        """The models, each once. Raises ``UsageProblem`` without one, and as ``models.load``.

        >>> [target.model for target in FairPairSpec(model="a, b,a").targets()]
        ['a', 'b']
        """
        from plumbline.eval_workers.models import load as load_list

        options = ModelOptions(
            *(self.revision, self.dtype, self.device, self.batch_tokens, self.bos, self.backend),
            tensor_parallel=self.tensor_parallel,
            adapter=self.adapter,
            quantisation=self.quantisation,
            trust_remote_code=self.trust_remote_code,
        )
        if self.models:
            listed = [(entry.id, entry.options(options)) for entry in load_list(self.models)]
        else:
            names = (name.strip() for name in self.model.split(","))
            listed = [(name, options) for name in dict.fromkeys(names) if name]
        if not listed:
            fix = "give --model ID_OR_PATH, or its name on the server with --base-url"
            raise UsageProblem("model", "is not given", fix)
        if self.base_url:
            return tuple(
                Target(name, served=ServedModel(name, self.endpoint, self.token_limit))
                for name in dict.fromkeys(name for name, _ in listed)
            )
        return tuple(Target(name, options=how) for name, how in listed)

    def server(self, url: str) -> Server:
        """A server at an address, asked as the spec says."""
        return Server(url, self.timeout_s, Manners(concurrency=self.concurrency))

    def perturber_server(self) -> Server:
        """Where a chat perturber is asked."""
        return self.server(self.perturber_url or self.base_url or DEFAULT_URL)

    def chat_wording(self) -> str:
        """What a chat perturber is asked. Raises as ``load_wording``."""
        return load_wording(Path(self.wording) if self.wording else None)

    def chat_perturber(self) -> ChatModel:
        """The chat model that perturbs."""
        return ChatModel(self.perturber, token_limit=self.token_limit)

    def budget(self) -> Budget:
        """What each model's sampling, and perturbing, may cost."""
        return Budget(self.max_requests, self.max_tokens, self.max_cost)

    def price(self, model: str) -> Price | None:
        """The price of a served model; ``None`` without a price table. Raises as ``price_of``."""
        return price_of(model, Path(self.prices)) if self.prices else None


def load(path: Path | None, given: Mapping[str, object]) -> FairPairSpec:
    """Read a configuration file, if one is named; see ``spec_file.load``.

    >>> load(None, {"n": 500, "model": None}).n
    500
    """
    return spec_file.load(FairPairSpec(), path, given)
