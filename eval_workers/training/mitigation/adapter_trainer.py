"""Train a LoRA adapter on targets: the base frozen, seeded, with checkpoints to resume from.

The base stays in evaluation mode; only the adapter has dropout. Order and dropout of a step are
drawn with the seed and the step's number, so a checkpoint needs no random state. A checkpoint is a
directory that PEFT can load, with the optimiser's state and the losses so far. It gets its name
when it is complete.

With dev prompts, the result is the checkpoint, or the last step, with the least loss on them.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import peft
import torch
from safetensors.torch import load_file

from plumbline.eval_workers.models import devices
from plumbline.eval_workers.models.local.weights import save_state
from plumbline.eval_workers.models.transformers_backend import TransformersBackend
from plumbline.eval_workers.training.learner import rows_of_step
from plumbline.eval_workers.training.lora import adapted, save_adapter, without_dropout
from plumbline.eval_workers.training.mitigation.targets import TuningTarget
from plumbline.eval_workers.training.mitigation.tuning_options import LOSSES, Progress, TuneOptions
from plumbline.eval_workers.training.mitigation.word_losses import WordReader
from plumbline.warehouse.errors import BadInput

_STATE = "state.pt"
_WEIGHTS = "adapter_model.safetensors"
_MARK = "checkpoint-"
_BEST = "best-"
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
    """Train into the directory ``work``, which then holds the adapter and no checkpoint.

    With ``dev``, the adapter is that of ``chosen_step``. Training resumes from a checkpoint in
    ``work``; the caller ensures that it has the same model, targets and options. Don't use the
    backend afterwards: its model holds the adapter. Raises ``BadInput`` for a loss that is not
    finite, ``UsageProblem`` for layers that the model lacks.
    """
    with torch.random.fork_rng():
        model = adapted(backend, options.lora)
        n_tokens = devices.batch_tokens(backend.options, model.device.type)
        bos, longest = backend.identity.bos_token_id, backend.longest_in_tree
        reader = WordReader(model.get_base_model(), bos, longest, n_tokens)
        return _Run(model, reader, options, work, dev).go(targets, progress)


class _Run:
    """A model in training."""

    def __init__(
        self,
        model: Any,
        reader: WordReader,
        options: TuneOptions,
        work: Path,
        dev: Sequence[TuningTarget] = (),
    ) -> None:
        self.model, self.reader, self.options = model, reader, options
        self.work, self.dev = work, dev
        self.weights = [p for p in model.parameters() if p.requires_grad]
        rate = options.learning_rate
        self.optimizer = torch.optim.AdamW(self.weights, lr=rate, weight_decay=0.0)
        self.log: Log = []
        self.seconds = 0.0

    def go(self, targets: Sequence[TuningTarget], progress: Progress | None) -> TuningResult:
        options = self.options
        self.restore()
        start = time.monotonic() - self.seconds
        for step in range(len(self.log), options.steps):
            rows = rows_of_step(step, len(targets), options.batch_prompts, options.seed)
            columns = self.step(step, [targets[i] for i in rows])
            if not all(map(math.isfinite, columns.values())):
                raise self.not_finite(step)
            self.log.append(columns)
            is_last = step + 1 == options.steps
            is_checkpoint = (step + 1) % options.checkpoint_steps == 0
            if self.dev and (is_last or is_checkpoint):
                self.log[-1] = columns | self.on_dev(step + 1)
                self.keep_best()
            self.seconds = time.monotonic() - start
            if is_checkpoint and not is_last:
                self.checkpoint()
            if progress:
                progress(step + 1, options.steps, columns)
        best = chosen_step(self.log)
        if best is not None and best < options.steps:
            peft.set_peft_model_state_dict(self.model, load_file(self.best(best) / _WEIGHTS))
        save_adapter(self.model, self.work)
        unfinished = (self.work / "_checkpoint", self.work / "_best")
        for path in (*self.checkpoints(), *self.work.glob(f"{_BEST}*"), *unfinished):
            shutil.rmtree(path, ignore_errors=True)
        modules = self.model.peft_config["default"].target_modules
        layers = ", ".join(sorted({str(name).rsplit(".", 1)[-1] for name in modules}))
        n_parameters = sum(p.numel() for p in self.weights)
        return TuningResult(self.log, n_parameters, layers, self.seconds)

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
            raise self.not_finite(n_steps)  # the next step's losses would not be finite either
        return {f"{DEV}{name}": value for name, value in columns.items()}

    def with_sum(self, means: torch.Tensor) -> dict[str, float]:
        """Losses by name, and their weighted sum as `loss`; a loss of weight 0 isn't in the sum."""
        losses: dict[str, float] = dict(zip(LOSSES, means.tolist(), strict=True))
        weights = self.options.weights.items()
        return losses | {"loss": sum(losses[name] * weight for name, weight in weights if weight)}

    def best(self, n_steps: int) -> Path:
        return self.work / f"{_BEST}{n_steps:08}"

    def keep_best(self) -> None:
        """Save the weights if their loss on dev prompts is below that of all earlier steps."""
        n_steps = len(self.log)
        if chosen_step(self.log) != n_steps:
            return
        temporary = self.work / "_best"
        for path in (temporary, self.best(n_steps)):  # an interrupted run may have left both
            shutil.rmtree(path, ignore_errors=True)
        save_adapter(self.model, temporary)
        temporary.rename(self.best(n_steps))

    def not_finite(self, step: int) -> BadInput:
        """The error for a step (from 0); removes all checkpoints but the last good one."""
        paths = self.checkpoints()
        if paths and paths[-1].name == self.name_of(step):
            shutil.rmtree(paths.pop())  # its weights gave the loss that isn't finite
        for path in paths[:-1]:
            shutil.rmtree(path)
        where = f"the adapter of the last good checkpoint is kept in {paths[-1]}" if paths else ""
        return BadInput(
            "tuning",
            f"a loss or its gradient is not finite at step {step + 1}",
            "; ".join(filter(None, ("try a lower learning rate", where))),
        )

    def name_of(self, n_steps: int) -> str:
        return f"{_MARK}{n_steps:08}"

    def checkpoints(self) -> list[Path]:
        return sorted(self.work.glob(f"{_MARK}*"))

    def checkpoint(self) -> None:
        """Write a checkpoint, then remove all older ones except the previous.

        The previous one stays until the next loss shows whether the new weights are good.
        """
        outdated = self.checkpoints()[:-1]
        temporary = self.work / "_checkpoint"
        shutil.rmtree(temporary, ignore_errors=True)
        save_adapter(self.model, temporary)
        state = {"log": self.log, "seconds": self.seconds}
        save_state({**state, "optimizer": self.optimizer.state_dict()}, temporary / _STATE)
        temporary.rename(self.work / self.name_of(len(self.log)))
        for path in outdated:
            shutil.rmtree(path, ignore_errors=True)

    def restore(self) -> None:
        """Resume from the newest checkpoint that can be read."""
        self.work.mkdir(parents=True, exist_ok=True)
        for path in reversed(self.checkpoints()):
            try:
                state = torch.load(path / _STATE, weights_only=True)
                weights = load_file(path / _WEIGHTS)
            except Exception:  # a damaged file costs steps, no more
                shutil.rmtree(path, ignore_errors=True)
                continue
            peft.set_peft_model_state_dict(self.model, weights)
            self.optimizer.load_state_dict(state["optimizer"])
            self.log, self.seconds = state["log"], state["seconds"]
            return
