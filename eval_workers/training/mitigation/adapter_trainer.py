"""Train a LoRA adapter on targets: the base frozen, seeded.

The base stays in evaluation mode; only the adapter has dropout. With dev prompts, the loss on them
is measured every ``checkpoint_steps`` and after the last step; the result has the weights with the
least.
"""

from __future__ import annotations

import itertools
import math
import shutil
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from plumbline.eval_workers.models import devices
from plumbline.eval_workers.models.kinds.causal_model import CausalModel
from plumbline.eval_workers.training.loop import Figures, check_finite, fit, shuffled, trainable
from plumbline.eval_workers.training.lora import adapted, save_adapter, switch_dropout
from plumbline.eval_workers.training.mitigation.targets import TuningTarget
from plumbline.eval_workers.training.mitigation.tuning_options import LOSSES, TuneOptions
from plumbline.eval_workers.training.mitigation.word_losses import WordReader
from plumbline.eval_workers.training.training_options import StepProgress

#: Name in errors.
_WHAT = "tuning"


def train_adapter(
    backend: CausalModel,
    targets: Sequence[TuningTarget],
    options: TuneOptions,
    work: Path,
    progress: StepProgress | None = None,
    dev: Sequence[TuningTarget] = (),
) -> dict[str, Any]:
    """Train an adapter, save it in the directory ``work`` and return its figures.

    ``log`` has the columns of ``tuning_step`` of each step, without units; ``outcome`` has columns
    of ``tuning``. With ``dev``, the adapter is that of the first step with the least loss on them.
    Don't use the backend afterwards: its model holds the adapter. Raises ``BadInput`` for a loss
    that is not finite, ``UsageProblem`` for layers that the model lacks.
    """
    shutil.rmtree(work, ignore_errors=True)
    with torch.random.fork_rng():
        model = adapted(backend, options.lora)
        weights = trainable(model)
        n_tokens = devices.batch_tokens(backend.weights.options, model.device.type)
        reader = WordReader(model.get_base_model(), backend.identity.bos_token_id, n_tokens)
        log: list[Figures] = []
        best: list[torch.Tensor] = []
        chosen: int | None = None
        start = time.monotonic()
        for step, row in enumerate(steps(model, reader, targets, options), 1):
            log.append(row)
            is_measured = step == options.steps or step % options.checkpoint_steps == 0
            if dev and is_measured:
                row |= dev_losses(model, reader, dev, options)
                check_finite(row, _WHAT, step + 1)  # the next step's would not be finite either
                if chosen is None or row["dev_loss"] < log[chosen - 1]["dev_loss"]:
                    chosen, best = step, [weight.detach().clone() for weight in weights]
            if progress:
                note = "L_d {distance:.3g} L_g {total:.3g} L_l {difference:.3g}"
                progress(step, options.steps, note=note.format(**row))
        seconds = time.monotonic() - start
        with torch.no_grad():
            for weight, value in zip(weights, best, strict=False):
                weight.copy_(value)
        save_adapter(model, work)
    modules = model.peft_config["default"].target_modules
    outcome = {
        "layers": ", ".join(sorted({str(name).rsplit(".", 1)[-1] for name in modules})),
        "n_parameters": sum(weight.numel() for weight in weights),
        "seconds": seconds,
        "chosen_step": chosen,
        "dev_loss": log[chosen - 1]["dev_loss"] if chosen else None,
        "dev_loss_end": log[-1].get("dev_loss"),
    }
    return {"outcome": outcome, "log": log}


def steps(
    model: Any, reader: WordReader, targets: Sequence[TuningTarget], options: TuneOptions
) -> Iterator[Figures]:
    """Take the steps of a tuning; yields mean losses, the loss that is minimised, and its norm."""
    weights = trainable(model)
    optimizer = torch.optim.AdamW(weights, lr=options.learning_rate, weight_decay=0.0)
    numbers = shuffled(len(targets), options.batch_prompts, options.seed)
    batches = (
        [
            partial(_loss, reader, part, options, len(batch))
            for part in reader.passes([targets[number] for number in batch])
        ]
        for batch in itertools.islice(numbers, options.steps)
    )
    clip_norm = math.inf if options.as_published else options.clip_norm
    return fit(weights, batches, optimizer, clip_norm, _WHAT)


def _loss(
    reader: WordReader, part: Sequence[TuningTarget], options: TuneOptions, n_prompts: int
) -> tuple[torch.Tensor, Figures]:
    """A part's share of the loss of a step on ``n_prompts``: of its sum if as published."""
    losses = reader.losses(part, options.distance_smoothing)
    weights = losses.new_tensor([options.weights[name] for name in LOSSES])
    counted = weights > 0  # a loss of weight 0 could be NaN: leave it out instead of multiplying it
    whole = (losses[:, counted] * weights[counted]).sum()
    n = 1 if options.as_published else n_prompts
    figures = _means(losses, options, n_prompts)
    return whole / n, figures | {"loss": figures["loss"] * n_prompts / n}


def _means(losses: torch.Tensor, options: TuneOptions, n_prompts: int) -> Figures:
    """Share of some prompts in the mean losses of ``n_prompts``, and their weighted sum."""
    sums = losses.detach().sum(dim=0).tolist()
    means = {name: value / n_prompts for name, value in zip(LOSSES, sums, strict=True)}
    counted = (means[name] * weight for name, weight in options.weights.items() if weight)
    return means | {"loss": sum(counted)}


def dev_losses(
    model: Any, reader: WordReader, dev: Sequence[TuningTarget], options: TuneOptions
) -> Figures:
    """Mean losses on dev prompts, without dropout, and their weighted sum as `dev_loss`."""
    switch_dropout(model, on=False)
    with torch.no_grad():
        found = torch.cat(
            [reader.losses(part, options.distance_smoothing) for part in reader.passes(dev)]
        )
    switch_dropout(model, on=True)
    return {f"dev_{name}": value for name, value in _means(found, options, len(dev)).items()}
