"""Tune an adapter on prompts of the warehouse and record it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from plumbline.eval_workers.disclosure.word_probabilities import load_words
from plumbline.eval_workers.models.devices import memory_problems
from plumbline.eval_workers.models.kinds.causal_model import CausalModel
from plumbline.eval_workers.models.local.adapter import find_adapter
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.training.loop import Figures
from plumbline.eval_workers.training.mitigation.adapter_trainer import train_adapter
from plumbline.eval_workers.training.mitigation.targets import TuningTarget, target
from plumbline.eval_workers.training.mitigation.tuning_options import LOSSES, TuneOptions
from plumbline.eval_workers.training.mitigation.tuning_prompts import (
    TuningPrompts,
    tuning_prompts,
)
from plumbline.eval_workers.training.model_card import adapter_card
from plumbline.eval_workers.training.trained_models import made_once, plain_name
from plumbline.eval_workers.training.training_options import StepProgress, check_trainable
from plumbline.warehouse.errors import BadInput, disk_problems
from plumbline.warehouse.input.input_rows import rejected
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import say
from plumbline.warehouse.wordlists import WordList

Row = dict[str, Any]

#: Increment it when the same options would give another adapter.
TUNER_VERSION = 1
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
        # Written each time: test sets may change while the adapter stays.
        (path / "README.md").write_text(adapter_card(row), encoding="utf-8")
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
