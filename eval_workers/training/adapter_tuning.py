"""Tune a LoRA adapter on prompts from the warehouse, and record it.

The base model is frozen and stays in evaluation mode. Only the adapter has dropout. If there are
prompts from ``--dev-sets``, the loss on these is measured every ``checkpoint_steps`` steps and
after the last step. The weights with the lowest measured loss are saved.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import peft
import torch
from peft.tuners.lora import LoraLayer

from plumbline.eval_workers.disclosure.word_probabilities import load_words
from plumbline.eval_workers.models import memory_problems
from plumbline.eval_workers.models.local import devices
from plumbline.eval_workers.models.local.adapter import find_adapter
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.local.source import first_line
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.training.trained_models import made_once, plain_name
from plumbline.eval_workers.training.trainer import Figures, check_finite, fit, shuffled, trainable
from plumbline.eval_workers.training.training_options import (
    ALPHA,
    CLIP_NORM,
    DROPOUT,
    LOSSES,
    MAX_TOKENS,
    TuneOptions,
)
from plumbline.eval_workers.training.tuning_prompts import TuningPrompts, tuning_prompts
from plumbline.eval_workers.training.word_losses import TuningTarget, WordReader, target
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.input_rows import rejected
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import say
from plumbline.warehouse.text.progress import progress
from plumbline.warehouse.wordlists import WordList

Row = dict[str, Any]

#: Increment this when the same options would give another adapter.
TUNER_VERSION = 1
#: The name of the tuning in errors.
_WHAT = "tuning"
#: The reported start and end losses are means over this many steps, but at most half of all steps.
_END_STEPS = 10
#: Options that are columns of ``tuning``.
_COLUMNS = ("rank", "learning_rate", "batch_prompts", "seed", "as_published")
#: Loss -> the unit at the end of its column names.
_UNITS = {"distance": "_nats", "dev_distance": "_nats"}


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
) -> tuple[Row, bool]:
    """Tune an adapter for ``model`` and save it in ``<out>/<name>``.

    Return the adapter's row of ``tuning``, and whether the adapter already existed. An existing
    adapter isn't tuned again, but its rows are written again. Reads ``probe_prompt``. Writes
    ``tuning``, ``tuning_step`` and ``reject`` (stage `tune`, subject ``name``). ``how`` has the
    options for loading the base model. ``tuning_prompts`` chooses prompts from the sets.

    Raises ``BadInput`` if no prompt is left, if a loss is not finite, and if memory runs out. Also
    raises the errors of ``made_once``, ``load_words`` and ``CausalModel``.
    """
    path = Path(out) / plain_name(name)
    prompts = tuning_prompts(store, sets, test_sets, dev_sets, options.as_published)
    words = load_words(store, options.word_list)
    backend = CausalModel(model, how)

    def make(work: Path) -> Row:
        say("if you interrupt the tuning, it will start again from the beginning", err=True)
        return train_adapter(backend, targets, options, work, dev)

    with memory_problems(model):
        rejects = list(prompts.rejects)
        targets = _targets(prompts.rows, backend, words, rejects)
        dev = _targets(prompts.dev, backend, words, rejects)
        made, reused = made_once(path, _identity(backend, options, prompts, words), "adapter", make)
        row = {
            "tuning": name,
            "adapter": find_adapter(str(path)).name,
            "path": str(path),
            "n_prompts": len(targets),
            "n_left_out": len(rejects),
            "n_dev_prompts": len(dev) or None,
            "dev_sets": ", ".join(dev_sets) or None,
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
        store.replace(table, rows, partition, run_id)
    return row, reused


def _targets(
    rows: Sequence[Row], backend: CausalModel, words: WordList, rejects: list[Row]
) -> list[TuningTarget]:
    """Turn usable prompts into tuning targets. Append the other prompts to ``rejects``."""
    targets = list[TuningTarget]()
    for row in rows:
        result = target(row["prompt"], words.pairs, backend.encoded, MAX_TOKENS)
        if isinstance(result, str):
            rejects.append(rejected(row, result, row["prompt"]))
        else:
            targets.append(result)
    if rows and not targets:
        sets = ", ".join(dict.fromkeys(row["probe_set"] for row in rows))
        problem = f"can use no prompt of {sets}; the last: {rejects[-1]['reason']}"
        raise BadInput(f"model {backend.identity.model}", problem)
    return targets


def _identity(
    backend: CausalModel, options: TuneOptions, prompts: TuningPrompts, words: WordList
) -> Row:
    """Return what the adapter's key is computed from."""
    return {
        "identity": asdict(backend.identity),
        "batch_tokens": backend.weights.options.batch_tokens,
        "options": asdict(options),
        "prompts": prompts.hash,
        "dev": [row["prompt"] for row in prompts.dev],
        "words": words.hash,
        "tuner_version": TUNER_VERSION,
    }


