"""Tune a LoRA adapter on prompts of the warehouse, and record it.

The base is frozen and stays in evaluation mode; only the adapter has dropout. With dev prompts, the
loss on them is measured every ``checkpoint_steps`` and after the last step; the result has the
weights with the least.
"""

from __future__ import annotations

import itertools
import math
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from plumbline.eval_workers.disclosure.word_probabilities import load_words
from plumbline.eval_workers.models import devices, memory_problems
from plumbline.eval_workers.models.local.adapter import find_adapter
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.training.learner import adapted, save_adapter, switch_dropout
from plumbline.eval_workers.training.trained_models import made_once, plain_name
from plumbline.eval_workers.training.trainer import Figures, check_finite, fit, shuffled, trainable
from plumbline.eval_workers.training.training_options import (
    LOSSES,
    StepProgress,
    TuneOptions,
    check_trainable,
)
from plumbline.eval_workers.training.tuning_prompts import TuningPrompts, tuning_prompts
from plumbline.eval_workers.training.word_losses import TuningTarget, WordReader, target
from plumbline.warehouse.errors import BadInput, disk_problems
from plumbline.warehouse.input.input_rows import rejected
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import say
from plumbline.warehouse.wordlists import WordList

Row = dict[str, Any]

#: Increment it when the same options would give another adapter.
TUNER_VERSION = 1
#: Name in errors.
_WHAT = "tuning"
#: Steps whose mean losses are reported as first and last losses; at most half of a run's steps.
_END_STEPS = 10
#: Loss -> suffix of its columns.
_UNITS = {"distance": "_nats", "dev_distance": "_nats"}
#: Options that are columns of ``tuning`` under their own name.
_SAME = (
    *("distance_smoothing", "rank", "alpha", "dropout", "learning_rate", "batch_prompts"),
    *("max_tokens", "seed", "as_published"),
)


@dataclass(frozen=True)
class Tuned:
    """A tuned adapter: its row of ``tuning``, and ``reused`` if it was on disk already."""

    row: Row
    path: Path
    reused: bool


def tune(
    store: Store,
    model: str,
    how: ModelOptions,
    options: TuneOptions,
    run_id: str,
    *,
    sets: Sequence[str],
    name: str,
    out: str | Path,
    test_sets: Sequence[str] | None = None,
    dev_sets: Sequence[str] = (),
    progress: StepProgress | None = None,
) -> Tuned:
    """Tune an adapter for ``model`` on the prompts of ``sets`` into ``<out>/<name>``.

    Reads ``probe_prompt``; writes ``tuning``, ``tuning_step`` and ``reject`` (stage `tune`, subject
    ``name``). ``how`` loads the base, in 4 bits with ``quantisation="nf4"``. Prompts that are in
    ``test_sets`` (``None``: all other sets) are left out, unless ``options.as_published``. With
    ``dev_sets`` the losses on their prompts are measured every ``checkpoint_steps`` and at the end;
    the adapter is the one with the least weighted sum.

    An existing adapter is only recorded again. An adapter of this name with other options is
    replaced once the new one is complete.

    Raises ``BadInput`` if no prompt is left, for a loss that is not finite, a disk that can't be
    written or too little memory; ``UsageProblem`` for options that exclude tuning; and what
    ``made_once`` and loading the word list and the model raise.
    """
    path = Path(out) / plain_name(name)
    check_trainable(how, adapter_only=True)
    prompts = tuning_prompts(store, sets, test_sets, dev_sets, options.as_published)
    words = load_words(store, options.word_list)
    backend = CausalModel(model, how)

    def make(work: Path) -> Row:
        say("an interrupted tuning starts again from the beginning", err=True)
        return train_adapter(backend, targets, options, work, progress, dev)

    with memory_problems(model), disk_problems(path):
        rejects = list(prompts.rejects)
        targets, dev = (
            _targets(rows, what, backend, words, options, rejects)
            for rows, what in ((prompts.rows, "tuned on"), (prompts.dev, "measured on"))
        )
        identity = _identity(backend, options, prompts, words)
        made, reused = made_once(path, identity, "adapter", make)
        row = {
            "tuning": name,
            "adapter": find_adapter(str(path)).name,
            "path": str(path),
            "n_prompts": len(targets),
            "n_left_out": len(rejects),
            "n_dev_prompts": len(dev) or None,
            **_facts(backend, options, prompts, words),
            **made["outcome"],
            **_ends(made["log"]),
        }
    steps = [
        {"step": i, **{f"{k}{_UNITS.get(k, '')}": v for k, v in of_step.items()}}
        for i, of_step in enumerate(made["log"], 1)
    ]
    for table, rows, partition in (
        ("tuning", [row], {"tuning": name}),
        ("tuning_step", steps, {"tuning": name}),
        ("reject", rejects, {"stage": "tune", "subject": name}),
    ):
        rows = [{**one, **partition, "run_id": run_id} for one in rows]
        store.replace(table, rows, partition, run_id)
    return Tuned(row, path, reused)


