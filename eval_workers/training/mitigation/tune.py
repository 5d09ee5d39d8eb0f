"""Tune an adapter on prompts of the warehouse and record it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from plumbline.eval_workers.disclosure.word_probabilities import load_words
from plumbline.eval_workers.models.devices import memory_problems
from plumbline.eval_workers.models.local.adapter import find_adapter
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.transformers_backend import TransformersBackend
from plumbline.eval_workers.training.mitigation.adapter_card import adapter_card
from plumbline.eval_workers.training.mitigation.adapter_trainer import (
    DEV,
    TuningResult,
    chosen_step,
    train,
)
from plumbline.eval_workers.training.mitigation.targets import TuningTarget, target
from plumbline.eval_workers.training.mitigation.tuning_options import LOSSES, Progress, TuneOptions
from plumbline.eval_workers.training.mitigation.tuning_prompts import (
    Training,
    reject,
    training_prompts,
)
from plumbline.eval_workers.training.trained_models import MARKER, plain_name, read_marker
from plumbline.warehouse.errors import BadInput, UsageProblem, disk_problems
from plumbline.warehouse.paths import replace_directory
from plumbline.warehouse.storage.locks import sole
from plumbline.warehouse.storage.run_records import config_hash
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.wordlists import WordList

Row = dict[str, Any]

#: Increment it when the same options would give other weights.
TUNER_VERSION = 1
#: Steps whose mean losses are reported as first and last losses; at most half of a run's steps.
_END_STEPS = 10
#: Loss -> suffix of its columns.
_UNITS = {"distance": "_nats", f"{DEV}distance": "_nats"}
#: Options that are columns of ``tuning`` under their own name.
_SAME = (
    *("distance_smoothing", "rank", "alpha", "dropout", "learning_rate", "batch_prompts"),
    *("max_tokens", "seed", "as_published"),
)


@dataclass(frozen=True)
class Tuned:
    """A tuned adapter on disk, ``reused`` if it existed.

    It was tuned on ``n_prompts``. ``n_left_out`` are rows of ``reject``, ``n_leaks`` of them since
    a test or dev set has the prompt. ``n_leaks_kept`` prompts were tuned on though a test set has
    them.
    """

    tuning: str
    adapter: str
    path: Path
    n_prompts: int
    n_left_out: int
    n_leaks: int
    n_leaks_kept: int
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
    progress: Progress | None = None,
) -> Tuned:
    """Tune an adapter for ``model`` on the prompts of ``sets`` into ``<out>/<name>``.

    Reads ``probe_prompt``; writes ``tuning``, ``tuning_step`` and ``reject`` (stage `tune`, subject
    ``name``). ``how`` loads the base, in 4 bits with ``quantisation="nf4"``. Prompts that are in
    ``test_sets`` (``None``: all other sets) are left out, unless ``options.as_published``. With
    ``dev_sets`` the losses on their prompts are measured every ``checkpoint_steps`` and at the end;
    the adapter is the one with the least weighted sum.

    An interrupted run starts again; an existing adapter is only recorded again. An adapter of this
    name with other options is replaced once the new one is complete; a directory that Plumbline did
    not make is an error (``UsageProblem``).

    Raises ``BadInput`` if no prompt is left, for a loss that is not finite, a disk that can't be
    written or too little memory; ``UsageProblem`` for options that contradict each other and for an
    adapter that another command is tuning; and what loading the word list and the model raises.
    """
    path = Path(out) / plain_name(name)
    check(how)
    training = training_prompts(store, sets, test_sets, name, dev_sets, options.as_published)
    words = load_words(store, options.word_list)
    backend = TransformersBackend(model, how)
    with disk_problems(path), memory_problems(model):
        work = _Work(backend, options, words, training, name)
        with sole(path.with_name(f".{path.name}.claim"), f"adapter {path}"):
            figures, log, reused = _tuned(work, path, progress)
    adapter = find_adapter(str(path)).name
    steps = [
        {"tuning": name, "step": i, **{f"{k}{_UNITS.get(k, '')}": v for k, v in row.items()}}
        for i, row in enumerate(log, 1)
    ]
    for table, rows, partition in (
        ("tuning", [{**figures, "path": str(path), "adapter": adapter}], {"tuning": name}),
        ("tuning_step", steps, {"tuning": name}),
        ("reject", work.rejects, {"stage": "tune", "subject": name}),
    ):
        store.replace(table, [{**row, "run_id": run_id} for row in rows], partition, run_id)
    counts = {c: figures[c] for c in ("n_prompts", "n_left_out", "n_leaks", "n_leaks_kept")}
    return Tuned(name, adapter, path, **counts, reused=reused)


def check(how: ModelOptions) -> None:
    """Raise ``UsageProblem`` for loading options that exclude tuning."""
    for what, value, expected in (
        ("--backend", how.backend, "transformers"),
        ("--adapter", how.adapter, None),
        ("--text-form", how.text_form, "written"),
    ):
        if value != expected:
            raise UsageProblem(f"{what} {value}", "can't be tuned", "leave it out")


class _Work:
    """Targets of the prompts that can be tuned on, and rejects for the others."""

    def __init__(
        self,
        backend: TransformersBackend,
        options: TuneOptions,
        words: WordList,
        training: Training,
        name: str,
    ) -> None:
        self.backend, self.options, self.words, self.name = backend, options, words, name
        self.training = training
        self.rejects = list(training.rejects)
        self.targets = self._targets(training.rows, "tuned on")
        self.dev = self._targets(training.dev, "measured on") if training.dev else []

    def _targets(self, rows: Sequence[Row], what: str) -> list[TuningTarget]:
        targets = list[TuningTarget]()
        for row in rows:
            pairs, longest = self.words.pairs, self.options.max_tokens
            result = target(row["prompt"], pairs, self.backend.encoded, longest)
            if isinstance(result, str):
                self.rejects.append(reject(row, result, self.name))
            else:
                targets.append(result)
        if not targets:
            problem = f"no prompt can be {what}; the last: {self.rejects[-1]['reason']}"
            raise BadInput(f"model {self.backend.identity.model}", problem)
        return targets

    @property
    def key(self) -> str:
        """Hash of everything that determines the weights."""
        dev = {"dev": [row["prompt"] for row in self.training.dev]} if self.dev else {}
        options = asdict(self.options)
        if not self.options.as_published:  # adapters from before this option keep their key
            del options["as_published"]
        return config_hash(
            dev
            | {
                "identity": asdict(self.backend.identity),
                "batch_tokens": self.backend.options.batch_tokens,
                "options": options,
                "prompts": self.training.hash,
                "words": self.words.hash,
                "tuner_version": TUNER_VERSION,
            }
        )

    @property
    def facts(self) -> Row:
        """Columns of ``tuning`` that don't depend on the result."""
        identity, options, training = self.backend.identity, self.options, self.training
        row: Row = {
            "tuning": self.name,
            "base": identity.model,
            "base_revision": identity.revision,
            "base_dtype": identity.dtype,
            "base_quantisation": identity.quantisation,
            "probe_sets": ", ".join(dict.fromkeys(r["probe_set"] for r in training.rows)),
            "test_sets": ", ".join(training.test_sets),
            "n_prompts": len(self.targets),
            "n_leaks": training.n_leaks,
            "n_leaks_kept": training.n_leaks_kept,
            "n_left_out": len(self.rejects),
            "prompts_hash": training.hash,
            "word_list": self.words.name,
            "word_list_hash": self.words.hash,
            "n_steps": options.steps,
            "dev_sets": ", ".join(training.dev_sets) or None,
            "n_dev_prompts": len(self.dev) if self.dev else None,
            "clip_norm": None if options.as_published else options.clip_norm,
        }
        row |= {f"{loss}_weight": weight for loss, weight in options.weights.items()}
        return row | {column: getattr(options, column) for column in _SAME}


