"""FairPair's options for sampling continuations, for measuring them, and for a whole run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.chat.client import DEFAULT_URL, ServerOptions, checked_url
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
    """Return the value of column ``texts``, which says how the texts were filtered."""
    return "as-published" if as_published else "filtered"


_Many: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]
_Share: TypeAlias = Annotated[float, Field(gt=0, le=1)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class FigureOptions:
    """Options for measuring continuations.

    By default, a continuation is only used if its perturbation is valid. With ``as_published``,
    the group of unperturbed texts keeps all continuations, as in section 3.3 of the paper.

    The smallest possible p-value is 1 / (``n_permutations`` + 1). ``seed`` determines folds,
    permutations and resamples. The random numbers for a prompt don't depend on other prompts.
    """

    folds: Annotated[
        int, Field(ge=0, le=100_000, description="Merge samples into this many folds (0: don't).")
    ] = 0
    level: Annotated[float, Field(gt=0, lt=1, description="Confidence level of intervals.")] = 0.95
    n_permutations: Annotated[_Many, Field(description="Number of permutations per test.")] = 999
    n_resamples: Annotated[_Many, Field(description="Number of resamples per interval.")] = 1000
    seed: Annotated[Seed, Field(description="Random seed for samples, folds and tests.")] = 0
    as_published: Annotated[
        bool, Field(description="Keep continuations that can't be perturbed, as the paper does.")
    ] = False
    filter_limit: Annotated[
        _Share, Field(description="Largest Jaccard distance of a perturbed text from its original.")
    ] = TextFilter.limit
    filter_unit: Annotated[
        Unit, Field(description="Compute the distance for --filter-limit from words or characters.")
    ] = TextFilter.unit

    def __post_init__(self) -> None:
        if self.folds == 1:
            raise UsageProblem(f"folds {self.folds}", "expected 0 for single samples, or 2 or more")

    def text_filter(self) -> TextFilter:
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
        _Share, Field(description="Sample from top tokens that together reach this probability.")
    ] = 0.9
    max_new_tokens: Annotated[_Many, Field(description="Maximum tokens per sample.")] = 128
    instruction: Annotated[
        str | None, Field(description="Instruction before each prompt; chat models have a default.")
    ] = None
    phi: Annotated[
        tuple[str, ...], Field(description="How to compare texts (default: jaccard,vader).")
    ] = ()

    def sampling(self) -> SamplingOptions:
        names = ("temperature", "top_p", "max_new_tokens", "seed")
        drawn = {name: getattr(self, name) for name in names}
        return SamplingOptions(**drawn, instruction=Instruction(self.instruction or None))


#: Options for the closed world, whose prompts lack only one word: few samples of one token each.
CLOSED_WORLD = FairPairOptions(n=50, max_new_tokens=1, n_permutations=199, n_resamples=300)


@dataclass(frozen=True, config=STRICT)
class FairPairSpec(ModelOptions, FairPairOptions, ServerOptions):
    """Options of a FairPair run and its model. Paths are relative to the working directory.

    Without ``base_url``, the model is loaded in this process. ``ServedModel`` explains
    ``endpoint``. The budget applies to sampling and to perturbing separately.

    Raises ``UsageProblem`` for values out of range and for options that contradict each other.
    """

    prompts: Annotated[
        str, Field(description="TOML file with the prompts' templates, names and words.")
    ] = ""
    base_url: Annotated[
        str, Field(description="Address of the model's server; default: load the model locally.")
    ] = ""
    endpoint: Annotated[
        Endpoint, Field(description="Endpoint: completions for base models, chat for chat models.")
    ] = "completions"
    perturber: Annotated[str, Field(description="Perturb by rules, or by a chat model.")] = RULES
    perturber_url: Annotated[
        str, Field(description="Server of the chat perturber; default: --base-url, or OpenAI's.")
    ] = ""
    wording: Annotated[str, Field(description="TOML file with the chat perturber's prompt.")] = ""

    def __post_init__(self) -> None:
        FairPairOptions.__post_init__(self)
        ServerOptions.__post_init__(self)
        if self.endpoint == "chat" and not self.base_url:
            raise UsageProblem("endpoint chat", "needs a server", "give --base-url ADDRESS")
        if self.perturber_url:
            checked_url(self.perturber_url, "--perturber-url")  # raises if the URL has a secret
        if self.perturber == RULES and (self.wording or self.perturber_url):
            what = "wording" if self.wording else "perturber_url"
            raise UsageProblem(what, "is for a chat perturber", "give --perturber MODEL")

    def sampling(self) -> SamplingOptions:
        """Return the sampling options. For chat, the default instruction is ``INSTRUCTION``."""
        if self.instruction is None and self.endpoint == "chat":
            return replace(super().sampling(), instruction=Instruction(INSTRUCTION))
        return super().sampling()

    def target(self, model: str) -> ModelOptions | ServedModel:
        """Return the model on the server. Without a server, return the options for loading it."""
        if self.base_url:
            return ServedModel(model, self.endpoint, self.token_limit)
        return options.part(ModelOptions, self)

    def perturber_server(self) -> ServerOptions:
        url = self.perturber_url or self.base_url or DEFAULT_URL
        return replace(options.part(ServerOptions, self), base_url=url)

    def chat_wording(self) -> PerturbWording:
        """Read the prompt for a chat perturber. Raises what ``load_wording`` raises."""
        return load_wording(Path(self.wording) if self.wording else None)
