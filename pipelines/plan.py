"""What a pipeline will do, decided from the settings before anything starts. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.pipelines.settings import Settings
from plumbline.warehouse.errors import UsageProblem

#: The closed world, and its twin: the same text with she and he exchanged.
WORLDS = ("straight", "swapped")
#: Benchmark that the offline writer makes of the first world's seed words.
OFFLINE = "closed-world-offline"
#: Asks for a small model trained on the corpus itself, in place of a hub id or path.
TRAIN_SMALL = "train:small"
#: Prompts that disclosure is measured on where no benchmark is named: they ship with Plumbline.
PROMPTS = "topics"
#: Benchmarks scored when none are named and reference data is configured.
RELEASED = ("winobias", "winogender", "use-5", "use-10", "use-20")


@dataclass(frozen=True)
class CorpusPlan:
    """A corpus to count: shards given by patterns, or a closed world to be written first."""

    name: str
    patterns: tuple[str, ...] = ()
    world: str = ""


@dataclass(frozen=True)
class ModelPlan:
    """A model to score: ``location`` (hub id or path), or one to train on ``corpus`` first."""

    name: str
    location: str = ""
    corpus: str = ""
    preset: str = ""


@dataclass(frozen=True)
class OfflinePlan:
    """A benchmark that our own grammar writes around seed words of ``corpus``.

    ``n_words`` seed words, or as many as there are, in sentences of at most ``max_words`` words.
    """

    name: str
    corpus: str
    n_words: int = 50
    max_words: int = 12


@dataclass(frozen=True)
class Plan:
    """Everything a pipeline will do; ``offline`` benchmarks are made after the others are there.

    ``probe_set`` is the set of prompts that FairPair continues, ``disclosure`` the one that
    disclosure is measured on; empty for none.
    """

    corpora: tuple[CorpusPlan, ...]
    benchmarks: tuple[str, ...]
    models: tuple[ModelPlan, ...]
    offline: tuple[OfflinePlan, ...] = ()
    probe_set: str = ""
    disclosure: str = ""

    def scored(self) -> tuple[str, ...]:
        """The benchmarks that models are scored on."""
        return (*self.benchmarks, *(o.name for o in self.offline))


def make_plan(settings: Settings) -> Plan:
    """Turn settings into a plan. Without corpus, benchmarks and model: the closed world.

    With a model, but neither benchmarks nor reference data, disclosure is measured on prompts that
    are there, and our own grammar writes a benchmark around words of the corpus.

    Raises ``UsageProblem`` when the parts do not fit: a model to train without a corpus,
    a benchmark without a model, a twin of anything but the closed world.

    >>> plan = make_plan(Settings())
    >>> [c.name for c in plan.corpora], plan.benchmarks, [m.name for m in plan.models]
    (['closed-world-straight'], ('closed-world',), ['closed-world-straight'])
    >>> [m.name for m in make_plan(Settings(twin=True)).models]
    ['closed-world-straight', 'closed-world-swapped']
    >>> make_plan(Settings(corpus="novels/*.jsonl", model="train:small")).models
    (ModelPlan(name='small-novels', location='', corpus='novels', preset='small'),)
    >>> make_plan(Settings(corpus="novels/*.jsonl", model="gpt2")).scored()
    ('novels-offline',)
    """
    if not (settings.corpus or settings.benchmarks or settings.model):
        return _closed_world(WORLDS if settings.twin else WORLDS[:1])
    if settings.twin:
        fix = "leave it out, or run without corpus, benchmarks and model"
        raise UsageProblem("setting twin", "only the closed world has a twin", fix)
    corpora = _corpora(settings)
    benchmarks = tuple(settings.benchmark_names())
    names = settings.models()
    if benchmarks and not names:
        raise UsageProblem("MODEL is empty", "benchmarks need a model", "add MODEL=train:small")
    models = tuple(_model(name, corpora) for name in names)
    if names and not benchmarks and settings.data:
        benchmarks = RELEASED
    if benchmarks or not names:
        return Plan(corpora, benchmarks, models)
    offline = tuple(OfflinePlan(f"{corpus.name}-offline", corpus.name) for corpus in corpora)
    return Plan(corpora, (), models, offline, disclosure=PROMPTS)


def _closed_world(worlds: Sequence[str]) -> Plan:
    names = {world: f"closed-world-{world}" for world in worlds}
    corpora = tuple(CorpusPlan(name, world=world) for world, name in names.items())
    models = tuple(ModelPlan(name, corpus=name, preset="closed") for name in names.values())
    offline = OfflinePlan(OFFLINE, corpora[0].name)
    return Plan(corpora, ("closed-world",), models, (offline,), "closed-world")


def _corpora(settings: Settings) -> tuple[CorpusPlan, ...]:
    patterns = tuple(settings.corpus.split())
    if not patterns:
        return ()
    return (CorpusPlan(settings.corpus_name or corpus_name(patterns[0]), patterns),)


def corpus_name(pattern: str) -> str:
    """A corpus name from the first shard pattern: its directory's name, in plain characters.

    A directory that the pattern does not name leaves the file's name.

    >>> corpus_name("../data/My Novels/*.jsonl.zst"), corpus_name("../mine.jsonl.zst")
    ('my-novels', 'mine')
    """
    path = Path(pattern)
    source = path.parent.name.strip(".") or path.name.split(".")[0]
    return re.sub(r"[^a-z0-9]+", "-", source.lower()).strip("-") or "corpus"


def _model(name: str, corpora: tuple[CorpusPlan, ...]) -> ModelPlan:
    if not name.startswith("train:"):
        return ModelPlan(Path(name).name if Path(name).is_dir() else name, location=name)
    if name != TRAIN_SMALL:
        raise UsageProblem(f"MODEL={name}", f"only {TRAIN_SMALL} can be trained here")
    if not corpora:
        raise UsageProblem(f"MODEL={name}", "needs a corpus to learn from", "add CORPUS='shards'")
    return ModelPlan(f"small-{corpora[0].name}", corpus=corpora[0].name, preset="small")
