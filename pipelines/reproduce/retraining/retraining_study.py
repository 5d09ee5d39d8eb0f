"""Trainings on halves, scores of the methods, and their table. Finished parts are kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.training.trained_models import (
    TrainedModel,
    progress_bar,
    record_model,
    train_model,
)
from plumbline.pipelines.attribution.attributed_text import training_text
from plumbline.pipelines.attribution.contract import METHODS, Query, Subject
from plumbline.pipelines.attribution.queries import of_words
from plumbline.pipelines.reproduce.cause import count_text, import_pairs
from plumbline.pipelines.reproduce.retraining.datamodelling import (
    Estimate,
    Floats,
    ceiling,
    columns,
    score,
)
from plumbline.pipelines.reproduce.retraining.design import (
    AttributionDesign,
    ClosedWorld,
    Outcome,
    StudyText,
)
from plumbline.pipelines.stages import Stages
from plumbline.warehouse.errors import MissingComponent
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.paths import replacing
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.query.finding import verdict
from plumbline.warehouse.query.method_validation import FIRST, PLACEBO_FIRST, PLACEBOS
from plumbline.warehouse.storage.run_records import config_hash
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress

_PREFERENCES = """
FROM word_preference
WHERE model_key = $model_key AND benchmark = $benchmark AND groups = 'female/male'
"""
Row = dict[str, Any]


@dataclass(frozen=True)
class MethodScores:
    """A method's scores of the words, float64[word, document], and the CPU time they took."""

    method: str
    scores: Floats
    cpu_seconds: float


