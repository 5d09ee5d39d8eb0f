"""The study of docs/cause-study.md: a pre-specified design, run from the text to its outcomes.

A design is a TOML file: the text, the intervention's options, a benchmark of templates and words,
and what is predicted of which row of which view. The packaged one was written before its
trainings, which nobody outside can check: it is pre-specified, not registered. A figure carries the
SHA-256 of the file it was predicted in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.training.interventions.arms import StudyOptions
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


@toml_table
class Prediction:
    """What the interval of ``column`` in the one row of ``view`` is to be: 0 below, above or in it.

    ``where`` are columns of the row and their values; the study and its corpus are understood.
    """

    name: Text
    view: Literal["dose_response", "window_response", "control_without_dose"]
    column: Literal["response", "short_of_whole", "coefficient"]
    expected: Literal["below 0", "above 0", "holds 0"]
    where: dict[str, Any] = field(default_factory=dict)

    @property
    def bounds(self) -> tuple[str, str]:
        """The columns with the bounds of the one that is predicted."""
        return f"{self.column}_low", f"{self.column}_high"


def _template(text: str) -> str:
    if "{word}" not in text or not ("{She}" in text or "{she}" in text):
        raise ValueError(f"template {text!r} (expected {{word}}, and {{She}} or {{she}})")
    return text


@toml_table
class Pairs:
    """A benchmark of templates and words."""

    name: Text
    templates: tuple[Annotated[str, AfterValidator(_template)], ...]
    words: Words


@toml_table
class Design:
    """A pre-specified study; ``sha256`` of its file, 64 hex digits. ``shards``: patterns."""

    question: Text
    corpus: Text
    shards: Texts
    intervention: Annotated[
        StudyOptions, AfterValidator(lambda o: replace(o, near="".join(o.near.split())))
    ]
    benchmark: Pairs
    prediction: tuple[Prediction, ...]
    sha256: str


@dataclass(frozen=True)
class Figure:
    """A prediction's estimate with its 95% interval, and what came of the prediction.

    ``found`` is ``below 0``, ``above 0``, ``holds 0``, or ``no interval`` of a study of one seed.
    An interval that holds 0 doesn't show that there is no response: ``size_bound``, in ``unit``,
    and ``share_bound`` are how small it is shown to be (view ``dose_response``; None in others).
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
        """Whether what was found is what was expected."""
        return self.found == self.expected


def read_design(path: Path | None = None) -> Design:
    """The design in a TOML file; without one the packaged one.

    Raises ``BadInput`` or ``UsageProblem`` that name the file and the key that does not fit.
    """
    source = path or resources.files(__package__) / "cause.toml"
    name = str(path) if path else "cause.toml"
    text = read_text(source, name)
    return load(Design, text, name, sha256=hashlib.sha256(text.encode()).hexdigest())


def pairs(design: Design) -> Iterator[dict[str, str]]:
    """The benchmark's pairs, in the columns of `benchmark import`."""
    for word in sorted(design.benchmark.words):
        for number, template in enumerate(design.benchmark.templates, 1):
            she = template.format(She="She", she="she", word=word)
            he = template.format(She="He", she="he", word=word)
            yield {
                "sentence_a": she,
                "sentence_b": he,
                "group_a": "female",
                "group_b": "male",
                "word": word,
                "category": f"template {number}",
            }


def shards_of(design: Design, data: Path) -> tuple[Path, ...]:
    """The shards of its text, below ``data``."""
    return tuple(expand_shards([str(data / pattern) for pattern in design.shards]))


def run(design: Design, data: Path, out: Path, warehouse: Path, stages: Stages) -> list[Figure]:
    """Run a study: count its text, make its pairs, train and score every arm, look at the outcome.

    Everything that was done before is kept, so the same call resumes. Raises what the steps raise,
    and ``UsageProblem`` where a prediction is of no row, or of several.
    """
    shards = shards_of(design, data)
    stages.run(f"count {design.corpus}", _count, design, shards, warehouse)
    stages.run(f"pairs of {design.benchmark.name}", _import, design, out, warehouse)
    of = {"name": STUDY, "corpus": design.corpus, "benchmark": (design.benchmark.name,)}
    places = {"shards": tuple(map(str, shards)), "out": out, "warehouse": warehouse}
    execute(make(class_of("intervene run"), {**vars(design.intervention), **of, **places}), stages)
    stages.run(f"5-gram model of {design.corpus}", _controls, design, shards, out, warehouse)
    return figures(design, warehouse)


