"""Study of docs/cause-study.md: a pre-specified design, run from the text to its outcomes.

A design is a TOML file: the text, the intervention's options, a benchmark of templates and words,
and predictions for rows of views. The packaged design was written before its trainings. Outsiders
can't check that, so it is called pre-specified, not registered. Results name its SHA-256.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.training.interventions.study_options import StudyOptions
from plumbline.pipelines.command.base import class_of, execute
from plumbline.pipelines.stages import Stages
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.input.shards import expand_shards
from plumbline.warehouse.options import make
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.query.finding import verdict
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.csv_rows import as_csv
from plumbline.warehouse.text.toml_file import Text, Texts, Words, load, read_text, toml_table

STUDY = "cause"
T = TypeVar("T")


@toml_table
class ExpectedInterval:
    """A prediction: the place, relative to 0, of the interval of ``column`` in one row of ``view``.

    ``where``: values that select the row, besides study, corpus and benchmark.
    """

    name: Text
    view: Literal["dose_response", "window_response", "control_without_dose"]
    column: Literal["response", "short_of_whole", "coefficient"]
    expected: Literal["below 0", "above 0", "holds 0"]
    where: dict[str, Any] = field(default_factory=dict)


def _template(text: str) -> str:
    if "{word}" not in text or not ("{She}" in text or "{she}" in text):
        raise ValueError(f"template {text!r} (expected {{word}}, and {{She}} or {{she}})")
    return text


@toml_table
class TemplatePairs:
    """A benchmark of templates and words."""

    name: Text
    templates: tuple[Annotated[str, AfterValidator(_template)], ...]
    words: Words


@toml_table
class StudyDesign:
    """A pre-specified study. ``shards`` are patterns; ``sha256`` is of its file, 64 hex digits."""

    question: Text
    corpus: Text
    shards: Texts
    intervention: Annotated[
        StudyOptions, AfterValidator(lambda o: replace(o, near="".join(o.near.split())))
    ]
    benchmark: TemplatePairs
    prediction: tuple[ExpectedInterval, ...]
    sha256: str


@dataclass(frozen=True)
class PredictedFigure:
    """A prediction's estimate with its 95% interval, and its outcome.

    ``found`` is ``below 0``, ``above 0``, ``holds 0``, or ``no interval`` for a study of one seed.
    An interval that holds 0 doesn't show that there is no response. ``size_bound`` (in ``unit``)
    and ``share_bound`` are upper bounds on the response; None except in view ``dose_response``.
    """

    prediction: str
    expected: str
    found: str
    estimate: float
    estimate_low: float | None
    estimate_high: float | None
    n_seeds: int
    size_bound: float | None
    unit: str | None
    share_bound: float | None
    design_sha256: str

    @property
    def as_predicted(self) -> bool:
        """True if the outcome is the expected one."""
        return self.found == self.expected


def read_design(path: Path | None = None) -> StudyDesign:
    """Read the design of a TOML file, or the packaged one. Raises as ``read_study``."""
    return read_study(StudyDesign, "cause.toml", path)


def read_study(design: type[T], packaged: str, path: Path | None) -> T:
    """Read a study's design from a TOML file, by default the packaged one, and hash the file.

    Raises ``BadInput`` or ``UsageProblem`` with the file and the invalid key.
    """
    name = str(path or packaged)
    text = read_text(path or resources.files(__package__) / packaged, name)
    return load(design, text, name, sha256=hashlib.sha256(text.encode()).hexdigest())


def pairs(benchmark: TemplatePairs) -> Iterator[dict[str, str]]:
    """Pairs of a benchmark, in the columns of `benchmark import`."""
    for word in sorted(benchmark.words):
        for number, template in enumerate(benchmark.templates, 1):
            yield {
                "sentence_a": template.format(She="She", she="she", word=word),
                "sentence_b": template.format(She="He", she="he", word=word),
                "group_a": "female",
                "group_b": "male",
                "word": word,
                "category": f"template {number}",
            }


def shards_of(design: StudyDesign, data: Path) -> tuple[Path, ...]:
    """Shards of the design's text, below ``data``."""
    return tuple(expand_shards([str(data / pattern) for pattern in design.shards]))


def run(
    design: StudyDesign, data: Path, out: Path, warehouse: Path, stages: Stages
) -> list[PredictedFigure]:
    """Run a study: count its text, make its pairs, train and score every arm, read the outcomes.

    Finished stages are kept, so the same call resumes. Raises as the stages do, and
    ``UsageProblem`` if a prediction fits no row, or several.
    """
    shards = shards_of(design, data)
    stages.run(f"count {design.corpus}", count_text, Store.open(warehouse), design.corpus, shards)
    stages.run(f"pairs of {design.benchmark.name}", _import, design, out, warehouse)
    study = {"name": STUDY, "corpus": design.corpus, "benchmark": (design.benchmark.name,)}
    places = {"shards": tuple(map(str, shards)), "out": out, "warehouse": warehouse}
    execute(
        make(class_of("intervene run"), {**vars(design.intervention), **study, **places}), stages
    )
    stages.run(f"5-gram model of {design.corpus}", _controls, design, shards, out, warehouse)
    return figures(design, warehouse)


