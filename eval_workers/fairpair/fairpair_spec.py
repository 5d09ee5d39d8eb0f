"""Options of a FairPair run: the keys of its configuration file, and the objects they configure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.chat.asking_options import ServerOptions
from plumbline.eval_workers.chat.chat_session import Server
from plumbline.eval_workers.chat.client import DEFAULT_URL, checked_url
from plumbline.eval_workers.chat.requests import Endpoint
from plumbline.eval_workers.fairpair.fairpair_options import FairPairOptions
from plumbline.eval_workers.fairpair.perturbation.chat_perturber import PerturbWording, load_wording
from plumbline.eval_workers.models.model_options import OF_SCORES, ModelOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.scoring.served_samples import ServedModel
from plumbline.warehouse import options
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT

#: Name of the rule-based perturber; any other name means a chat model.
RULES = "rules"
#: Put before each prompt for chat models, which would otherwise answer the prompt.
INSTRUCTION = "Continue the following text. Write only what comes next:"


@dataclass(frozen=True)
class SampledModel:
    """A model to sample: either ``options`` to load it here, or ``served``; the other is None."""

    model: str
    options: ModelOptions | None = None
    served: ServedModel | None = None


@dataclass(frozen=True, config=STRICT)
class FairPairSpec(ModelOptions, FairPairOptions, ServerOptions):
    """Options of a FairPair run and its models. Paths are relative to the working directory.

    Without ``base_url`` models are loaded here. ``endpoint``: see ``ServedModel``. Sampling of each
    model, and perturbing, have this budget each.

    Raises ``UsageProblem`` for values out of range and options that contradict each other.
    """

    model: Annotated[str, Field(description="Hub ids, directories or served names, by commas.")] = (
        ""
    )
    models: Annotated[
        str, Field(description="Instead of --model a list: a TOML file, or fairpair.")
    ] = ""
    prompts: Annotated[
        str, Field(description="Templates, names and words of the prompts (TOML).")
    ] = ""
    base_url: Annotated[
        str, Field(description="Server that holds the models; without it: loaded here.")
    ] = ""
    endpoint: Annotated[
        Endpoint, Field(description="completions for base models, chat for chat models.")
    ] = "completions"
    perturber: Annotated[str, Field(description="rules, or the name of a chat model.")] = RULES
    perturber_url: Annotated[
        str, Field(description="Its server; default: --base-url, or OpenAI's.")
    ] = ""
    terms: Annotated[str, Field(description="Word lists of your own for the rules (TOML).")] = ""
    wording: Annotated[str, Field(description="What a chat perturber is asked (TOML).")] = ""

    def __post_init__(self) -> None:
        for name in OF_SCORES:
            if getattr(self, name) != getattr(ModelOptions, name):
                raise UsageProblem(name, "is for scores of sentences", "leave it out")
        if self.model and self.models:
            raise UsageProblem("--model and --models", "exclude each other", "give one of them")
        if self.endpoint == "chat" and not self.base_url:
            raise UsageProblem("endpoint chat", "needs a server", "give --base-url ADDRESS")
        if self.perturber_url:
            checked_url(self.perturber_url)  # it is recorded with the run
        if self.perturber == RULES and (self.wording or self.perturber_url):
            what = "wording" if self.wording else "perturber_url"
            raise UsageProblem(what, "is for a chat perturber", "give --perturber MODEL")
        if self.perturber != RULES and self.terms:
            raise UsageProblem("terms", "are for the rules", "leave out --perturber")
        FairPairOptions.__post_init__(self)
        ServerOptions.__post_init__(self)

    def sampling(self) -> SamplingOptions:
        """Options for drawing samples; by default chat models get ``INSTRUCTION``."""
        if self.instruction is None and self.endpoint == "chat":
            return replace(super().sampling(), instruction=INSTRUCTION)
        return super().sampling()

    def targets(self) -> tuple[SampledModel, ...]:
        """The models, each once. Raises ``UsageProblem`` without one, and as ``model_lists.load``.

        With a server, the list keeps models that can't be loaded here.

        >>> [target.model for target in FairPairSpec(model="a, b,a").targets()]
        ['a', 'b']
        >>> len(FairPairSpec(models="fairpair", base_url="http://localhost:8000/v1").targets())
        6
        """
        from plumbline.eval_workers.models import model_lists

        base = options.part(ModelOptions, self)
        if self.models:
            load_list = model_lists.load if self.base_url else model_lists.load_available
            listed = [(entry.id, entry.options(base)) for entry in load_list(self.models)]
        else:
            names = (name.strip() for name in self.model.split(","))
            listed = [(name, base) for name in dict.fromkeys(names) if name]
        if not listed:
            fix = "give --model ID_OR_PATH, or its name on the server with --base-url"
            raise UsageProblem("model", "is not given", fix)
        if self.base_url:
            return tuple(
                SampledModel(name, served=ServedModel(name, self.endpoint, self.token_limit))
                for name in dict.fromkeys(name for name, _ in listed)
            )
        return tuple(SampledModel(name, options=model_options) for name, model_options in listed)

    def perturber_server(self) -> Server:
        """Server of a chat perturber."""
        return self.server(self.perturber_url or self.base_url or DEFAULT_URL)

    def chat_wording(self) -> PerturbWording:
        """Request to a chat perturber. Raises as ``load_wording``."""
        return load_wording(Path(self.wording) if self.wording else None)