def _facts(
    backend: CausalModel, options: TuneOptions, prompts: TuningPrompts, words: WordList
) -> Row:
    """Return columns of ``tuning`` that describe the base model, prompts, words and options."""
    identity = backend.identity
    return {
        "base": identity.model,
        "base_revision": identity.revision,
        "base_quantisation": identity.quantisation,
        "probe_sets": ", ".join(dict.fromkeys(row["probe_set"] for row in prompts.rows)),
        "test_sets": ", ".join(prompts.test_sets),
        "n_leaks": prompts.n_leaks,
        "n_leaks_kept": prompts.n_leaks_kept,
        "prompts_hash": prompts.hash,
        "word_list": words.name,
        "n_steps": options.steps,
        "clip_norm": None if options.as_published else CLIP_NORM,
        "alpha": ALPHA,
        "dropout": DROPOUT,
        "max_tokens": MAX_TOKENS,
        **{f"{loss}_weight": weight for loss, weight in options.weights.items()},
        **{name: getattr(options, name) for name in _COLUMNS},
    }


def _ends(log: Sequence[Figures]) -> Row:
    """Return the mean losses of the first steps and of the last steps, as columns of ``tuning``."""
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
    dev: Sequence[TuningTarget] = (),
) -> dict[str, Any]:
    """Train an adapter, save it in the directory ``work`` and return its `outcome` and `log`.

    `outcome` has columns of ``tuning``. `log` has the figures of each step,
    named as in ``tuning_step``, but without units. If ``dev`` has targets, the weights with the
    lowest loss on ``dev`` are saved. If several steps have the lowest loss, the first is used.
    Don't use ``backend`` afterwards, because its model then contains the adapter.
    """
    with torch.random.fork_rng():
        model = adapted(backend, options.seed, options.rank, ALPHA, DROPOUT)
        weights = trainable(model)
        n_tokens = devices.batch_tokens(backend.weights.options, model.device.type)
        reader = WordReader(model.get_base_model(), backend.identity.bos_token_id, n_tokens)
        log: list[Figures] = []
        best: list[torch.Tensor] = []
        chosen: int | None = None

        def after(step: int, figures: Figures) -> None:
            nonlocal best, chosen
            log.append(figures)
            is_measured = step == options.steps or step % options.checkpoint_steps == 0
            if dev and is_measured:
                figures |= dev_losses(model, reader, dev, options)
                check_finite(figures, _WHAT, step + 1)  # the error names the step that would fail
                if chosen is None or figures["dev_loss"] < log[chosen - 1]["dev_loss"]:
                    chosen, best = step, [weight.detach().clone() for weight in weights]
            note = "L_d {distance:.3g} L_g {total:.3g} L_l {difference:.3g}"
            update(step, options.steps, note=note.format(**figures))

        start = time.monotonic()
        with progress("tune", "steps") as update:
            take_steps(model, reader, targets, options, after)
        seconds = time.monotonic() - start
        with torch.no_grad():
            for weight, value in zip(weights, best, strict=False):
                weight.copy_(value)
        with warnings.catch_warnings(action="ignore"):
            # By default, PEFT would ask the hub whether to save the embeddings.
            model.save_pretrained(str(work), save_embedding_layers=False)
    modules = model.peft_config["default"].target_modules
    outcome = {
        "layers": ", ".join(sorted({str(name).rsplit(".", 1)[-1] for name in modules})),
        "n_parameters": sum(weight.numel() for weight in weights),
        "seconds": seconds,
        "chosen_step": chosen,
        "dev_loss": log[chosen - 1]["dev_loss"] if chosen else None,
    }
    return {"outcome": outcome, "log": log}


