"""Options of debias tuning. No torch here."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.disclosure.attributes import WORD_LIST
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.training.training_options import Lora
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import MOST, STRICT

LOSSES = ("distance", "total", "difference")


@dataclass(frozen=True, config=STRICT)
class TuneOptions:
    """The settings of Dong et al. (2024, section 5.3 and appendix A.3), where the paper has them.

    ``distance``, ``total`` and ``difference`` weigh the losses L_d, L_g, L_l of ``word_losses``; a
    loss of weight 0 is logged but isn't minimised. ``distance_smoothing`` is e of L_d. ``targets``
    are the layers that get an adapter: names of modules divided by commas, `all-linear`, or PEFT's
    own choice for the architecture (``None``). The paper gives no schedule: the rate is constant,
    and AdamW decays no weights. A prompt with more than ``max_tokens`` tokens, a word after it
    included, is left out.

    By default losses are means over a step's prompts, and the gradient's norm is clipped at
    ``clip_norm``. With ``as_published`` losses are sums (section 5.3), gradients are not clipped
    (the paper mentions no clipping), and no prompt is left out for its words or for being in a test
    set. The paper's base in 4 bits is an option of loading, see ``published_base``.
    """

    distance: Annotated[float, Field(ge=0, le=1_000_000, description="Weight of L_d, as ADD.")] = (
        1.0
    )
    total: Annotated[float, Field(ge=0, le=1_000_000, description="Weight of L_g, all words.")] = (
        1.0
    )
    difference: Annotated[
        float, Field(ge=0, le=1_000_000, description="Weight of L_l, as GLD.")
    ] = 1.0
    distance_smoothing: Annotated[float, Field(ge=0, le=1, description="e of L_d.")] = 0.0
    rank: Annotated[int, Field(gt=0, le=65_536, description="Rank of the adapter.")] = 64
    alpha: Annotated[
        int, Field(ge=1, le=1_000_000, description="Scale of the adapter, divided by its rank.")
    ] = 16
    dropout: Annotated[float, Field(ge=0, lt=1, description="Dropout in the adapter.")] = 0.1
    targets: Annotated[
        str | None, Field(description="Layers, by commas, or all-linear; default: PEFT's.")
    ] = None
    learning_rate: Annotated[float, Field(gt=0, le=100, description="Learning rate.")] = 2e-4
    batch_prompts: Annotated[int, Field(gt=0, le=100_000, description="Prompts per step.")] = 16
    steps: Annotated[int, Field(gt=0, le=10_000_000, description="Optimiser steps.")] = 500
    max_tokens: Annotated[
        int, Field(gt=0, le=1_000_000, description="Most tokens of a prompt and a word.")
    ] = 512
    clip_norm: Annotated[
        float, Field(gt=0, le=MOST, description="Bound on the gradient's norm.")
    ] = 1.0
    word_list: Annotated[
        str, Field(description="Pairs of gendered words: name, or path of a TOML file.")
    ] = WORD_LIST
    seed: Annotated[
        int, Field(ge=0, le=(1 << 32) - 1, description="Seed of weights, order and dropout.")
    ] = 0
    checkpoint_steps: Annotated[
        int,
        Field(gt=0, le=10_000_000, description="Steps between losses on --dev-sets."),
    ] = 50
    as_published: Annotated[
        bool,
        Field(
            description="As the paper: the base in 4 bits (nf4), losses as sums, gradients not "
            "clipped, gendered and test prompts kept."
        ),
    ] = False

    def __post_init__(self) -> None:
        if self.as_published and self.clip_norm != TuneOptions.clip_norm:
            raise UsageProblem(
                f"clip_norm {self.clip_norm:g}", "isn't as published", "leave it out"
            )
        if not any(self.weights.values()):
            raise UsageProblem("losses", "all have weight 0", f"give one of {', '.join(LOSSES)}")

    @property
    def weights(self) -> dict[str, float]:
        """Loss -> weight.

        >>> TuneOptions(total=0).weights
        {'distance': 1.0, 'total': 0.0, 'difference': 1.0}
        """
        return {name: value for name, value in asdict(self).items() if name in LOSSES}

    @property
    def lora(self) -> Lora:
        """The adapter that is tuned."""
        return Lora(self.rank, self.alpha, self.dropout, self.targets, self.seed)


def published_base(how: ModelOptions) -> ModelOptions:
    """Loading options of the paper's base, which is in 4 bits (QLoRA).

    Raises ``UsageProblem`` for another quantisation.

    >>> published_base(ModelOptions(dtype="bfloat16")).quantisation
    'nf4'
    """
    if how.quantisation not in (None, "nf4"):
        raise UsageProblem(
            f"--quantisation {how.quantisation}", "isn't as published", "leave it out"
        )
    return replace(how, quantisation="nf4")
