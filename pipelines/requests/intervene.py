"""`plumbline intervene run`: change a text by doses, train on each, score, fit the response."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass as options_class

from plumbline.eval_workers.interventions.texts import (
    ChangedText,
    InterventionOptions,
    write_changed,
)
from plumbline.eval_workers.options import ModelOptions
from plumbline.eval_workers.training.models import (
    TrainedModel,
    progress_bar,
    record_model,
    train_model,
)
from plumbline.eval_workers.training.options import Base, LearnerOptions, Window
from plumbline.pipelines.report.sections.interventions import bounded
from plumbline.pipelines.stages import Stages
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.paths import segment
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.query.finding import Finding
from plumbline.warehouse.storage.store import Store

Row = dict[str, Any]
#: What is exchanged: she and he, in all sentences or in some, or two words that should not matter.
GENDER, AIMED, PLACEBO = "gender", "aimed", "placebo"


@options_class(frozen=True, kw_only=True, config=STRICT)
class StudyOptions(LearnerOptions):
    """The arms of an intervention, and what is trained in each.

    Raises ``UsageProblem`` for doses that aren't numbers from 0 to 1, or fewer than two.
    """

    doses: Annotated[str, Field(description="Shares of the documents: numbers with commas.")] = (
        "0,0.25,0.5,0.75,1"
    )
    seeds: Annotated[int, Field(ge=1, description="Trainings of each dose.")] = 5
    near: Annotated[
        str,
        Field(
            description="Words with commas: in trainings of their own, change only the sentences "
            "that hold one of them, with the largest dose."
        ),
    ] = ""
    windows: Annotated[
        str,
        Field(
            description="Parts of the training with commas, such as 0-0.5: in trainings of their "
            "own, read the largest dose only then, and the unchanged text before and after."
        ),
    ] = ""
    placebo: Annotated[
        str,
        Field(
            description="Two words to exchange in trainings of their own, with the largest dose; "
            "empty: none."
        ),
    ] = "however,moreover"

    def __post_init__(self) -> None:
        if len(self.numbers) < 2:
            raise UsageProblem(
                f"doses {self.doses!r}", "are fewer than two", "give such as 0,0.5,1"
            )
        if self.numbers[0]:
            raise UsageProblem(f"doses {self.doses!r}", "hold no 0", "give 0 to compare with")
        _ = self.parts

    @property
    def numbers(self) -> tuple[float, ...]:
        """The doses, each once, from the smallest.

        >>> StudyOptions(doses="1,0,0.5").numbers
        (0.0, 0.5, 1.0)
        """
        try:
            found = sorted({float(dose) for dose in self.doses.split(",")})
        except ValueError:
            found = []
        if not found or not 0 <= found[0] <= found[-1] <= 1:
            fix = "give numbers from 0 to 1 with commas, such as 0,0.5,1"
            raise UsageProblem(f"doses {self.doses!r}", "are not shares of documents", fix)
        return tuple(found)

    @property
    def parts(self) -> tuple[tuple[float, float], ...]:
        """Start and end of the windows, as shares of the training's steps.

        >>> StudyOptions(windows="0-0.5, 0.5-1").parts
        ((0.0, 0.5), (0.5, 1.0))
        """
        found = []
        for part in filter(None, map(str.strip, self.windows.split(","))):
            start, _, end = part.partition("-")
            try:
                found.append((float(start), float(end)))
            except ValueError:
                found.append((1.0, 0.0))
            if not 0 <= found[-1][0] < found[-1][1] <= 1:
                fix = "give shares of the training such as 0-0.5"
                raise UsageProblem(f"windows {self.windows!r}", f"{part!r} is not a part", fix)
        return tuple(found)


@dataclass(frozen=True)
class StudyRequest:
    """An intervention: its name, the text, the benchmarks, and where everything goes.

    Attributes:
        corpus: name of the text, counted in the warehouse, whose leans the models may follow.
        loading: how the model is loaded that is continued, if the options name one.
    """

    study: str
    shards: tuple[Path, ...]
    corpus: str
    benchmarks: tuple[str, ...]
    options: StudyOptions
    out: Path
    warehouse: Path
    loading: ModelOptions = field(default_factory=ModelOptions)

    @property
    def base(self) -> Base | None:
        """The model that every training continues, if any."""
        return self.options.continued(self.loading)


@dataclass(frozen=True)
class Arm:
    """One training: what is exchanged in its text, the part of the training, and its seed."""

    kind: str
    dose: float
    seed: int
    start: float = 0.0
    end: float = 1.0

    def __str__(self) -> str:
        part = "" if (self.start, self.end) == (0, 1) else f" from {self.start:g} to {self.end:g}"
        return f"{self.kind}, dose {self.dose:g}{part}, seed {self.seed}"


def arms(options: StudyOptions) -> list[Arm]:
    """All trainings, seed after seed; without a dose nothing is exchanged, in any kind.

    >>> for arm in arms(StudyOptions(doses="0,1", seeds=1, near="nurse", windows="0-0.5")):
    ...     print(arm)
    gender, dose 0, seed 0
    gender, dose 1, seed 0
    gender, dose 1 from 0 to 0.5, seed 0
    aimed, dose 1, seed 0
    placebo, dose 1, seed 0
    """
    largest = options.numbers[-1]
    found = []
    for seed in range(options.seeds):
        found += [Arm(GENDER, dose, seed) for dose in options.numbers]
        found += [Arm(GENDER, largest, seed, *part) for part in options.parts]
        found += [Arm(AIMED, largest, seed)] if options.near else []
        found += [Arm(PLACEBO, largest, seed)] if options.placebo else []
    return found


def check(request: StudyRequest) -> None:
    """Raise ``UsageProblem`` for what can be seen before anything is trained."""
    from plumbline.eval_workers.scoring.pair_scores import check_imported
    from plumbline.jobs.corpus_lookup import corpus_deltas

    segment(request.study)
    _ = request.base, request.options.training()
    store = Store.open(request.warehouse, create=False)
    check_imported(store, request.benchmarks)
    corpus_deltas(store, request.corpus, "she/he")
    for arm in arms(request.options):
        _ = _changes(request.options, arm).exchange


def run(request: StudyRequest, stages: Stages) -> None:
    """Run an intervention; what was done before is kept: texts, models, scores are made once."""
    check(request)
    store = Store.open(request.warehouse)
    config = {**asdict(request.options), "study": request.study, "corpus": request.corpus}
    config["shards"] = list(map(str, request.shards))
    with recorded(store, "intervene run", config) as run_id:
        rows: list[Row] = []
        plain = tokenizer = None
        for arm in arms(request.options):
            text = stages.run(f"text of {arm}", change, request, arm)
            plain = plain or text
            model = stages.run(f"train on {arm}", train, request, arm, plain, text, tokenizer)
            tokenizer = tokenizer or model.path / "tokenizer.json"
            stages.run(f"score {arm}", score, request, model, run_id)
            rows += _rows(request, arm, text, model, run_id)
            store.replace("intervention_arm", rows, {"study": request.study}, run_id)


def _changes(options: StudyOptions, arm: Arm) -> InterventionOptions:
    placebo = options.placebo if arm.kind == PLACEBO else ""
    near = options.near if arm.kind == AIMED else ""
    return InterventionOptions(dose=arm.dose, near=near, placebo=placebo)


def change(request: StudyRequest, arm: Arm) -> ChangedText:
    """The text of an arm, which all its seeds share."""
    out = request.out / request.study / f"{arm.kind}-{arm.dose:g}"
    return write_changed(request.shards, _changes(request.options, arm), out)


def train(
    request: StudyRequest, arm: Arm, plain: ChangedText, text: ChangedText, tokenizer: Path | None
) -> TrainedModel:
    """The model of an arm. All have one tokenizer, of the first or the base: only texts differ.

    ``plain`` is the text without a dose, which is read outside a window.
    """
    options, base = request.options.training(arm.seed), request.base
    name = f"{request.study}-{arm.kind}-{arm.dose:g}-{arm.seed}"
    shards, window = text.shards, None
    if (arm.start, arm.end) != (0, 1):
        name += f"-from-{arm.start:g}-to-{arm.end:g}"
        shards, window = plain.shards, Window(text.shards, arm.start, arm.end)
    out, store = request.out / request.study / "models", Store.open(request.warehouse)
    with (
        recorded(store, "train", {"name": name, **asdict(options)}) as run_id,
        progress_bar(name) as progress,
    ):
        model = train_model(
            *(shards, name, request.corpus, options, out, progress),
            tokenizer=None if base else tokenizer,
            base=base,
            window=window,
        )
        record_model(store, model, run_id)
    return model


def score(request: StudyRequest, model: TrainedModel, run_id: str) -> None:
    """Scores of the benchmarks' pairs under an arm's model."""
    from plumbline.eval_workers.scoring.pair_scores import score_benchmarks

    store = Store.open(request.warehouse)
    name, how = model.scored(request.base)
    score_benchmarks(store, name, request.benchmarks, how, run_id)


def _rows(
    request: StudyRequest, arm: Arm, text: ChangedText, model: TrainedModel, run_id: str
) -> Iterator[Row]:
    """The arm's row; without a dose also those of the other kinds, whose text is the same."""
    options = request.options
    given = {AIMED: options.near, PLACEBO: options.placebo}
    others = [kind for kind in given if given[kind] and not arm.dose]
    for kind in [arm.kind, *others]:
        yield {
            "study": request.study,
            "kind": kind,
            "dose": arm.dose,
            "window_start": arm.start,
            "window_end": arm.end,
            "seed": arm.seed,
            "near": options.near if kind == AIMED else "",
            "exchanged": options.placebo if kind == PLACEBO else "",
            "model": model.model,
            "n_documents": text.n_documents,
            "n_changed": text.n_changed,
            "n_changes": text.n_changes,
            "n_undecided": text.n_undecided,
            "run_id": run_id,
        }


