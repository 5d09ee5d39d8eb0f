"""The plan of a pipeline, made from the settings before anything starts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.eval_workers.fairpair.fairpair_options import CLOSED_WORLD
from plumbline.eval_workers.models.model_lists import load_available
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import part

if TYPE_CHECKING:
    from plumbline.pipelines.commands.pipeline import Pipeline

#: Options that name inputs. If none of them is set, the pipeline runs on the closed world.
WORK = ("corpus", "benchmarks", "model", "models")
#: The closed world, and its twin: the same text with she and he exchanged.
WORLDS = ("straight", "swapped")
#: Benchmark that the offline writer makes of the first world's seed words.
OFFLINE = "closed-world-offline"
#: Value of `model`, instead of a hub id or path, for a small model trained on the corpus itself.
TRAIN_SMALL = "train:small"
#: Prompts of Plumbline's own, on which disclosure is measured if no benchmark is scored.
PROMPTS = "topics"
#: Benchmarks scored when none are named and reference data is configured.
RELEASED = ("winobias", "winogender", "use-5", "use-10", "use-20")


@dataclass(frozen=True)
class CorpusPlan:
    """A corpus to count: patterns of shards, or a closed world, which is written first."""

    name: str
    patterns: tuple[str, ...] = ()
    world: str = ""


@dataclass(frozen=True)
class ModelPlan:
    """A model to score: a hub id or path (``location``), or a model to train on ``corpus`` first.

    ``options`` say how it is loaded. ``workers`` is the number of processes that score it; if
    ``None``, the settings of `score` decide. ``given_name``: the name of which it is a version.
    """

    name: str
    location: str = ""
    corpus: str = ""
    preset: str = ""
    options: ModelOptions = field(default_factory=ModelOptions)
    workers: int | None = None
    given_name: str | None = None


@dataclass(frozen=True)
class PipelinePlan:
    """What a pipeline will do.

    Attributes:
        offline: corpora by the benchmark that our own grammar writes around their words, after
            ``benchmarks`` are imported.
        probe_set: the prompts that FairPair continues; empty: none.
        disclosure: the sets of prompts that disclosure is measured on.
        fairpair: FairPair's options, unless the settings of `fairpair run` have others.
    """

    corpora: tuple[CorpusPlan, ...]
    benchmarks: tuple[str, ...]
    models: tuple[ModelPlan, ...]
    offline: Mapping[str, str] = field(default_factory=dict)
    probe_set: str = ""
    disclosure: tuple[str, ...] = ()
    fairpair: Mapping[str, object] = field(default_factory=dict)

    def scored(self) -> tuple[str, ...]:
        """The benchmarks that models are scored on."""
        return (*self.benchmarks, *self.offline)


def make_plan(options: Pipeline) -> PipelinePlan:
    """Turn settings into a plan, of the closed world if none of ``WORK`` is set.

    With a model but without benchmarks and reference data, disclosure is measured, by default on
    ``PROMPTS``; and if there is a corpus, our own grammar writes a benchmark around its words.

    Raises ``UsageProblem`` for settings that don't fit, such as a model to train without a corpus,
    or a twin of another corpus than the closed world. Also raises the errors of reading a list of
    models.

    >>> from plumbline.pipelines.commands.pipeline import Pipeline
    >>> plan = make_plan(Pipeline())
    >>> [c.name for c in plan.corpora], plan.benchmarks, [m.name for m in plan.models]
    (['closed-world-straight'], ('closed-world',), ['test-model'])
    >>> [m.name for m in make_plan(Pipeline(twin=True)).models]
    ['test-model', 'test-model-swapped']
    >>> (small,) = make_plan(Pipeline(corpus="novels/*.jsonl", model=("train:small",))).models
    >>> small.name, small.corpus, small.preset
    ('small-novels', 'novels', 'small')
    >>> make_plan(Pipeline(corpus="novels/*.jsonl", model=("gpt2",))).scored()
    ('novels-offline',)
    """
    if not any(getattr(options, name) for name in WORK):
        return _closed_world(options)
    if options.twin:
        fix = "leave it out, or run without corpus, benchmarks and model"
        raise UsageProblem("setting twin", "only the closed world has a twin", fix)
    corpora: tuple[CorpusPlan, ...] = ()
    if patterns := tuple(options.corpus.split()):
        corpora = (CorpusPlan(options.corpus_name or corpus_name(patterns[0]), patterns),)
    models, benchmarks = _models(options, corpora), options.benchmarks
    if models and not benchmarks and options.data:
        benchmarks = RELEASED
    sets = options.prompt_sets
    if benchmarks or not models:
        return PipelinePlan(corpora, benchmarks, models, {}, options.probe_set, sets)
    offline = {f"{corpus.name}-offline": corpus.name for corpus in corpora}
    return PipelinePlan(corpora, (), models, offline, options.probe_set, sets or (PROMPTS,))


def _closed_world(options: Pipeline) -> PipelinePlan:
    loading = part(ModelOptions, options)
    worlds = WORLDS if options.twin else WORLDS[:1]
    ends = {world: "" if world == WORLDS[0] else f"-{world}" for world in worlds}
    corpora = tuple(CorpusPlan(f"closed-world-{world}", world=world) for world in worlds)
    models = tuple(
        ModelPlan(f"test-model{end}", corpus=corpus.name, preset="closed", options=loading)
        for corpus, end in zip(corpora, ends.values(), strict=True)
    )
    offline, benchmark = {OFFLINE: corpora[0].name}, "closed-world"
    return PipelinePlan(
        corpora, (benchmark,), models, offline, benchmark, fairpair=vars(CLOSED_WORLD)
    )


def corpus_name(pattern: str) -> str:
    """A corpus name from a shard pattern: its directory's name, or else its file's.

    Characters other than a-z and 0-9 become dashes.

    >>> corpus_name("../data/My Novels/*.jsonl.zst"), corpus_name("../mine.jsonl.zst")
    ('my-novels', 'mine')
    """
    path = Path(pattern)
    source = path.parent.name.strip(".") or path.name.split(".")[0]
    return re.sub(r"[^a-z0-9]+", "-", source.lower()).strip("-") or "corpus"


def _models(options: Pipeline, corpora: tuple[CorpusPlan, ...]) -> tuple[ModelPlan, ...]:
    """The models of the settings. Options of an entry in a list override those of the settings."""
    shared = part(ModelOptions, options)
    if options.model and options.models:
        raise UsageProblem("settings model and models", "exclude each other", "give one of them")
    if not options.models:
        return tuple(_model(name, corpora, shared) for name in options.model)
    entries, plans = load_available(options.models), list[ModelPlan]()
    times = Counter(entry.id for entry in entries)
    for entry in entries:
        plan = _model(entry.id, corpora, entry.options(shared))
        plan = replace(plan, workers=entry.workers, given_name=entry.given_name)
        overrides = ", ".join(map(str, entry.overrides.values()))
        if overrides and plan.location and times[entry.id] > 1:  # listed again, loaded otherwise
            plan = replace(plan, name=f"{plan.name} ({overrides})")
        plans.append(plan)
    return tuple(plans)


def _model(name: str, corpora: tuple[CorpusPlan, ...], options: ModelOptions) -> ModelPlan:
    if not name.startswith("train:"):
        shown = Path(name).name if Path(name).is_dir() else name
        return ModelPlan(shown, location=name, options=options)
    if name != TRAIN_SMALL:
        raise UsageProblem(f"model {name}", f"only {TRAIN_SMALL} can be trained here")
    if not corpora:
        raise UsageProblem(f"model {name}", "needs a corpus to learn from", "give its shards")
    corpus = corpora[0].name
    return ModelPlan(f"small-{corpus}", corpus=corpus, preset="small", options=options)