@dataclass(frozen=True)
class Study:
    """One text of a design, its trainings and the methods' scores.

    ``out``: directory of text, models and scores.
    """

    design: AttributionDesign
    text: StudyText
    data: Path
    out: Path
    store: Store
    run_id: str
    stages: Stages
    say: Callable[[str], None]

    @property
    def benchmark(self) -> str:
        """The benchmark of the text's words."""
        return "closed-world" if isinstance(self.text, ClosedWorld) else self.text.benchmark.name

    @cached_property
    def records(self) -> list[Mapping[str, Any]]:
        """The documents."""
        return list(self.text.records(self.data))

    @cached_property
    def halves(self) -> NDArray[np.bool_]:
        """The documents of each half, bool[half, document]."""
        return self.text.trainings.documents(self.text.units(self.records))

    def prepare(self) -> TrainedModel:
        """Count the text, import the pairs, and train the model to attribute on the whole text."""
        corpus, shard = self.text.corpus, self._shard("text", range(len(self.records)))
        self.stages.run(f"count {corpus}", count_text, self.store, corpus, (shard,))
        self.stages.run(f"pairs of {self.benchmark}", self._import)
        return self.stages.run(f"train on all of {corpus}", self._train, "all", 0, None)

    def preferences(self, whole: TrainedModel) -> Floats:
        """Preference of each word, float64[seed, half, word]; NaN for a half without that seed.

        Reports the ceiling of each outcome once all halves with two trainings are done.
        """
        preferences = np.full((2, len(self.halves), len(self.text.words)), np.nan)
        runs = self.text.trainings.runs()
        for k, (half, seed) in enumerate(runs, 1):
            label = f"train on half {half} of {self.text.corpus}, seed {seed} ({k} of {len(runs)})"
            arguments = (f"half-{half}", seed, whole.path / "tokenizer.json")
            preferences[seed, half] = self.stages.run(label, self._preference, *arguments)
            if k == 2 * self.text.trainings.n_twice:
                for outcome in self.text.outcomes():
                    best = ceiling_of(outcome, preferences)
                    span = f"{best.value:.2f} ({best.low:.2f} to {best.high:.2f})"
                    self.say(f"{self.text.corpus}, {outcome.name}: ceiling {span}")
        return preferences

    def methods(self, whole: TrainedModel) -> list[MethodScores]:
        """Scores of all methods whose packages are installed."""
        label = "{} on " + self.text.corpus
        all_scores = (
            self.stages.run(label.format(name), self._scored, name, whole)
            for name in self.design.methods
        )
        return [scored for scored in all_scores if scored]

    def _shard(self, name: str, documents: Sequence[int] | NDArray[np.int64]) -> Path:
        path = self.out / f"{name}.jsonl.zst"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_jsonl_zst(path, (self.records[k] for k in documents))
        return path

    def _import(self) -> None:
        from plumbline.eval_workers.pairs.benchmarks import import_benchmark

        if isinstance(self.text, ClosedWorld):
            import_benchmark(self.store, self.benchmark, None, self.run_id)
        else:
            import_pairs(self.text.benchmark, self.out, self.store, self.run_id)

    def _train(self, name: str, seed: int, tokenizer: Path | None) -> TrainedModel:
        """Train on the whole text or a half; all models have the tokenizer of the whole text."""
        shard = self.out / "text.jsonl.zst"
        if name != "all":
            shard = self._shard(name, np.flatnonzero(self.halves[int(name.split("-")[1])]))
        name = f"{self.text.corpus}-{name}-{seed}"
        options = self.text.trainings.options(seed)
        with progress_bar(name) as update:
            arguments = ([shard], name, self.text.corpus, options, self.out / "models", update)
            model = train_model(*arguments, tokenizer=tokenizer)
        record_model(self.store, model, self.run_id)
        return model

    def _preference(self, name: str, seed: int, tokenizer: Path) -> Floats:
        """Preference of each word after a training: the mean log ratio of its pairs."""
        from plumbline.eval_workers.scoring.pair_scores import score_benchmarks

        model = self._train(name, seed, tokenizer)
        arguments = ((self.benchmark,), ModelOptions(), self.run_id)
        (scored,) = score_benchmarks(self.store, str(model.path), *arguments)
        key = {"model_key": scored.model_key, "benchmark": self.benchmark}
        rows = {row["word"]: row for row in rows_of(self.store.root, _PREFERENCES, key)}
        return np.array([rows[word.lower()]["mean_log_ratio_nats"] for word in self.text.words])

    @cached_property
    def queries(self) -> list[Query]:
        """A query for each word's preference."""
        return of_words(self.store, self.text.words, self.benchmark)

    def _scored(self, method: str, whole: TrainedModel) -> MethodScores | None:
        """A method's scores, stored or computed now; None if its packages are not installed."""
        made_of = {"design": self.design.sha256, "model": whole.row("")["revision"]}
        path = self.out / "scores" / f"{method}-{config_hash(made_of)}.npz"
        if not path.exists():
            text = training_text(self.store, self.text.corpus, whole.path)
            assert len(text) == len(self.records), "a document was rejected when it was counted"
            subject = Subject(self.store, str(whole.path), text)
            start = _cpu_seconds()
            try:
                with progress(method, "parts") as update:
                    scores = METHODS.load(method).scores(self.queries, subject, update)
            except MissingComponent as e:
                self.stages.run(f"{method} is left out: {e}", lambda: None)
                return None
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary, temporary.open("wb") as file:
                np.savez(file, scores=scores, cpu_seconds=_cpu_seconds() - start)
        stored = np.load(path)
        return MethodScores(method, stored["scores"], float(stored["cpu_seconds"]))


def _cpu_seconds() -> float:
    """CPU time of this process and of the children that it has waited for."""
    return sum(os.times()[:4])


def run(
    design: AttributionDesign,
    data: Path,
    out: Path,
    store: Store,
    run_id: str,
    stages: Stages,
    say: Callable[[str], None],
) -> list[Row]:
    """Run a study, replace its table and return the rows. The same call resumes."""
    rows = []
    for text in design.texts:
        study = Study(design, text, data, out / text.corpus, store, run_id, stages, say)
        whole = study.prepare()
        preferences = study.preferences(whole)
        methods = study.methods(whole)
        table = datamodelling_rows(design, text.outcomes(), preferences, study.halves, methods)
        if isinstance(text, ClosedWorld):
            table += first_rows(design, text, text.units(study.records), methods)
        constant = {"corpus": text.corpus, "design_sha256": design.sha256, "run_id": run_id}
        table = [{**row, **constant, "is_trusted": is_trusted(design, row)} for row in table]
        store.replace("datamodelling_score", table, {"corpus": text.corpus}, run_id)
        rows += table
    return rows


