"""Options and presets for training, and options for debias tuning. This module needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass as options_class

from plumbline.eval_workers.disclosure.word_probabilities import WORD_LIST
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT


@dataclass(frozen=True)
class TrainOptions:
    """Model size and training settings.

    ``vocabulary`` is the largest number of distinct tokens (a small text may have fewer). A small
    text is read several times, until ``max_tokens`` or ``max_epochs`` is reached. ``learning_rate``
    is the peak rate. If ``one_embedding`` is true, input and output share one embedding. Such a
    model learns the gender preferences in the made-up text of `corpus demo` from half as many
    tokens as a model with two embeddings. But it learns real text less well.
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


#: The preset for an n-gram model, which has no ``TrainOptions``.
FIVE_GRAM = "5gram"

#: `closed` is for `corpus demo`: with a vocabulary of 2,560, every word is one token. Its heads
#: are 32 wide, the smallest width that vLLM runs on a CPU. It takes about 100 s on two cores.
#: `small` is for real text and takes about four minutes on one CPU core.
PRESETS = {
    "closed": TrainOptions(2560, 96, 2, 3, 64, 16, 1e-2, 1_600_000, one_embedding=True),
    "small": TrainOptions(4096, 128, 3, 4, 128, 16, 3e-3, max_tokens=2_400_000),
}


def preset(name: str, seed: int = 0, max_tokens: int | None = None) -> TrainOptions:
    """Return a preset's options with this seed. ``max_tokens``, if given, replaces the preset's.

    >>> preset("small", max_tokens=1000).max_tokens
    1000
    """
    if name not in PRESETS:
        names = ", ".join((*PRESETS, FIVE_GRAM))
        raise UsageProblem(f"preset {name!r}", f"unknown, there are {names}")
    usual = PRESETS[name]
    return replace(usual, seed=seed, max_tokens=max_tokens or usual.max_tokens)


LOSSES = ("distance", "total", "difference")
#: Settings of Dong et al. (2024, appendix A.3) that are not options: the adapter's alpha and
#: dropout, and the largest number of tokens in a prompt with a word.
ALPHA, DROPOUT, MAX_TOKENS = 16, 0.1, 512
#: The norm at which gradients are clipped while tuning, unless ``as_published``.
CLIP_NORM = 1.0


@options_class(frozen=True, config=STRICT)
class TuneOptions:
    """Options for debias tuning. Where possible, defaults are from Dong et al. (2024, 5.3, A.3).

    A loss (see ``word_losses``) with weight 0 is logged but not minimised. The learning rate is
    constant. By default, losses are means over a step's prompts, and the gradient's norm is clipped
    at ``CLIP_NORM``. With ``as_published``, losses are sums and gradients aren't clipped. Prompts
    are then used even if they contain gendered words or are in a test set.
    """

    distance: Annotated[
        float,
        Field(ge=0, le=1_000_000, description="Weight of loss L_d (distance within word pairs)."),
    ] = 1.0
    total: Annotated[
        float,
        Field(ge=0, le=1_000_000, description="Weight of loss L_g (gendered words' probability)."),
    ] = 1.0
    difference: Annotated[
        float,
        Field(ge=0, le=1_000_000, description="Weight of loss L_l (distance between genders)."),
    ] = 1.0
    rank: Annotated[int, Field(gt=0, le=65_536, description="Rank of the LoRA adapter.")] = 64
    learning_rate: Annotated[float, Field(gt=0, le=100, description="Learning rate.")] = 2e-4
    batch_prompts: Annotated[
        int, Field(gt=0, le=100_000, description="Number of prompts per step.")
    ] = 16
    steps: Annotated[int, Field(gt=0, le=10_000_000, description="Number of optimiser steps.")] = (
        500
    )
    word_list: Annotated[
        str, Field(description="Word list with pairs of gendered words: its name, or a TOML file.")
    ] = WORD_LIST
    seed: Annotated[
        int,
        Field(
            ge=0,
            le=(1 << 32) - 1,
            description="Seed for initial weights, order of prompts and dropout.",
        ),
    ] = 0
    checkpoint_steps: Annotated[
        int,
        Field(gt=0, le=10_000_000, description="Measure the loss on --dev-sets every N steps."),
    ] = 50
    as_published: Annotated[
        bool,
        Field(
            description="Tune as in the paper: the base model is in 4 bits (nf4), losses are sums, "
            "gradients aren't clipped, and prompts with gendered words or from test sets are used."
        ),
    ] = False

    def __post_init__(self) -> None:
        if not any(self.weights.values()):
            raise UsageProblem("losses", "all have weight 0", f"give one of {', '.join(LOSSES)}")

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each loss, as {name: weight}.

        >>> TuneOptions(total=0).weights
        {'distance': 1.0, 'total': 0.0, 'difference': 1.0}
        """
        return {loss: getattr(self, loss) for loss in LOSSES}


def tuned_by(figures: Mapping[str, Any]) -> str:
    """Describe how an adapter was tuned: as published, or with Plumbline's defaults.

    >>> tuned_by({"as_published": True, "base_quantisation": "bitsandbytes nf4 0.45"})
    'as published: losses are sums, gradients not clipped, base bitsandbytes nf4 0.45'
    """
    base = f"base {figures['base_quantisation'] or 'not quantised'}"
    if figures["as_published"]:
        return f"as published: losses are sums, gradients not clipped, {base}"
    clip = f"gradients clipped at norm {figures['clip_norm']:g}"
    return f"by Plumbline's default: losses are means, {clip}, {base}"
