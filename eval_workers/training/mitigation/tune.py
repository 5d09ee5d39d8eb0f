"""The step that tunes an adapter on prompts of the warehouse and records what it did."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from plumbline.eval_workers.disclosure.word_probabilities import load_words
from plumbline.eval_workers.models.devices import memory_problems
from plumbline.eval_workers.models.local.adapter import find_adapter
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.transformers_backend import TransformersBackend
from plumbline.eval_workers.training.mitigation.card import adapter_card
from plumbline.eval_workers.training.mitigation.options import LOSSES, Progress, TuneOptions
from plumbline.eval_workers.training.mitigation.prompts import Training, reject, training_prompts
from plumbline.eval_workers.training.mitigation.targets import Target, target
from plumbline.eval_workers.training.mitigation.train import DEV, Outcome, chosen_step, train
from plumbline.eval_workers.training.models import MARKER, plain_name, put_in_place, read_marker
from plumbline.warehouse.errors import BadInput, UsageProblem, disk_problems
from plumbline.warehouse.storage.locks import sole
from plumbline.warehouse.storage.runs import config_hash
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.wordlists import WordList

Row = dict[str, Any]

#: Raised when the same options would give other weights.
TUNER_VERSION = 1
#: Steps whose mean losses are reported as the first and the last; of a short run half of its steps.
_END_STEPS = 10
#: Loss -> what its columns end in.
_UNITS = {"distance": "_nats", f"{DEV}distance": "_nats"}
#: Options that are columns of ``tuning`` under their own name.
_SAME = (
    *(
        "distance_smoothing",
        "rank",
        "alpha",
        "dropout",
        "learning_rate",
        "batch_prompts",
        "max_tokens",
    ),
    *("seed", "as_published"),
)


@dataclass(frozen=True)
class Tuned:
    """A tuned adapter on disk; ``reused`` when it was there already.

    ``n_prompts`` were tuned on, ``n_left_out`` were not (rows of ``reject``), ``n_leaks`` of these
    because a test set has them. ``n_leaks_kept`` were tuned on although a test set has them.
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

    Reads ``probe_prompt``; writes ``tuning``, ``tuning_step`` and ``reject`` (stage `tune`, the
    name for a subject). ``how`` loads the base, ``quantisation="nf4"`` in 4 bits. ``test_sets``:
    what the prompts are compared with, all other sets if ``None``; a prompt in one is left out,
    unless ``options.as_published``. With ``dev_sets`` the losses on their prompts are measured at
    every checkpoint and at the end, and the adapter is that of the step where their weighted sum is
    least.

    An interrupted run resumes from its last checkpoint and ends with the weights it would have had;
    the same adapter once more is only recorded. One of this name that was tuned otherwise is
    replaced, once the new one is whole; a directory that Plumbline did not make never
    (``UsageProblem``).

    Raises ``BadInput`` where no prompt is left, for a loss that is not finite, a disk that can't be
    written or too little memory; ``UsageProblem`` for options that contradict themselves and for an
    adapter that another command is tuning; and what loading the word list and the model raises.
    """
    path = Path(out) / plain_name(name)
    check(how)
    training = training_prompts(store, sets, test_sets, name, dev_sets, options.as_published)
    words = load_words(store, options.word_list)
    backend = TransformersBackend(model, how)
    with disk_problems(path), memory_problems(model):
        work = _Work(backend, options, words, training, name)
        figures, log, reused = _tuned(work, path, progress)
    rows = [{**figures, "path": str(path), "adapter": find_adapter(str(path)).name}]
    steps = [{"tuning": name, "step": i, **_columns(row)} for i, row in enumerate(log, 1)]
    _publish(store, "tuning", rows, {"tuning": name}, run_id)
    _publish(store, "tuning_step", steps, {"tuning": name}, run_id)
    _publish(store, "reject", work.rejects, {"stage": "tune", "subject": name}, run_id)
    counts = {
        column: figures[column] for column in ("n_prompts", "n_left_out", "n_leaks", "n_leaks_kept")
    }
    return Tuned(name, rows[0]["adapter"], path, **counts, reused=reused)


def check(how: ModelOptions) -> None:
    """Raise ``UsageProblem`` for ways to load a base that no adapter can be tuned on."""
    for what, value, wanted in (
        ("--backend", how.backend, "transformers"),
        ("--adapter", how.adapter, None),
        ("--text-form", how.text_form, "written"),
    ):
        if value != wanted:
            raise UsageProblem(f"{what} {value}", "can't be tuned", "leave it out")


class _Work:
    """What is to be tuned: the targets of the prompts that can be, and the rejects."""

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

    def _targets(self, rows: Sequence[Row], what: str) -> list[Target]:
        found = list[Target]()
        for row in rows:
            pairs, longest = self.words.pairs, self.options.max_tokens
            one = target(row["prompt"], pairs, self.backend.encoded, longest)
            if isinstance(one, str):
                self.rejects.append(reject(row, one, self.name))
            else:
                found.append(one)
        if not found:
            problem = f"no prompt can be {what}; the last: {self.rejects[-1]['reason']}"
            raise BadInput(f"model {self.backend.identity.model}", problem)
        return found

    @property
    def key(self) -> str:
        """Stands for all that decides the weights."""
        dev = {"dev": [row["prompt"] for row in self.training.dev]} if self.dev else {}
        options = asdict(self.options)
        if not self.options.as_published:  # adapters from before there was this option stay
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
        """Columns of ``tuning`` that are known before it."""
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
    """Columns of ``tuning`` and log of the adapter in ``path``, which is made unless it is there.

    The sets that the prompts are compared with may change while the adapter stays: the card has the
    latest.
    """
    with sole(path.with_name(f".{path.name}.claim"), f"adapter {path}"):
        return _tuned_alone(work, path, progress)


def _tuned_alone(
    work: _Work, path: Path, progress: Progress | None
) -> tuple[Row, list[dict[str, float]], bool]:
    known = read_marker(path)
    if known is not None and known["key"] == work.key:
        row = {**work.facts, **known["figures"]["outcome"]}
        (path / "README.md").write_text(adapter_card(row), encoding="utf-8")
        return row, known["figures"]["log"], True
    # A directory of its own for each key: a checkpoint that was kept outlives other settings.
    place = path.with_name(f".{path.name}-{work.key}.partial")
    made = train(work.backend, work.targets, work.options, place, progress, work.dev)
    outcome = _outcome(made)
    row = {**work.facts, **outcome}
    (place / "README.md").write_text(adapter_card(row), encoding="utf-8")
    marker = {"key": work.key, "figures": {"outcome": outcome, "log": made.log}}
    (place / MARKER).write_text(json.dumps(marker, indent=1), encoding="utf-8")
    put_in_place(place, path)
    return row, made.log, False


def _outcome(made: Outcome) -> Row:
    """Columns of ``tuning`` that only tuning tells."""
    row: Row = {"layers": made.layers, "n_parameters": made.n_parameters, "seconds": made.seconds}
    chosen, last = chosen_step(made.log), made.log[-1].get(f"{DEV}loss")
    row |= {"chosen_step": chosen, "dev_loss_end": last}
    row["dev_loss"] = None if chosen is None else made.log[chosen - 1][f"{DEV}loss"]
    n = max(1, min(_END_STEPS, len(made.log) // 2))
    for loss in LOSSES:
        unit, values = _UNITS.get(loss, ""), [step[loss] for step in made.log]
        row[f"{loss}_start{unit}"] = _mean(values[:n])
        row[f"{loss}_end{unit}"] = _mean(values[-n:])
    return row


def _columns(step: dict[str, float]) -> dict[str, float]:
    """Columns of ``tuning_step``."""
    return {f"{name}{_UNITS.get(name, '')}": value for name, value in step.items()}


def _publish(
    store: Store, table: str, rows: Sequence[Row], partition: dict[str, str], run_id: str
) -> None:
    store.replace(table, [{**row, "run_id": run_id} for row in rows], partition, run_id)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
