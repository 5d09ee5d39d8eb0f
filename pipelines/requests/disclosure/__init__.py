"""`plumbline disclosure probe` and `tune`: what models disclose; an adapter that discloses less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.eval_workers.backends.sampling import SamplingOptions
from plumbline.eval_workers.disclosure.measure import Disclosed, measure_sets
from plumbline.eval_workers.disclosure.options import ProbeOptions
from plumbline.eval_workers.disclosure.prompt_sets import (
    PROBE_SETS,
    RELEASED,
    import_probe,
    released_file,
)
from plumbline.eval_workers.mitigation.options import TuneOptions
from plumbline.eval_workers.options import ModelOptions
from plumbline.pipelines.command.failures import Failures
from plumbline.pipelines.report.write import write_report
from plumbline.pipelines.stages import Stages
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.storage.store import Store

if TYPE_CHECKING:
    from plumbline.eval_workers.mitigation.tune import Tuned


@dataclass(frozen=True)
class Subject:
    """A model and how it is loaded."""

    model: str
    options: ModelOptions


@dataclass(frozen=True)
class Tuning:
    """An adapter to tune into ``<out>/<name>``; test and dev sets: see ``mitigation.tune.tune``."""

    name: str
    sets: tuple[str, ...]
    test_sets: tuple[str, ...] | None
    options: TuneOptions
    out: Path
    dev_sets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for option, names, others, what in (
            ("--test-sets", self.test_sets, self.sets, "tuned on"),
            (
                "--dev-sets",
                self.dev_sets,
                (*self.sets, *(self.test_sets or ())),
                "tuned or tested on",
            ),
        ):
            if both := set(names or ()) & set(others):
                problem = f"is {' and '.join(sorted(both))} too, which is {what}"
                raise UsageProblem(option, problem, "name other sets")


@dataclass(frozen=True)
class DisclosureRequest:
    """Sets to measure under some models; with ``tuning`` also an adapter for the only model.

    The adapter is measured on the same sets as its base. ``out`` is the directory of the
    report, ``data`` that of released prompts.
    """

    sets: tuple[str, ...]
    subjects: tuple[Subject, ...]
    options: ProbeOptions
    warehouse: Path
    out: Path
    tuning: Tuning | None = None
    data: str | Path = ""

    @property
    def sampling(self) -> SamplingOptions:
        """How prompts are continued: by the most likely token, once."""
        return SamplingOptions(greedy=True, max_new_tokens=self.options.max_new_tokens)

    @property
    def wanted(self) -> tuple[str, ...]:
        """Every set that has to be in the warehouse."""
        tuning = self.tuning
        more = (*tuning.sets, *tuning.dev_sets, *(tuning.test_sets or ())) if tuning else ()
        return tuple(dict.fromkeys((*self.sets, *more)))

    def config(self, subject: Subject) -> dict[str, object]:
        """What is recorded of the measuring of a model."""
        said: dict[str, object] = {"sets": self.sets, "model": subject.model}
        return said | asdict(self.options) | asdict(subject.options)


@dataclass(frozen=True)
class DisclosureOutcome:
    """What was measured, the name of the adapter, lines of models that failed, the report's page.

    ``reused`` says that the adapter was there already.
    """

    measured: tuple[Disclosed, ...]
    tuned: str
    reused: bool
    failures: Failures
    page: Path | None


def missing_sets(store: Store | None, names: Sequence[str], data: str | Path = "") -> list[str]:
    """Of some sets those that the warehouse lacks and that can be imported.

    Raises ``UsageProblem`` for a set that is neither there nor known, and what reading the released
    files would: ``MissingComponent`` without their place, ``BadInput`` for a file that is missing.

    >>> missing_sets(None, ["topics"])
    ['topics']
    """
    missing = [n for n in names if not (store and store.units("probe_prompt", probe_set=n))]
    for name in missing:
        if name in RELEASED:
            released_file(name, None, data)
        elif name not in PROBE_SETS.names():
            problem = "are not in the warehouse"
            known = f"{', '.join(PROBE_SETS.names())} are known"
            fix = f"make them with plumbline disclosure prompts; {known}"
            raise UsageProblem(f"prompts {name!r}", problem, fix)
    return missing


def check_means(request: DisclosureRequest) -> None:
    """Sets, word list and a single model without its weights, before anything starts.

    Of several models, one that fails is reported when it is its turn. Raises what ``missing_sets``,
    loading the list and opening the model raise.
    """
    from plumbline.eval_workers.disclosure.attributes import word_list, words_of
    from plumbline.eval_workers.disclosure.word_probabilities import load_words

    held = Store.existing(request.warehouse)
    missing_sets(held, request.wanted, request.data)
    if held:
        load_words(held, request.options.word_list)
    else:
        name = request.options.word_list
        words_of(word_list(name).pairs, f"word list {name}")
    if len(request.subjects) == 1:
        check_model(request.subjects[0])


def held_against(tuning: Tuning, warehouse: Path) -> tuple[str, ...]:
    """The sets that a tuning is tested on. Raises ``UsageProblem`` where there are none."""
    if tuning.test_sets is not None:
        found = tuning.test_sets
    else:
        held = Store.existing(warehouse)
        known = set(held.read("probe_prompt")["probe_set"].to_pylist()) if held else set()
        found = tuple(sorted(known - {*tuning.sets, *tuning.dev_sets}))
    if not found:
        problem = "all sets were tuned on"
        raise UsageProblem("--probe", problem, "name one with --test-sets")
    return found


def subjects(model: str, models: str, options: ModelOptions) -> tuple[Subject, ...]:
    """The models of a command, each once. Raises ``UsageProblem`` without any, as ``models.load``.

    >>> [one.model for one in subjects("a, b,a", "", ModelOptions())]
    ['a', 'b']
    """
    from plumbline.eval_workers.model_lists import load_available

    if bool(model) == bool(models):
        problem = "exclude each other" if model else "are both missing"
        raise UsageProblem("--model and --models", problem, "give one of them")
    if models:
        return tuple(Subject(entry.id, entry.options(options)) for entry in load_available(models))
    names = (name.strip() for name in model.split(","))
    return tuple(Subject(name, options) for name in dict.fromkeys(names) if name)


def check_model(subject: Subject) -> None:
    """Raise what is wrong with a model that can be told without its weights."""
    from plumbline.eval_workers.backends import open_backend

    _ = open_backend(subject.model, subject.options).identity


def prompts(request: DisclosureRequest, names: list[str]) -> None:
    """Import known sets that the warehouse lacks.

    Those tuned on as published and their dev sets have prompts with gendered words; one that is
    only measured is the same as of ``probe``, whichever came first.
    """
    tuning = request.tuning
    whole = (
        {*tuning.sets, *tuning.dev_sets} if tuning and tuning.options.as_published else set[str]()
    )
    for name in names:
        gendered = name in whole
        said: dict[str, object] = {"allow_gendered": True} if gendered else {}
        with recorded(_store(request), "disclosure prompts", {"probe_set": name, **said}) as run_id:
            import_probe(
                *(_store(request), name, None, run_id), allow_gendered=gendered, data=request.data
            )


def measure(request: DisclosureRequest, subject: Subject, run_id: str) -> list[Disclosed]:
    """Probabilities and continuations that are missing, of all sets; the model is loaded once."""
    return measure_sets(
        *(_store(request), request.sets, subject.model, subject.options, run_id),
        word_list=request.options.word_list,
        max_new_tokens=request.options.max_new_tokens,
    )


def tune(request: DisclosureRequest, run_id: str) -> Tuned:
    """The adapter, from its last checkpoint on."""
    from plumbline.eval_workers.backends.devices import release
    from plumbline.eval_workers.mitigation.bar import tuning_bar
    from plumbline.eval_workers.mitigation.tune import tune as tune_adapter

    tuning, (base,) = request.tuning, request.subjects
    assert tuning is not None, "asked for nothing to tune"
    try:
        with tuning_bar(tuning.name) as progress:
            return tune_adapter(
                *(_store(request), base.model, base.options, tuning.options, run_id),
                sets=tuning.sets,
                name=tuning.name,
                out=tuning.out,
                test_sets=tuning.test_sets,
                dev_sets=tuning.dev_sets,
                progress=progress,
            )
    finally:
        release()


def report(request: DisclosureRequest) -> Path:
    """The HTML page and its plots; returns the page's path."""
    return write_report(request.warehouse, request.out)


