"""What an adapter is tuned with. No torch here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TypeAlias

from plumbline.warehouse.errors import UsageProblem

#: Called as (steps done, steps in all, the step's columns of ``tuning_step``).
Progress: TypeAlias = Callable[[int, int, Mapping[str, float]], None]

LOSSES = ("distance", "total", "difference")


@dataclass(frozen=True)
class TuneOptions:
    """The settings of Dong et al. (2024), where the paper has them.

    ``distance``, ``total`` and ``difference`` weigh the losses L_d, L_g and L_l of ``losses``; a
    loss of weight 0 is logged and does not count. ``distance_smoothing`` is e of L_d. ``targets``
    are the layers that get an adapter: names of modules divided by commas, `all-linear`, or PEFT's
    own choice for the architecture (``None``). The paper gives no schedule: the rate is constant,
    the norm of the gradient is cut at ``clip_norm``, AdamW decays no weights. ``max_tokens`` is
    what a prompt with a word behind it may have; a longer prompt is left out.
    """

    distance: float = 1.0
    total: float = 1.0
    difference: float = 1.0
    distance_smoothing: float = 0.0
    rank: int = 64
    alpha: int = 16
    dropout: float = 0.1
    targets: str | None = None
    learning_rate: float = 2e-4
    batch_prompts: int = 16
    steps: int = 500
    max_tokens: int = 512
    clip_norm: float = 1.0
    word_list: str = "gendered"
    seed: int = 0
    checkpoint_steps: int = 50

    def __post_init__(self) -> None:
        for name in ("rank", "alpha", "batch_prompts", "steps", "max_tokens", "checkpoint_steps"):
            if getattr(self, name) < 1:
                raise UsageProblem(f"{name} = {getattr(self, name)}", "has to be 1 or more")
        for name in ("learning_rate", "clip_norm"):
            if not 0 < getattr(self, name) < math.inf:
                raise UsageProblem(f"{name} = {getattr(self, name)}", "has to be above 0")
        for name in (*LOSSES, "distance_smoothing", "seed"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UsageProblem(f"{name} = {getattr(self, name)}", "has to be 0 or more")
        if not 0 <= self.dropout < 1:
            raise UsageProblem(f"dropout = {self.dropout}", "has to be 0 or more and below 1")
        if not any(self.weights.values()):
            raise UsageProblem("losses", "all have weight 0", f"give one of {', '.join(LOSSES)}")

    @property
    def weights(self) -> dict[str, float]:
        """Loss -> weight.

        >>> TuneOptions(total=0).weights
        {'distance': 1.0, 'total': 0, 'difference': 1.0}
        """
        return {name: value for name, value in asdict(self).items() if name in LOSSES}

    @property
    def target_modules(self) -> str | list[str] | None:
        """``targets`` as PEFT wants them.

        >>> TuneOptions(targets="q_proj, v_proj").target_modules
        ['q_proj', 'v_proj']
        """
        if self.targets is None or self.targets == "all-linear":
            return self.targets
        return [name.strip() for name in self.targets.split(",")]