def ceiling_of(outcome: Outcome, preferences: Floats) -> Estimate:
    """Score that a perfect prediction of an outcome would reach, from halves trained twice."""
    first, second = preferences[:, ~np.isnan(preferences[1, :, 0])] @ outcome.true.T
    return ceiling(first.T, second.T)


def datamodelling_rows(
    design: AttributionDesign,
    outcomes: Sequence[Outcome],
    preferences: Floats,
    documents: NDArray[np.bool_],
    methods: Sequence[MethodScores],
) -> list[Row]:
    """Datamodelling scores; outcomes with a low ceiling are left out, except for placebos."""
    rows = []
    for outcome in outcomes:
        best = ceiling_of(outcome, preferences)
        if best.value < design.least_ceiling and outcome.name not in PLACEBOS:
            continue
        true = outcome.true @ preferences[0].T
        predicted = {
            scored.method: outcome.predicted @ scored.scores @ documents.T for scored in methods
        }
        for scored in methods:
            over, baseline = _hardest(
                design, scored.method, predicted, partial(score, predicted[scored.method], true)
            )
            row = _row(scored, outcome.name, score(predicted[scored.method], true), best, over)
            n = {"n_words": len(true), "n_halves": true.shape[1]}
            rows.append({**row, "baseline": baseline, "chance": 0.0, **n})
    return rows


def first_rows(
    design: AttributionDesign,
    world: ClosedWorld,
    units: NDArray[np.int64],
    methods: Sequence[MethodScores],
) -> list[Row]:
    """Share of the words for which a method puts the planted source first."""
    sources = (units[:, None] == np.arange(world.n_sources)).astype(float)
    sides, rows = np.array([*world.leaning.values()])[:, None], []
    leaning = {scored.method: scored.scores[: len(sides)] @ sources * sides for scored in methods}
    placebo = {scored.method: scored.scores[len(sides) :] @ sources for scored in methods}
    # A placebo leans to neither side: both sides are tried, and each counts half.
    for name, sums, signs in ((FIRST, leaning, (1,)), (PLACEBO_FIRST, placebo, (1, -1))):
        firsts = {
            method: np.mean(
                [(sign * own).argmax(axis=1) == world.planted for sign in signs], axis=0
            )
            for method, own in sums.items()
        }
        for scored in methods:
            own = firsts[scored.method]
            over, baseline = _hardest(
                design, scored.method, firsts, partial(Estimate.of_difference, own)
            )
            row = _row(scored, name, Estimate.of_share(float(own.mean()), len(own)), over=over)
            about = {"chance": 1 / world.n_sources, "n_words": len(own), "n_halves": None}
            rows.append({**row, "baseline": baseline, **about})
    return rows


def _hardest(
    design: AttributionDesign,
    method: str,
    figures: Mapping[str, Floats],
    difference: Callable[[Floats], Estimate],
) -> tuple[Estimate | None, str | None]:
    """The difference from a baseline with the least lower end, and its name; None for baselines."""
    others = () if method in design.baselines else design.baselines
    differences = [(difference(figures[name]), name) for name in others if name in figures]
    return min(differences, key=lambda pair: pair[0].low, default=(None, None))


def _row(
    scored: MethodScores,
    outcome: str,
    value: Estimate,
    best: Estimate | None = None,
    over: Estimate | None = None,
) -> Row:
    estimates = columns("score", value) | columns("ceiling", best) | columns("over_baseline", over)
    return {
        "method": scored.method,
        "outcome": outcome,
        **estimates,
        "cpu_seconds": scored.cpu_seconds,
    }


def is_trusted(design: AttributionDesign, row: Row) -> bool:
    """True if a method is better than chance and than every baseline.

    The interval of its score has to lie above chance, and that of ``over_baseline`` (unless None)
    above 0. False for baselines and for placebos.
    """
    if row["method"] in design.baselines or row["outcome"] in PLACEBOS:
        return False
    ends = (row["over_baseline_low"], row["over_baseline_high"])
    is_over = row["over_baseline"] is None or verdict(row["over_baseline"], *ends) == "above"
    score = (row["score"], row["score_low"], row["score_high"])
    return verdict(*score, null=row["chance"]) == "above" and is_over
