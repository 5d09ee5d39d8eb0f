"""Train a LoRA adapter on targets: the base frozen, seeded.

The base stays in evaluation mode; only the adapter has dropout. Order and dropout of a step are
drawn with the seed and the step's number. An interrupted training starts again.

With dev prompts, the loss on them is measured every ``checkpoint_steps`` and after the last step;
the result has the weights with the least.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from plumbline.eval_workers.models import devices
from plumbline.eval_workers.models.transformers_backend import TransformersBackend
from plumbline.eval_workers.training.learner import rows_of_step
from plumbline.eval_workers.training.lora import adapted, save_adapter, without_dropout
from plumbline.eval_workers.training.mitigation.targets import TuningTarget
from plumbline.eval_workers.training.mitigation.tuning_options import LOSSES, Progress, TuneOptions
from plumbline.eval_workers.training.mitigation.word_losses import WordReader
from plumbline.warehouse.errors import BadInput

#: Prefix in the log of losses on dev prompts, measured after the step.
DEV = "dev_"

Log = list[dict[str, float]]


def chosen_step(log: Sequence[Mapping[str, float]]) -> int | None:
    """The first step, from 1, with the least loss on dev prompts; ``None`` if none has a loss.

    >>> chosen_step([{"dev_loss": 0.5}, {}, {"dev_loss": 0.25}, {"dev_loss": 0.25}])
    3
    """
    measured = [(row[f"{DEV}loss"], step) for step, row in enumerate(log, 1) if f"{DEV}loss" in row]
    return min(measured)[1] if measured else None


@dataclass(frozen=True)
class TuningResult:
    """``log``: columns of ``tuning_step`` by step; ``n_parameters``: trained parameters.

    ``layers``: names of the layers with an adapter; ``seconds``: wall time.
    """

    log: Log
    n_parameters: int
    layers: str
    seconds: float


def train(
    backend: TransformersBackend,
    targets: Sequence[TuningTarget],
    options: TuneOptions,
    work: Path,
    progress: Progress | None = None,
    dev: Sequence[TuningTarget] = (),
) -> TuningResult:
    """Train an adapter and save it in the directory ``work``.

    With ``dev``, the adapter is that of ``chosen_step``. Don't use the backend afterwards: its
    model holds the adapter. Raises ``BadInput`` for a loss that is not
    finite, ``UsageProblem`` for layers that the model lacks.
    """
    with torch.random.fork_rng():
        model = adapted(backend, options.lora)
        n_tokens = devices.batch_tokens(backend.options, model.device.type)
        bos, longest = backend.identity.bos_token_id, backend.longest_in_tree
        reader = WordReader(model.get_base_model(), bos, longest, n_tokens)
        result = _Run(model, reader, options, dev).go(targets, progress)
        save_adapter(model, work)
        return result


class _Run:
    """A model in training."""

    def __init__(
        self,
        model: Any,
        reader: WordReader,
        options: TuneOptions,
        dev: Sequence[TuningTarget] = (),
    ) -> None:
        self.model, self.reader, self.options, self.dev = model, reader, options, dev
        self.weights = [p for p in model.parameters() if p.requires_grad]
        rate = options.learning_rate
        self.optimizer = torch.optim.AdamW(self.weights, lr=rate, weight_decay=0.0)

    def go(self, targets: Sequence[TuningTarget], progress: Progress | None) -> TuningResult:
        options = self.options
        log: Log = []
        best: list[torch.Tensor] = []
        start = time.monotonic()
        for step in range(options.steps):
            rows = rows_of_step(step, len(targets), options.batch_prompts, options.seed)
            columns = self.step(step, [targets[i] for i in rows])
            if not all(map(math.isfinite, columns.values())):
                raise _not_finite(step)
            log.append(columns)
            is_measured = step + 1 == options.steps or (step + 1) % options.checkpoint_steps == 0
            if self.dev and is_measured:
                log[-1] = columns | self.on_dev(step + 1)
                if chosen_step(log) == step + 1:
                    best = [weight.detach().clone() for weight in self.weights]
            if progress:
                progress(step + 1, options.steps, columns)
        with torch.no_grad():
            for weight, value in zip(self.weights, best, strict=False):
                weight.copy_(value)
        modules = self.model.peft_config["default"].target_modules
        layers = ", ".join(sorted({str(name).rsplit(".", 1)[-1] for name in modules}))
        n_parameters = sum(p.numel() for p in self.weights)
        return TuningResult(log, n_parameters, layers, time.monotonic() - start)

    def step(self, step: int, batch: Sequence[TuningTarget]) -> dict[str, float]:
        """Take an optimiser step unless a loss or gradient isn't finite; returns the log's row."""
        options, scale = self.options, self.options.scale(len(batch))
        torch.manual_seed(int(np.random.SeedSequence([options.seed, step]).generate_state(1)[0]))
        self.optimizer.zero_grad(set_to_none=True)
        means = torch.zeros(len(LOSSES), dtype=torch.float64)
        for part in self.reader.passes(batch):
            losses = self.reader.losses(part, options.distance_smoothing)
            weights = losses.new_tensor([options.weights[name] for name in LOSSES])
            # A loss of weight 0 could be NaN: leave it out instead of multiplying it.
            counted = weights > 0
            whole = (losses[:, counted] * weights[counted]).sum()
            (whole * scale / len(batch)).backward()
            means += losses.detach().sum(dim=0).double().cpu() / len(batch)
        norm = torch.nn.utils.clip_grad_norm_(self.weights, options.most_norm)
        columns = self.with_sum(means)
        columns |= {"loss": scale * columns["loss"], "gradient_norm": float(norm)}
        if all(map(math.isfinite, columns.values())):
            self.optimizer.step()
        return columns

    def on_dev(self, n_steps: int) -> dict[str, float]:
        """Mean losses on the dev prompts, without dropout, and their weighted sum."""
        means = torch.zeros(len(LOSSES), dtype=torch.float64)
        with torch.no_grad(), without_dropout(self.model):
            for part in self.reader.passes(self.dev):
                losses = self.reader.losses(part, self.options.distance_smoothing)
                means += losses.sum(dim=0).double().cpu() / len(self.dev)
        columns = self.with_sum(means)
        if not all(map(math.isfinite, columns.values())):
            raise _not_finite(n_steps)  # the next step's losses would not be finite either
        return {f"{DEV}{name}": value for name, value in columns.items()}

    def with_sum(self, means: torch.Tensor) -> dict[str, float]:
        """Losses by name, and their weighted sum as `loss`; a loss of weight 0 isn't in the sum."""
        losses: dict[str, float] = dict(zip(LOSSES, means.tolist(), strict=True))
        weights = self.options.weights.items()
        return losses | {"loss": sum(losses[name] * weight for name, weight in weights if weight)}


def _not_finite(step: int) -> BadInput:
    """The error for a step, from 0."""
    problem = f"a loss or its gradient is not finite at step {step + 1}"
    return BadInput("tuning", problem, "try a lower learning rate")