def responses(request: StudyRequest) -> list[Row]:
    """The rows of view ``dose_response`` about the study's own corpus."""
    return _of_study(request, "dose_response")


def windows(request: StudyRequest) -> list[Row]:
    """The rows of view ``window_response`` about the study's own corpus."""
    return _of_study(request, "window_response")


def _of_study(request: StudyRequest, view: str) -> list[Row]:
    query = f"FROM {view} WHERE study = $study AND corpus = $corpus ORDER BY ALL"
    given = {"study": request.study, "corpus": request.corpus}
    return rows_of(request.warehouse, query, given)


def lines(responses: list[Row], windows: list[Row]) -> Iterator[str]:
    """What was found: a line per benchmark, kind, words and outcome, and one per window."""
    for row in responses:
        yield (
            f"{_what(row)}: {row['lean_at_0']:.3f} without a dose, response to the whole dose "
            f"{_estimate(row)}{'' if row['kind'] == GENDER else bounded(row)}"
        )
    for row in windows:
        part = f"{row['window_start']:g} to {row['window_end']:g} of the training"
        yield f"{_what(row)}, changed text from {part}: response {_estimate(row)}"


def _what(row: Row) -> str:
    words = "" if row["words"] == "all" else f", {row['words']} words"
    return f"{row['benchmark']}, {row['kind']}{words}, {row['outcome']}"


def _estimate(row: Row) -> str:
    if row["response_low"] is None:
        return f"{row['response']:.3f} (one seed, no interval)"
    low, high = row["response_low"], row["response_high"]
    found = Finding(row["study"], row["outcome"], row["response"], low, high)
    verdict = found.pick(above="a response", below="a response", untold="no clear response")
    return f"{row['response']:.3f} ({low:.3f} to {high:.3f}) over {row['n_seeds']} seeds: {verdict}"
