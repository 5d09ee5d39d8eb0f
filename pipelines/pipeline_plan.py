"""The options of a pipeline, and its plan, made from them before anything starts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field

from plumbline.eval_workers.fairpair.fairpair_options import CLOSED_WORLD
from plumbline.eval_workers.models.model_lists import ListedModel, load
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.pipelines.command.base import Command
from plumbline.pipelines.command.fields import ContrastOption, DataOption, OutOption
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import MOST, Seed, part

#: Options that name inputs. If none is set, the pipeline runs on the closed world (made-up text).
WORK = ("corpus", "benchmarks", "model", "models")
#: Value of `model`, instead of a hub id or path, for a small model trained on the corpus itself.
TRAIN_SMALL = "train:small"
#: Plumbline's own prompts, for disclosure if no benchmark or set of prompts is named.
PROMPTS = "topics"
#: Benchmarks to score if `data` is configured and nothing to measure is named.
RELEASED = ("winobias", "winogender", "use-5", "use-10", "use-20")


class PipelineOptions(ModelOptions, ContrastOption, DataOption, OutOption, Command):
    """The options of `plumbline pipeline`."""

    config: Annotated[
        str, Field(description="Settings file (TOML) of this command and of those that it runs.")
    ] = ""
    corpus: Annotated[
        str, Field(description="Shards to count: paths or globs, separated by spaces.")
    ] = ""
    benchmarks: Annotated[
        tuple[str, ...],
        Field(description="Benchmarks, separated by commas; default: five of `data`, or our own."),
    ] = ()
    model: Annotated[
        tuple[str, ...],
        Field(description="Models, separated by commas: hub ids, paths or train:small."),
    ] = ()
    models: Annotated[
        str,
        Field(description="Instead of `model`: a TOML file, unstereoeval, fairpair or disclosure."),
    ] = ""
    probe_set: Annotated[str, Field(description="Set of prompts that FairPair continues.")] = ""
    prompt_sets: Annotated[
        tuple[str, ...],
        Field(description="Sets of prompts for disclosure, separated by commas."),
    ] = ()
    seed: Annotated[Seed, Field(description="Seed of the made-up text, training and samples.")] = 0
    demo_tokens: Annotated[
        int, Field(ge=1, le=MOST, description="Size of the made-up text in tokens.")
    ] = 3_000_000
    master: Annotated[str, Field(description="Spark master to count on; default: none.")] = ""


@dataclass(frozen=True)
class CorpusPlan:
    """A corpus to count: its name and patterns of shards. Without patterns, it is written first."""

    name: str
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelPlan:
    """A model to score: a hub id or path (``location``), or a model to train on the corpus first.

    The model is loaded with ``options``. Models with the same ``given_name`` are versions of one
    model.
    """

    name: str
    location: str = ""
    preset: str = ""
    options: ModelOptions = field(default_factory=ModelOptions)
    given_name: str | None = None


@dataclass(frozen=True)
class PipelinePlan:
    """What a pipeline will do.

    Attributes:
        offline: the benchmark that our own grammar writes around words of the corpus, or empty.
        probe_set: the prompts that FairPair continues, or empty.
        disclosure: the sets of prompts that disclosure is measured on.
        fairpair: FairPair's options; they override the settings of `fairpair run`.
    """

    corpus: CorpusPlan | None
    benchmarks: tuple[str, ...]
    models: tuple[ModelPlan, ...]
    offline: str = ""
    probe_set: str = ""
    disclosure: tuple[str, ...] = ()
    fairpair: Mapping[str, object] = field(default_factory=dict)

    def scored(self) -> tuple[str, ...]:
        """Return the benchmarks that models are scored on."""
        return (*self.benchmarks, *filter(None, [self.offline]))


def make_plan(options: PipelineOptions) -> PipelinePlan:
    """Turn options into a plan, for the closed world if none of ``WORK`` is set.

    If no benchmark or set of prompts is named, models are scored on ``RELEASED`` if `data` is
    configured; otherwise, disclosure is measured on ``PROMPTS``. If there is a corpus but no
    benchmark, our own grammar writes one around the corpus's words.

    Raises ``UsageProblem`` for options that don't fit together, such as a model to train without a
    corpus, and the errors of reading a list of models.

    >>> plan = make_plan(PipelineOptions())
    >>> plan.corpus.name, plan.scored(), [m.name for m in plan.models]
    ('closed-world-straight', ('closed-world', 'closed-world-offline'), ['test-model'])
    >>> (small,) = make_plan(PipelineOptions(corpus="a/*.jsonl", model=("train:small",))).models
    >>> small.name, small.preset
    ('small-a', 'small')
    >>> make_plan(PipelineOptions(corpus="novels/*.jsonl", model=("gpt2",))).scored()
    ('novels-offline',)
    """
    if not any(getattr(options, name) for name in WORK):
        return _closed_world(options)
    corpus = None
    if patterns := tuple(options.corpus.split()):
        corpus = CorpusPlan(corpus_name(patterns[0]), patterns)
    models, benchmarks = _models(options, corpus), options.benchmarks
    probe_set, sets = options.probe_set, options.prompt_sets
    if models and options.data and not (benchmarks or probe_set or sets):
        benchmarks = RELEASED
    if benchmarks or not models:
        return PipelinePlan(corpus, benchmarks, models, "", probe_set, sets)
    offline = f"{corpus.name}-offline" if corpus else ""
    if not (probe_set or sets):
        sets = (PROMPTS,)
    return PipelinePlan(corpus, (), models, offline, probe_set, sets)


def _closed_world(options: PipelineOptions) -> PipelinePlan:
    model = ModelPlan("test-model", preset="closed", options=part(ModelOptions, options))
    return PipelinePlan(
        CorpusPlan("closed-world-straight"),
        ("closed-world",),
        (model,),
        offline="closed-world-offline",
        probe_set="closed-world",
        disclosure=("closed-world-unseen",),
        fairpair=vars(CLOSED_WORLD),
    )


def corpus_name(pattern: str) -> str:
    """Make a corpus name from a shard pattern: the directory's name or, without one, the file's.

    Characters other than a-z and 0-9 become dashes.

    >>> corpus_name("../data/My Novels/*.jsonl.zst"), corpus_name("../mine.jsonl.zst")
    ('my-novels', 'mine')
    """
    path = Path(pattern)
    source = path.parent.name.strip(".") or path.name.split(".")[0]
    return re.sub(r"[^a-z0-9]+", "-", source.lower()).strip("-") or "corpus"


def _models(options: PipelineOptions, corpus: CorpusPlan | None) -> tuple[ModelPlan, ...]:
    """Return the models. Options in a model's entry of a list override the general ones."""
    if options.model and options.models:
        raise UsageProblem("settings model and models", "exclude each other", "give one of them")
    entries = load(options.models) if options.models else map(ListedModel, options.model)
    shared = part(ModelOptions, options)
    return tuple(_model(entry, corpus, entry.options(shared)) for entry in entries)


def _model(entry: ListedModel, corpus: CorpusPlan | None, options: ModelOptions) -> ModelPlan:
    name = entry.id
    if not name.startswith("train:"):
        shown = Path(name).name if Path(name).is_dir() else name
        return ModelPlan(shown, name, "", options, entry.name)
    if name != TRAIN_SMALL:
        raise UsageProblem(f"model {name}", f"only {TRAIN_SMALL} can be trained here")
    if not corpus:
        raise UsageProblem(f"model {name}", "needs a corpus to learn from", "give its shards")
    small = f"small-{corpus.name}"
    return ModelPlan(small, "", "small", options, entry.name)
