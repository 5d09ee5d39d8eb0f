"""What `plumbline disclosure probe` and `tune` were asked for, checked before anything starts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from plumbline.eval_workers.backends.sampling import SamplingOptions
from plumbline.eval_workers.disclosure.measure import Disclosed
from plumbline.eval_workers.disclosure.probes import PROBE_SETS, RELEASED, released_file
from plumbline.eval_workers.mitigation.options import TuneOptions
from plumbline.eval_workers.options import ModelOptions
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True)
class Subject:
    """A model and how it is loaded."""

    model: str
    options: ModelOptions


@dataclass(frozen=True)
class Tuning:
    """An adapter to tune into ``<out>/<name>``; ``test_sets``: see ``mitigation.tune.tune``."""

    name: str
    sets: tuple[str, ...]
    test_sets: tuple[str, ...] | None
    options: TuneOptions
    out: Path

    def __post_init__(self) -> None:
        if both := set(self.sets) & set(self.test_sets or ()):
            problem = f"is {' and '.join(sorted(both))} too, which is tuned on"
            raise UsageProblem("--test-sets", problem, "name other sets")


@dataclass(frozen=True)
class Order:
    """Sets to measure under some models; with ``tuning`` also an adapter for the only model.

    The adapter is measured on the same sets as its base. ``smoothing`` is e of ADD in what is
    printed, ``out`` the directory of the report.
    """

    sets: tuple[str, ...]
    subjects: tuple[Subject, ...]
    word_list: str
    max_new_tokens: int
    smoothing: float
    warehouse: Path
    out: Path
    tuning: Tuning | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < float("inf"):
            raise UsageProblem(f"--smoothing {self.smoothing:g}", "has to be 0 or more")
        _ = self.sampling

    @property
    def sampling(self) -> SamplingOptions:
        """How prompts are continued: by the most likely token, once."""
        return SamplingOptions(greedy=True, max_new_tokens=self.max_new_tokens)

    @property
    def wanted(self) -> tuple[str, ...]:
        """Every set that has to be in the warehouse."""
        more = (*self.tuning.sets, *(self.tuning.test_sets or ())) if self.tuning else ()
        return tuple(dict.fromkeys((*self.sets, *more)))

    def config(self, subject: Subject) -> dict[str, object]:
        """What is recorded of the measuring of a model."""
        said: dict[str, object] = {"sets": self.sets, "model": subject.model}
        said |= {"word_list": self.word_list, "max_new_tokens": self.max_new_tokens}
        return said | asdict(subject.options)


@dataclass(frozen=True)
class Outcome:
    """What was measured, the name of the adapter, lines of models that failed, the report's page.

    ``reused`` says that the adapter was there already.
    """

    measured: tuple[Disclosed, ...]
    tuned: str
    reused: bool
    failures: tuple[str, ...]
    page: Path | None


def missing_sets(store: Store | None, names: Sequence[str]) -> list[str]:
    """Of some sets those that the warehouse lacks and that can be imported.

    Raises ``UsageProblem`` for a set that is neither there nor known, and what reading the released
    files would: ``MissingComponent`` without their place, ``BadInput`` for a file that is missing.

    >>> missing_sets(None, ["topics"])
    ['topics']
    """
    missing = [n for n in names if not (store and store.units("probe_prompt", probe_set=n))]
    for name in missing:
        if name in RELEASED:
            released_file(name, None)
        elif name not in PROBE_SETS.names():
            problem = "are not in the warehouse"
            known = f"{', '.join(PROBE_SETS.names())} are known"
            fix = f"make them with plumbline disclosure prompts; {known}"
            raise UsageProblem(f"prompts {name!r}", problem, fix)
    return missing


def check_means(order: Order) -> None:
    """Sets, word list and a single model without its weights, before anything starts.

    Of several models, one that fails is told when it is its turn. Raises what ``missing_sets``,
    loading the list and opening the model raise.
    """
    from plumbline.eval_workers.disclosure.attributes import words_of
    from plumbline.eval_workers.disclosure.words import load_words
    from plumbline.warehouse.wordlists import load

    held = Store.open(order.warehouse, create=False) if order.warehouse.exists() else None
    missing_sets(held, order.wanted)
    if held:
        load_words(held, order.word_list)
    else:
        words_of(load(order.word_list).pairs, f"word list {order.word_list}")
    if len(order.subjects) == 1:
        check_model(order.subjects[0])


def held_against(tuning: Tuning, warehouse: Path) -> tuple[str, ...]:
    """The sets that a tuning is tested on. Raises ``UsageProblem`` where there are none."""
    if tuning.test_sets is not None:
        found = tuning.test_sets
    else:
        held = Store.open(warehouse, create=False) if warehouse.exists() else None
        known = set(held.read("probe_prompt")["probe_set"].to_pylist()) if held else set()
        found = tuple(sorted(known - set(tuning.sets)))
    if not found:
        problem = "there is no set but those tuned on"
        raise UsageProblem("--probe", problem, "name one with --test-sets")
    return found


def subjects(model: str, models: str, options: ModelOptions) -> tuple[Subject, ...]:
    """The models of a command, each once. Raises ``UsageProblem`` without any, as ``models.load``.

    >>> [one.model for one in subjects("a, b,a", "", ModelOptions())]
    ['a', 'b']
    """
    from plumbline.eval_workers.models import load

    if bool(model) == bool(models):
        problem = "exclude each other" if model else "are both missing"
        raise UsageProblem("--model and --models", problem, "give one of them")
    if models:
        return tuple(Subject(entry.id, entry.options(options)) for entry in load(models))
    names = (name.strip() for name in model.split(","))
    return tuple(Subject(name, options) for name in dict.fromkeys(names) if name)


def check_model(subject: Subject) -> None:
    """Raise what is wrong with a model that can be told without its weights."""
    from plumbline.eval_workers.backends import open_backend

    _ = open_backend(subject.model, subject.options).identity


def command_path(path: Path, default: Path, option: str) -> str:
    """The option that a further command needs, empty where ``path`` is the default.

    >>> command_path(Path("w"), Path("out/warehouse"), "--warehouse")
    ' --warehouse w'
    """
    return "" if os.fspath(path) == os.fspath(default) else f" {option} {path}"