def disclosure(request: DisclosureRequest, stages: Stages) -> DisclosureOutcome:
    """Measure sets under each model, of which one that fails stops no other; tune and measure."""
    if missing := missing_sets(_store(request), request.wanted, request.data):
        stages.run(f"prompts {', '.join(missing)}", prompts, request, missing)
    measured: list[Disclosed] = []
    failures = Failures(len(request.subjects))
    for subject in request.subjects if request.sets else ():
        with failures.collected(subject.model):
            measured += audit(request, subject, stages)
    tuned = adapter(request, stages) if request.tuning else None
    if tuned and request.sets:
        (base,) = request.subjects
        options = replace(base.options, adapter=str(tuned.path))
        measured += audit(request, Subject(base.model, options), stages)
    page = None
    if measured or tuned:
        page = stages.run("report", report, request)
    name, reused = (tuned.tuning, tuned.reused) if tuned else ("", False)
    return DisclosureOutcome(tuple(measured), name, reused, failures, page)


def audit(request: DisclosureRequest, subject: Subject, stages: Stages) -> list[Disclosed]:
    """Measure every set under one model."""
    with recorded(_store(request), "disclosure probe", request.config(subject)) as run_id:
        name = f"measure {', '.join(request.sets)} by {_called(subject)}"
        return stages.retried(name, measure, request, subject, run_id)


def adapter(request: DisclosureRequest, stages: Stages) -> Tuned:
    """Tune the adapter that is ordered."""
    assert request.tuning is not None, "asked for nothing to tune"
    (base,) = request.subjects
    said = {"model": base.model, **asdict(base.options), **asdict(request.tuning)}
    said["out"] = str(request.tuning.out)
    with recorded(_store(request), "disclosure tune", said) as run_id:
        return stages.run(f"tune {request.tuning.name} for {base.model}", tune, request, run_id)


def _called(subject: Subject) -> str:
    adapter = subject.options.adapter
    return f"{subject.model} with {adapter}" if adapter else subject.model


def _store(request: DisclosureRequest) -> Store:
    return Store.open(request.warehouse)