def take_steps(
    model: Any,
    reader: WordReader,
    targets: Sequence[TuningTarget],
    options: TuneOptions,
    after: Callable[[int, Figures], None],
) -> None:
    """Run all training steps. After each step, call ``after`` with its number and figures."""
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
    clip_norm = math.inf if options.as_published else CLIP_NORM
    fit(weights, batches, optimizer, clip_norm, _WHAT, after)


def _loss(
    reader: WordReader, part: Sequence[TuningTarget], options: TuneOptions, n_prompts: int
) -> tuple[torch.Tensor, Figures]:
    """Return what ``part`` adds to a step's loss and figures. A step has ``n_prompts`` prompts."""
    loss, figures = _weighted(reader.losses(part).sum(dim=0) / n_prompts, options)
    if options.as_published:  # minimise the sum of the prompts' losses, not the mean
        loss = loss * n_prompts
    return loss, figures | {"loss": loss.item()}


def _weighted(losses: torch.Tensor, options: TuneOptions) -> tuple[torch.Tensor, Figures]:
    """Return the weighted sum of the losses L_d, L_g and L_l, and the losses as {name: loss}.

    A loss with weight 0 may be NaN, so it is left out instead of being multiplied by 0.
    """
    weights = zip(losses, options.weights.values(), strict=True)
    whole = torch.stack([weight * loss for loss, weight in weights if weight]).sum()
    return whole, dict(zip(LOSSES, losses.tolist(), strict=True))


def dev_losses(
    model: Any, reader: WordReader, dev: Sequence[TuningTarget], options: TuneOptions
) -> Figures:
    """Return the mean losses on ``dev`` and their weighted sum `dev_loss`. Dropout is off."""
    switch_dropout(model, on=False)
    with torch.no_grad():
        losses = torch.cat([reader.losses(part) for part in reader.passes(dev)]).mean(dim=0)
    switch_dropout(model, on=True)
    loss, figures = _weighted(losses, options)
    return {f"dev_{name}": value for name, value in {**figures, "loss": loss.item()}.items()}


def adapted(backend: CausalModel, seed: int, rank: int, alpha: int, dropout: float) -> Any:
    """Put a new adapter on the model. Until it is trained, it doesn't change the model's output.

    The adapter's output is scaled by ``alpha`` / ``rank``. PEFT chooses the layers to adapt. Only
    the adapter has gradients and dropout. The model stays in evaluation mode. ``seed`` is set as
    torch's random seed. Raises ``UsageProblem`` if PEFT can't adapt any layer of the model.
    """
    torch.manual_seed(seed)
    config = peft.LoraConfig(
        task_type="CAUSAL_LM",
        r=rank,
        lora_alpha=alpha,
        lora_dropout=dropout,
        revision=backend.source.revision,
    )
    try:
        with warnings.catch_warnings(action="ignore"):
            model = peft.get_peft_model(backend.weights.model, config)
    except ValueError as e:
        problem = f"PEFT can't put an adapter on it: {first_line(e)}"
        raise UsageProblem(f"model {backend.identity.model}", problem) from e
    model.eval()
    switch_dropout(model, on=True)
    for module in model.modules():
        if type(module).__module__.startswith("bitsandbytes"):
            module.train()  # evaluation mode would pack weights on a CPU and lose gradients
    return model


def switch_dropout(model: Any, *, on: bool) -> None:
    for module in model.modules():
        if isinstance(module, LoraLayer):
            module.lora_dropout.train(on)