def _targets(
    rows: Sequence[Row],
    what: str,
    backend: CausalModel,
    words: WordList,
    options: TuneOptions,
    rejects: list[Row],
) -> list[TuningTarget]:
    """The targets of prompts that can be tuned on; appends rejects for the others."""
    targets = list[TuningTarget]()
    for row in rows:
        result = target(row["prompt"], words.pairs, backend.encoded, options.max_tokens)
        if isinstance(result, str):
            rejects.append(rejected(row, result, row["prompt"]))
        else:
            targets.append(result)
    if rows and not targets:
        problem = f"no prompt can be {what}; the last: {rejects[-1]['reason']}"
        raise BadInput(f"model {backend.identity.model}", problem)
    return targets


def _identity(
    backend: CausalModel, options: TuneOptions, prompts: TuningPrompts, words: WordList
) -> Row:
    """Everything that determines the weights."""
    of_options = asdict(options)
    if not options.as_published:  # adapters from before this option keep their key
        del of_options["as_published"]
    dev = {"dev": [row["prompt"] for row in prompts.dev]} if prompts.dev else {}
    return dev | {
        "identity": asdict(backend.identity),
        "batch_tokens": backend.weights.options.batch_tokens,
        "options": of_options,
        "prompts": prompts.hash,
        "words": words.hash,
        "tuner_version": TUNER_VERSION,
    }


def _facts(
    backend: CausalModel, options: TuneOptions, prompts: TuningPrompts, words: WordList
) -> Row:
    """Columns of ``tuning`` on base, prompts, words and options."""
    identity = backend.identity
    return {
        "base": identity.model,
        "base_revision": identity.revision,
        "base_dtype": identity.dtype,
        "base_quantisation": identity.quantisation,
        "probe_sets": ", ".join(dict.fromkeys(row["probe_set"] for row in prompts.rows)),
        "test_sets": ", ".join(prompts.test_sets),
        "n_leaks": prompts.n_leaks,
        "n_leaks_kept": prompts.n_leaks_kept,
        "prompts_hash": prompts.hash,
        "word_list": words.name,
        "word_list_hash": words.hash,
        "n_steps": options.steps,
        "dev_sets": ", ".join(prompts.dev_sets) or None,
        "clip_norm": None if options.as_published else options.clip_norm,
        **{f"{loss}_weight": weight for loss, weight in options.weights.items()},
        **{column: getattr(options, column) for column in _SAME},
    }


def _ends(log: Sequence[Figures]) -> Row:
    """Columns of ``tuning`` with the mean losses of the first and of the last steps."""
    n = max(1, min(_END_STEPS, len(log) // 2))
    return {
        f"{loss}_{end}{_UNITS.get(loss, '')}": sum(row[loss] for row in rows) / n
        for loss in LOSSES
        for end, rows in (("start", log[:n]), ("end", log[-n:]))
    }


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
        size = options.rank, options.alpha, options.dropout, options.targets
        model = adapted(backend, options.seed, *size)
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
