"""Training options: presets, adapters, models to continue. No torch here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Protocol

from pydantic import Field
from pydantic.dataclasses import dataclass as options_class

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.ngram import NgramOptions
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT, words


class StepProgress(Protocol):
    """Is called after each step with the steps done and in all, and the last losses as text."""

    def __call__(self, n_done: int, n_steps: int, /, *, note: str) -> None: ...


@dataclass(frozen=True)
class TrainOptions:
    """Size of the model and training settings; all sizes are 0 for a model that is continued.

    ``vocabulary`` is an upper bound (a small text may not have that many merges). ``max_tokens``
    and ``max_epochs`` bound the tokens read; a small text is repeated. ``learning_rate`` is the
    peak. ``one_embedding``: input and output share one embedding; the closed world's leans then
    take half as many tokens to learn, but real text is learned worse.
    """

    vocabulary: int
    hidden: int
    layers: int
    heads: int
    context: int
    batch_rows: int
    learning_rate: float
    max_tokens: int
    max_epochs: int = 4
    warmup_steps: int = 100
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    seed: int = 0
    one_embedding: bool = False


#: The preset of a count-based model of n-grams, which takes no ``TrainOptions``.
FIVE_GRAM = "5gram"

#: `closed`: the closed world, where a vocabulary of 2,560 holds every word whole. Its heads are 32
#: wide, the narrowest that vLLM runs on a CPU. About 100 s of two cores.
#: `small`: real text in about four minutes of one CPU core.
#: `continue`: an existing model; rows have its context if that is shorter.
PRESETS = {
    "closed": TrainOptions(2560, 96, 2, 3, 64, 16, 1e-2, 1_600_000, one_embedding=True),
    "small": TrainOptions(4096, 128, 3, 4, 128, 16, 3e-3, max_tokens=2_400_000),
    "continue": TrainOptions(0, 0, 0, 0, 512, 16, 1e-4, max_tokens=2_400_000),
}


def preset(
    name: str, seed: int = 0, max_tokens: int | None = None, learning_rate: float | None = None
) -> TrainOptions:
    """Options of a preset with this seed, limit and rate (``None``: the preset's own).

    >>> preset("small", max_tokens=1000).max_tokens
    1000
    """
    if name not in PRESETS:
        names = ", ".join((*PRESETS, FIVE_GRAM))
        raise UsageProblem(f"preset {name!r}", f"unknown, there are {names}")
    given: dict[str, Any] = {"max_tokens": max_tokens, "learning_rate": learning_rate}
    given = {option: value for option, value in given.items() if value is not None}
    return replace(PRESETS[name], seed=seed, **given)


@dataclass(frozen=True)
class Lora:
    """Size and seed of a new adapter, whose output is scaled by ``alpha`` / ``rank``.

    ``targets``: names of layers with commas, ``all-linear``, or PEFT's own choice (``None``).
    """

    rank: int
    alpha: int
    dropout: float
    targets: str | None
    seed: int


@dataclass(frozen=True)
class Base:
    """A model to continue: hub id or directory, loading options, rank of a new adapter if any.

    Raises ``UsageProblem`` for loading options that exclude training.
    """

    model: str
    how: ModelOptions = field(default_factory=ModelOptions)
    lora: int | None = None

    def __post_init__(self) -> None:
        check_trainable(self.how, adapter_only=self.lora is not None)


def check_trainable(how: ModelOptions, *, adapter_only: bool) -> None:
    """Raise ``UsageProblem`` for loading options that exclude training a model, or an adapter.

    >>> check_trainable(ModelOptions(quantisation="nf4"), adapter_only=True)
    """
    refused = dict.fromkeys(("backend", "adapter", "text_form", "chat"), "can't be trained")
    if not adapter_only:
        refused |= {
            "dtype": "is too coarse for small steps, give --lora RANK with it",
            "quantisation": "leaves no weights to train, give --lora RANK with it",
        }
    for name, problem in refused.items():
        value = getattr(how, name)
        if value != getattr(ModelOptions(), name):
            raise UsageProblem(f"--{name.replace('_', '-')} {value}", problem)


@options_class(frozen=True, kw_only=True, config=STRICT)
class LearnerOptions:
    """The model to train: a new one of a preset's size, or an existing one."""

    preset: Annotated[
        str | None,
        Field(
            description="small; closed for the closed world; 5gram, a model that counts; or with "
            "--base: continue."
        ),
    ] = None
    max_tokens: Annotated[
        int | None,
        Field(gt=0, le=10**12, description="Limit on the tokens seen; default: the preset's."),
    ] = None
    learning_rate: Annotated[
        float | None,
        Field(gt=0, le=100, description="Peak of the rate; default: the preset's."),
    ] = None
    base: Annotated[
        str | None, Field(description="Continue this causal model: hub id or directory.")
    ] = None
    lora: Annotated[
        int | None,
        Field(gt=0, le=65_536, description="Train only a LoRA adapter of this rank for --base."),
    ] = None

    def training(self, seed: int = 0) -> TrainOptions | NgramOptions:
        """Options of the training; the preset ``5gram`` takes no other option.

        >>> LearnerOptions().training().context, LearnerOptions(base="gpt2").training().context
        (128, 512)
        >>> LearnerOptions(preset="5gram").training().order
        5
        """
        if self.preset == FIVE_GRAM:
            if others := words(replace(self, preset=None)) or ["--seed"] * (seed > 0):
                problem = "counts all of the text, and nothing is drawn"
                raise UsageProblem(f"preset {self.preset}", problem, f"leave out {others[0]}")
            return NgramOptions()
        name = self.preset or ("small" if self.base is None else "continue")
        return preset(name, seed, self.max_tokens, self.learning_rate)

    def continued(self, how: ModelOptions) -> Base | None:
        """The model to continue, if any, with its loading options.

        Raises ``UsageProblem`` for options that don't apply.

        >>> LearnerOptions(base="gpt2", lora=8).continued(ModelOptions(dtype="bfloat16")).lora
        8
        """
        if self.base is not None:
            return Base(self.base, how, self.lora)
        if others := ["--lora"] if self.lora is not None else words(how):
            problem = "is for a model that is continued"
            raise UsageProblem(others[0], problem, "give --base MODEL")
        return None
