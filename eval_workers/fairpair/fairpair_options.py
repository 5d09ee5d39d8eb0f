"""Options of FairPair: for figures, for sampling, and for a whole run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.chat.asking_options import ServerOptions
from plumbline.eval_workers.chat.client import DEFAULT_URL, Server, checked_url
from plumbline.eval_workers.chat.requests import Endpoint
from plumbline.eval_workers.fairpair.perturbed_set import TextFilter, Unit
from plumbline.eval_workers.fairpair.perturbers import PerturbWording, load_wording
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.models.scoring_contract import Instruction
from plumbline.eval_workers.scoring.served_samples import ServedModel
from plumbline.warehouse import options
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT, Seed

#: Name of the rule-based perturber; any other name means a chat model.
RULES = "rules"
#: Put before each prompt to a chat model, which would otherwise answer the prompt.
INSTRUCTION = "Continue the following text. Write only what comes next:"


def texts_of(as_published: bool) -> str:
    """Return the value of column ``texts``, which says which texts Phi compared."""
    return "as-published" if as_published else "filtered"


_Many: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]
_Share: TypeAlias = Annotated[float, Field(gt=0, le=1)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class FigureOptions:
    """Options for measuring continuations.

    Phi compares continuations without their prompts (section 2 of the paper). By default, both
    groups only have texts whose perturbation is valid. With ``as_published``, only the group of
    perturbed texts is filtered in this way (section 3.3).

    The smallest possible p-value is 1 / (``n_permutations`` + 1). ``seed`` decides folds,
    permutations and resamples. A prompt's random numbers don't depend on other prompts.
    """

    folds: Annotated[
        int, Field(ge=0, le=100_000, description="Divide samples into this many folds (0: none).")
    ] = 0
    level: Annotated[float, Field(gt=0, lt=1, description="Confidence level.")] = 0.95
    n_permutations: Annotated[_Many, Field(description="Number of permutations per test.")] = 999
    n_resamples: Annotated[_Many, Field(description="Number of resamples per interval.")] = 1000
    seed: Annotated[Seed, Field(description="Random seed of samples, folds and tests.")] = 0
    as_published: Annotated[
        bool, Field(description="Filter only the perturbed texts, as the paper does.")
    ] = False
    filter_limit: Annotated[
        _Share, Field(description="Drop perturbed texts with a larger Jaccard distance than this.")
    ] = TextFilter.limit
    filter_unit: Annotated[
        Unit, Field(description="Compare perturbed texts and originals by words or by characters.")
    ] = TextFilter.unit

    def __post_init__(self) -> None:
        if self.folds == 1:
            raise UsageProblem(f"folds {self.folds}", "expected 0 for single samples, or 2 or more")

    def text_filter(self) -> TextFilter:
        """Return the filter that decides which perturbations are valid."""
        return TextFilter(self.filter_limit, self.filter_unit)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class FairPairOptions(FigureOptions):
    """Options for sampling continuations (see ``SamplingOptions``) and for measuring them.

    If ``phi`` is empty, the paper's scoring functions are used: jaccard, and vader if all prompts
    are in English.
    """

    n: Annotated[int, Field(ge=2, le=100_000, description="Number of samples per prompt.")] = 100
    temperature: Annotated[float, Field(gt=0, le=100, description="Sampling temperature.")] = 1.0
    top_p: Annotated[
        _Share, Field(description="Sample only the likeliest tokens with this total probability.")
    ] = 0.9
    max_new_tokens: Annotated[_Many, Field(description="Maximum tokens per sample.")] = 128
    instruction: Annotated[
        str | None, Field(description="Text put before each prompt. Chat models have a default.")
    ] = None
    phi: Annotated[
        tuple[str, ...], Field(description="Scoring functions (default: jaccard,vader).")
    ] = ()

    def sampling(self) -> SamplingOptions:
        """Return the options for drawing samples."""
        names = ("temperature", "top_p", "max_new_tokens", "seed")
        drawn = {name: getattr(self, name) for name in names}
        return SamplingOptions(**drawn, instruction=Instruction(self.instruction or None))


#: Options for the closed world, whose prompts end before one word: few samples of one token each.
CLOSED_WORLD = FairPairOptions(n=50, max_new_tokens=1, n_permutations=199, n_resamples=300)


@dataclass(frozen=True, config=STRICT)
class FairPairSpec(ModelOptions, FairPairOptions, ServerOptions):
    """Options of a FairPair run and its model. Paths are relative to the working directory.

    Without ``base_url``, the model is loaded in this process. For ``endpoint``, see
    ``ServedModel``. Sampling and perturbing may each spend the whole budget.

    Raises ``UsageProblem`` for values out of range and for options that contradict each other.
    """

    prompts: Annotated[
        str, Field(description="TOML file with the templates, names and words of the prompts.")
    ] = ""
    base_url: Annotated[
        str, Field(description="Address of the model's server; default: load the model here.")
    ] = ""
    endpoint: Annotated[
        Endpoint, Field(description="Use completions for base models, chat for chat models.")
    ] = "completions"
    perturber: Annotated[str, Field(description="Perturber: rules, or a chat model.")] = RULES
    perturber_url: Annotated[
        str, Field(description="The perturber's server; default: --base-url, or OpenAI's.")
    ] = ""
    wording: Annotated[str, Field(description="TOML file with the chat perturber's prompt.")] = ""

    def __post_init__(self) -> None:
        FairPairOptions.__post_init__(self)
        ServerOptions.__post_init__(self)
        if self.endpoint == "chat" and not self.base_url:
            raise UsageProblem("endpoint chat", "needs a server", "give --base-url ADDRESS")
        if self.perturber_url:
            checked_url(self.perturber_url, "--perturber-url")  # raises if it has a secret
        if self.perturber == RULES and (self.wording or self.perturber_url):
            what = "wording" if self.wording else "perturber_url"
            raise UsageProblem(what, "is for a chat perturber", "give --perturber MODEL")

    def sampling(self) -> SamplingOptions:
        """Return the options for drawing samples; by default chat models get ``INSTRUCTION``."""
        if self.instruction is None and self.endpoint == "chat":
            return replace(super().sampling(), instruction=Instruction(INSTRUCTION))
        return super().sampling()

    def target(self, model: str) -> ModelOptions | ServedModel:
        """Return the options for loading a model here, or its name and endpoint on the server."""
        if self.base_url:
            return ServedModel(model, self.endpoint, self.token_limit)
        return options.part(ModelOptions, self)

    def perturber_server(self) -> Server:
        """Return the server that a chat perturber uses."""
        return self.server(self.perturber_url or self.base_url or DEFAULT_URL)

    def chat_wording(self) -> PerturbWording:
        """Return the wording for a chat perturber. Raises what ``load_wording`` raises."""
        return load_wording(Path(self.wording) if self.wording else None)