def count_text(store: Store, corpus: str, shards: tuple[Path, ...]) -> None:
    """Count a text and compute its words' deltas."""
    from plumbline.jobs.association.associations import associate
    from plumbline.jobs.count_corpus import CountRequest, count_corpus

    count_corpus(store, CountRequest(corpus, shards))
    associate(store, corpus)


def _import(design: StudyDesign, out: Path, warehouse: Path) -> None:
    from plumbline.warehouse.storage.run_records import recorded

    store = Store.open(warehouse)
    config = {"name": design.benchmark.name, "design_sha256": design.sha256}
    with recorded(store, "benchmark import", config) as run_id:
        import_pairs(design.benchmark, out, store, run_id)


def import_pairs(benchmark: TemplatePairs, out: Path, store: Store, run_id: str) -> None:
    """Write the pairs of a benchmark below ``out`` and import them."""
    from plumbline.eval_workers.pairs.benchmarks import import_benchmark

    path = out / f"{benchmark.name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_csv(list(pairs(benchmark))), encoding="utf-8", newline="")
    import_benchmark(store, benchmark.name, path, run_id)


def _controls(design: StudyDesign, shards: tuple[Path, ...], out: Path, warehouse: Path) -> None:
    """Train and score an n-gram model of the unchanged text, then compute every metric."""
    from plumbline.eval_workers.models.ngram import NgramOptions
    from plumbline.eval_workers.scoring.pair_scores import score_benchmarks
    from plumbline.eval_workers.scoring.statistics.metrics_by_sql import measure
    from plumbline.eval_workers.training.trained_models import record_model, train_model
    from plumbline.eval_workers.training.training_options import FIVE_GRAM
    from plumbline.warehouse.storage.run_records import recorded

    store = Store.open(warehouse)
    with recorded(store, "reproduce cause", {"design_sha256": design.sha256}) as run_id:
        name = f"{STUDY}-{FIVE_GRAM}"
        model = train_model(shards, name, design.corpus, NgramOptions(), out / STUDY / "models")
        record_model(store, model, run_id)
        score_benchmarks(store, str(model.path), (design.benchmark.name,), ModelOptions(), run_id)
        measure(store, run_id)


def figures(design: StudyDesign, warehouse: Path) -> list[PredictedFigure]:
    """Outcome of every prediction, from the study's warehouse."""
    return [_figure(design, p, warehouse) for p in design.prediction]


def _figure(design: StudyDesign, prediction: ExpectedInterval, warehouse: Path) -> PredictedFigure:
    study = {"study": STUDY, "corpus": design.corpus, "benchmark": design.benchmark.name}
    where = study | prediction.where
    rows = [
        row
        for row in rows_of(warehouse, f"FROM {prediction.view}")
        if all(row.get(name) == value for name, value in where.items())
    ]
    if len(rows) != 1:
        problem = f"{len(rows)} rows of {prediction.view} fit {prediction.where}"
        raise UsageProblem(f"prediction {prediction.name!r}", problem, "one is expected")
    (row,) = rows
    low, high = (row[f"{prediction.column}_{end}"] for end in ("low", "high"))
    return PredictedFigure(
        prediction=prediction.name,
        expected=prediction.expected,
        found=side(low, high),
        estimate=row[prediction.column],
        estimate_low=low,
        estimate_high=high,
        n_seeds=row["n_seeds"],
        size_bound=row.get("size_bound"),
        unit=row.get("unit"),
        share_bound=row.get("share_bound"),
        design_sha256=design.sha256,
    )


def side(low: float | None, high: float | None) -> str:
    """Side of 0 on which an interval lies.

    >>> side(-2.0, -1.0), side(-1.0, 0.0), side(None, None)
    ('below 0', 'holds 0', 'no interval')
    """
    if low is None or high is None:
        return "no interval"
    sides = {"above": "above 0", "below": "below 0"}
    return sides.get(verdict((low + high) / 2, low, high), "holds 0")


def as_rows(figures: list[PredictedFigure]) -> list[dict[str, Any]]:
    """Figures as rows of a CSV."""
    return [{**asdict(f), "as_predicted": f.as_predicted} for f in figures]


def shown_row(figure: PredictedFigure) -> dict[str, Any]:
    """Printed row of a prediction and its outcome."""
    (row,) = as_rows([figure])
    return {name: row[name] for name in row if name not in ("design_sha256", "n_seeds")}