def _tuned(
    work: _Work, path: Path, progress: Progress | None
) -> tuple[Row, list[dict[str, float]], bool]:
    """Columns of ``tuning``, the log, and ``True`` if the adapter in ``path`` existed already.

    The card is written each time: test sets may change while the adapter stays.
    """
    marker = read_marker(path)
    if marker is not None and marker["key"] == work.key:
        row = {**work.facts, **marker["figures"]["outcome"]}
        (path / "README.md").write_text(adapter_card(row), encoding="utf-8")
        return row, marker["figures"]["log"], True
    partial = path.with_name(f".{path.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    result = train(work.backend, work.targets, work.options, partial, progress, work.dev)
    outcome = _outcome(result)
    row = {**work.facts, **outcome}
    (partial / "README.md").write_text(adapter_card(row), encoding="utf-8")
    marker = {"key": work.key, "figures": {"outcome": outcome, "log": result.log}}
    (partial / MARKER).write_text(json.dumps(marker, indent=1), encoding="utf-8")
    replace_directory(partial, path)
    return row, result.log, False


def _outcome(result: TuningResult) -> Row:
    """Columns of ``tuning`` that depend on the result."""
    log = result.log
    row: Row = {
        "layers": result.layers,
        "n_parameters": result.n_parameters,
        "seconds": result.seconds,
    }
    chosen, last = chosen_step(log), log[-1].get(f"{DEV}loss")
    row |= {"chosen_step": chosen, "dev_loss_end": last}
    row["dev_loss"] = None if chosen is None else log[chosen - 1][f"{DEV}loss"]
    n = max(1, min(_END_STEPS, len(log) // 2))
    for loss in LOSSES:
        unit, values = _UNITS.get(loss, ""), [step[loss] for step in log]
        row[f"{loss}_start{unit}"] = sum(values[:n]) / n
        row[f"{loss}_end{unit}"] = sum(values[-n:]) / n
    return row