def _count(design: Design, shards: tuple[Path, ...], warehouse: Path) -> None:
    from plumbline.jobs.association.associations import associate
    from plumbline.jobs.count_corpus import CountRequest, count_corpus

    store = Store.open(warehouse)
    count_corpus(store, CountRequest(design.corpus, shards))
    associate(store, design.corpus)


def _import(design: Design, out: Path, warehouse: Path) -> None:
    from plumbline.eval_workers.pairs.benchmarks import import_benchmark
    from plumbline.warehouse.storage.runs import recorded

    path = out / f"{design.benchmark.name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_csv(list(pairs(design))), encoding="utf-8", newline="")
    store = Store.open(warehouse)
    config = {"name": design.benchmark.name, "design_sha256": design.sha256}
    with recorded(store, "benchmark import", config) as run_id:
        import_benchmark(store, design.benchmark.name, path, run_id)


def _controls(design: Design, shards: tuple[Path, ...], out: Path, warehouse: Path) -> None:
    """Scores of a model that counts the unchanged text's n-grams, and every metric."""
    from plumbline.eval_workers.models.ngram import NgramOptions
    from plumbline.eval_workers.scoring.pair_scores import score_benchmarks
    from plumbline.eval_workers.scoring.statistics.metrics import measure
    from plumbline.eval_workers.training.models import record_model, train_model
    from plumbline.eval_workers.training.options import FIVE_GRAM
    from plumbline.warehouse.storage.runs import recorded

    store = Store.open(warehouse)
    with recorded(store, "reproduce cause", {"design_sha256": design.sha256}) as run_id:
        name = f"{STUDY}-{FIVE_GRAM}"
        model = train_model(shards, name, design.corpus, NgramOptions(), out / STUDY / "models")
        record_model(store, model, run_id)
        score_benchmarks(store, str(model.path), (design.benchmark.name,), ModelOptions(), run_id)
        measure(store, run_id)


def figures(design: Design, warehouse: Path) -> list[Figure]:
    """The outcome of every prediction, from the warehouse in which the study was run."""
    return [_figure(design, p, warehouse) for p in design.prediction]


def _figure(design: Design, prediction: Prediction, warehouse: Path) -> Figure:
    of_study = {"study": STUDY, "corpus": design.corpus, "benchmark": design.benchmark.name}
    where = of_study | prediction.where
    rows = [
        row
        for row in rows_of(warehouse, f"FROM {prediction.view}")
        if all(row.get(name) == value for name, value in where.items())
    ]
    if len(rows) != 1:
        problem = f"{len(rows)} rows of {prediction.view} fit {prediction.where}"
        raise UsageProblem(f"prediction {prediction.name!r}", problem, "one is expected")
    low, high = (rows[0][name] for name in prediction.bounds)
    return Figure(
        prediction=prediction.name,
        expected=prediction.expected,
        found=side(low, high),
        estimate=rows[0][prediction.column],
        estimate_low=low,
        estimate_high=high,
        n_seeds=rows[0]["n_seeds"],
        size_bound=rows[0].get("size_bound"),
        unit=rows[0].get("unit"),
        share_bound=rows[0].get("share_bound"),
        design_sha256=design.sha256,
    )


def side(low: float | None, high: float | None) -> str:
    """On which side of 0 an interval lies.

    >>> side(-2.0, -1.0), side(-1.0, 0.0), side(None, None)
    ('below 0', 'holds 0', 'no interval')
    """
    if low is None or high is None:
        return "no interval"
    ways = {"above": "above 0", "below": "below 0"}
    return ways.get(verdict((low + high) / 2, low, high), "holds 0")


def as_rows(found: list[Figure]) -> list[dict[str, Any]]:
    """The figures as rows of a CSV."""
    return [{**asdict(f), "as_predicted": f.as_predicted} for f in found]


def shown_row(figure: Figure) -> dict[str, Any]:
    """A prediction and what came of it, as it is printed."""
    hidden = ("design_sha256", "n_seeds")
    row = {name: value for name, value in asdict(figure).items() if name not in hidden}
    return {**row, "as_predicted": figure.as_predicted}
