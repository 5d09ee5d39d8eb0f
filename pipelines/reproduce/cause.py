"""The study of docs/cause-study.md: a pre-specified design, run from the text to its outcomes.

A design is a TOML file: the text, the intervention's options, a benchmark of templates and words,
and what is predicted of which row of which view. The packaged one was written before its
trainings, which nobody outside can check: it is pre-specified, not registered. A figure carries the
SHA-256 of the file it was predicted in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from plumbline.eval_workers.options import ModelOptions
from plumbline.pipelines.requests.intervene import StudyOptions, StudyRequest
from plumbline.pipelines.requests.intervene import run as run_intervention
from plumbline.pipelines.stages import Stages
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.options import make
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.query.finding import verdict
from plumbline.warehouse.shards import expand_shards
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.csv_rows import as_csv
from plumbline.warehouse.text.toml_file import Section, parsed, read_text

STUDY = "cause"
#: The bound of each column that can be predicted, and what can be predicted of it.
_BOUNDS = {
    "response": ("response_low", "response_high"),
    "short_of_whole": ("short_of_whole_low", "short_of_whole_high"),
    "coefficient": ("coefficient_low", "coefficient_high"),
}
_EXPECTED = ("below 0", "above 0", "holds 0")
_VIEWS = ("dose_response", "window_response", "control_without_dose")


@dataclass(frozen=True)
class Prediction:
    """What the interval of ``column`` in the one row of ``view`` is to be: 0 below, above or in it.

    ``where`` are columns of the row and their values; the study and its corpus are understood.
    """

    name: str
    view: str
    where: dict[str, Any]
    column: str
    expected: str


@dataclass(frozen=True)
class Design:
    """A pre-specified study; ``sha256`` of its file, 64 hex digits. ``shards``: patterns."""

    question: str
    corpus: str
    shards: tuple[str, ...]
    options: StudyOptions
    benchmark: str
    templates: tuple[str, ...]
    words: tuple[str, ...]
    predictions: tuple[Prediction, ...]
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
    top = Section(name, parsed(text, name))
    top.only("question", "corpus", "shards", "intervention", "benchmark", "prediction")
    pairs = top.section("benchmark")
    pairs.only("name", "templates", "words")
    options = dict(top.section("intervention").content)
    if isinstance(options.get("near"), str):
        options["near"] = "".join(options["near"].split())
    design = Design(
        question=" ".join(top.text("question").split()),
        corpus=top.text("corpus"),
        shards=top.texts("shards"),
        options=make(StudyOptions, options, f"{name}: intervention, "),
        benchmark=pairs.text("name"),
        templates=pairs.texts("templates"),
        words=tuple(sorted(pairs.words("words"))),
        predictions=tuple(map(_prediction, top.sections("prediction"))),
        sha256=hashlib.sha256(text.encode()).hexdigest(),
    )
    for template in design.templates:
        if "{word}" not in template or not ("{She}" in template or "{she}" in template):
            raise BadInput(name, f"template {template!r}", "expected {word}, and {She} or {she}")
    return design


def _prediction(section: Section) -> Prediction:
    section.only("name", "view", "where", "column", "expected")
    known = {"view": _VIEWS, "column": tuple(_BOUNDS), "expected": _EXPECTED}
    found = {key: section.text(key) for key in known}
    for key, values in known.items():
        if found[key] not in values:
            raise section.fault(key, " or ".join(values))
    where = dict(section.section("where").content)
    return Prediction(section.text("name"), where=where, **found)


def pairs(design: Design) -> Iterator[dict[str, str]]:
    """The benchmark's pairs, in the columns of `benchmark import`."""
    for word in design.words:
        for number, template in enumerate(design.templates, 1):
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


def run(design: Design, data: Path, out: Path, warehouse: Path, stages: Stages) -> list[Figure]:
    """Run a study: count its text, make its pairs, train and score every arm, look at the outcome.

    Everything that was done before is kept, so the same call resumes. Raises what the steps raise,
    and ``UsageProblem`` where a prediction is of no row, or of several.
    """
    shards = tuple(expand_shards([str(data / pattern) for pattern in design.shards]))
    stages.run(f"count {design.corpus}", _count, design, shards, warehouse)
    stages.run(f"pairs of {design.benchmark}", _import, design, out, warehouse)
    names = (design.corpus, (design.benchmark,))
    request = StudyRequest(STUDY, shards, *names, design.options, out, warehouse)
    run_intervention(request, stages)
    stages.run(f"5-gram model of {design.corpus}", _controls, design, shards, out, warehouse)
    return figures(design, warehouse)


def _count(design: Design, shards: tuple[Path, ...], warehouse: Path) -> None:
    from plumbline.jobs.association.associations import associate
    from plumbline.jobs.counting.corpus import CountRequest, count_corpus

    store = Store.open(warehouse)
    count_corpus(store, CountRequest(design.corpus, shards))
    associate(store, design.corpus)


def _import(design: Design, out: Path, warehouse: Path) -> None:
    from plumbline.eval_workers.benchmarks import import_benchmark
    from plumbline.warehouse.provenance.runs import recorded

    path = out / f"{design.benchmark}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_csv(list(pairs(design))), encoding="utf-8", newline="")
    store = Store.open(warehouse)
    config = {"name": design.benchmark, "design_sha256": design.sha256}
    with recorded(store, "benchmark import", config) as run_id:
        import_benchmark(store, design.benchmark, path, run_id)


def _controls(design: Design, shards: tuple[Path, ...], out: Path, warehouse: Path) -> None:
    """Scores of a model that counts the unchanged text's n-grams, and every metric."""
    from plumbline.eval_workers.scoring.pair_scores import score_benchmarks
    from plumbline.eval_workers.training.models import record_model, train_model
    from plumbline.eval_workers.training.options import FIVE_GRAM, NgramOptions
    from plumbline.pipelines.requests.measure import measure
    from plumbline.warehouse.provenance.runs import recorded

    store = Store.open(warehouse)
    with recorded(store, "reproduce cause", {"design_sha256": design.sha256}) as run_id:
        name = f"{STUDY}-{FIVE_GRAM}"
        model = train_model(shards, name, design.corpus, NgramOptions(), out / STUDY / "models")
        record_model(store, model, run_id)
        score_benchmarks(store, str(model.path), (design.benchmark,), ModelOptions(), run_id)
        measure(store, run_id)


def figures(design: Design, warehouse: Path) -> list[Figure]:
    """The outcome of every prediction, from the warehouse in which the study was run."""
    return [_figure(design, p, warehouse) for p in design.predictions]


def _figure(design: Design, prediction: Prediction, warehouse: Path) -> Figure:
    of_study = {"study": STUDY, "corpus": design.corpus, "benchmark": design.benchmark}
    where = of_study | prediction.where
    rows = [
        row
        for row in rows_of(warehouse, f"FROM {prediction.view}")
        if all(row.get(name) == value for name, value in where.items())
    ]
    if len(rows) != 1:
        problem = f"{len(rows)} rows of {prediction.view} fit {prediction.where}"
        raise UsageProblem(f"prediction {prediction.name!r}", problem, "one is expected")
    low, high = (rows[0][name] for name in _BOUNDS[prediction.column])
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
