"""The options of `plumbline pipeline`, and the plan that is made from them before the run."""

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
from plumbline.warehouse.options import MOST, Seed, changed, part

#: Options that name inputs. If none is set, the pipeline runs on the closed world (made-up text).
INPUTS = ("corpus", "benchmarks", "model", "models")
#: Value of `model`, instead of a hub id or path, for a small model trained on the corpus itself.
TRAIN_SMALL = "train:small"
#: Name of the model that is trained on the made-up text.
DEMO_MODEL = "test-model"
#: Plumbline's own prompts. Disclosure uses them if no benchmark or set of prompts is named.
PROMPTS = "topics"
#: Benchmarks to score if `data` is configured, and no benchmark or set of prompts is named.
RELEASED = ("winobias", "winogender", "use-5", "use-10", "use-20")


class PipelineOptions(ModelOptions, ContrastOption, DataOption, OutOption, Command):
    config: Annotated[
        str, Field(description="Settings file (TOML) for the pipeline and the commands it runs.")
    ] = ""
    corpus: Annotated[
        str, Field(description="Text files (shards): paths or globs, separated by spaces.")
    ] = ""
    benchmarks: Annotated[
        tuple[str, ...],
        Field(
            description="Benchmarks, separated by commas. Default: the five released ones if "
            "--data is set; otherwise one made from the corpus."
        ),
    ] = ()
    model: Annotated[
        tuple[str, ...],
        Field(
            description="Models, separated by commas: hub ids, paths, or train:small to train one."
        ),
    ] = ()
    models: Annotated[
        str,
        Field(
            description="List of models: a TOML file, or a paper's name to use its models "
            "(unstereoeval, fairpair or disclosure)."
        ),
    ] = ""
    probe_set: Annotated[str, Field(description="Set of prompts for FairPair.")] = ""
    prompt_sets: Annotated[
        tuple[str, ...],
        Field(description="Sets of prompts for the disclosure measures, separated by commas."),
    ] = ()
    seed: Annotated[Seed, Field(description="Random seed for texts, training and sampling.")] = 0
    demo_tokens: Annotated[
        int, Field(ge=1, le=MOST, description="Length of the made-up text in tokens.")
    ] = 3_000_000
    master: Annotated[str, Field(description="Spark master; default: count without Spark.")] = ""


@dataclass(frozen=True)
class CorpusPlan:
    """A corpus to count. ``patterns`` match its shards; the made-up corpus has no patterns."""

    name: str
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelPlan:
    """A model to measure.

    The model is either loaded from ``location`` (a hub id or path), or trained first with
    ``preset``. ``options`` say how to load the model. Models with the same ``given_name`` are
    versions of one model.
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
        made_benchmark: name of a benchmark to make from fixed sentence frames and words of the
            corpus. If empty, no such benchmark is made.
        probe_set: the set of prompts for FairPair. If empty, FairPair isn't run.
        disclosure: the sets of prompts for the disclosure measures.
        fairpair: options for `fairpair run`, which override the settings file.
    """

    corpus: CorpusPlan | None
    benchmarks: tuple[str, ...]
    models: tuple[ModelPlan, ...]
    made_benchmark: str = ""
    probe_set: str = ""
    disclosure: tuple[str, ...] = ()
    fairpair: Mapping[str, object] = field(default_factory=dict)

    def scored(self) -> tuple[str, ...]:
        """Return the names of all benchmarks to score, including ``made_benchmark``."""
        return (*self.benchmarks, *filter(None, [self.made_benchmark]))


def make_plan(options: PipelineOptions) -> PipelinePlan:
    """Make a plan from options. If no option in ``INPUTS`` is set, use the made-up corpus.

    If the options name no benchmark and no prompts, models are scored on ``RELEASED`` if `data` is
    set. If `data` isn't set, disclosure is measured on ``PROMPTS``. If a corpus is given but no
    benchmark is chosen, one is made from sentence frames and corpus words.

    Raises ``UsageProblem`` if options can't be combined, for example if a model is to be trained
    but there is no corpus. Also raises an error if a list of models can't be read.

    >>> plan = make_plan(PipelineOptions())
    >>> plan.corpus.name, plan.scored(), [m.name for m in plan.models]
    ('closed-world-straight', ('closed-world', 'closed-world-frames'), ['test-model'])
    >>> (small,) = make_plan(PipelineOptions(corpus="a/*.jsonl", model=("train:small",))).models
    >>> small.name, small.preset
    ('small-a', 'small')
    >>> make_plan(PipelineOptions(corpus="novels/*.jsonl", model=("gpt2",))).scored()
    ('novels-frames',)
    """
    if not any(getattr(options, name) for name in INPUTS):
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
    made_benchmark = f"{corpus.name}-frames" if corpus else ""
    if not (probe_set or sets):
        sets = (PROMPTS,)
    return PipelinePlan(corpus, (), models, made_benchmark, probe_set, sets)


def _closed_world(options: PipelineOptions) -> PipelinePlan:
    model = ModelPlan(DEMO_MODEL, preset="closed", options=part(ModelOptions, options))
    return PipelinePlan(
        CorpusPlan("closed-world-straight"),
        ("closed-world",),
        (model,),
        made_benchmark="closed-world-frames",
        probe_set="closed-world",
        disclosure=("closed-world-unseen",),
        fairpair=vars(CLOSED_WORLD),
    )


def corpus_name(pattern: str) -> str:
    """Name a corpus after its shards' directory or, if the path has no directory, after the file.

    Letters become lower case, and characters other than a-z and 0-9 become dashes.

    >>> corpus_name("../data/My Novels/*.jsonl.zst"), corpus_name("../mine.jsonl.zst")
    ('my-novels', 'mine')
    """
    path = Path(pattern)
    source = path.parent.name.strip(".") or path.name.split(".")[0]
    return re.sub(r"[^a-z0-9]+", "-", source.lower()).strip("-") or "corpus"


def _models(options: PipelineOptions, corpus: CorpusPlan | None) -> tuple[ModelPlan, ...]:
    if options.model and options.models:
        raise UsageProblem("settings model and models", "exclude each other", "give one of them")
    entries = load(options.models) if options.models else map(ListedModel, options.model)
    shared = part(ModelOptions, options)
    return tuple(_model(entry, corpus, changed(shared, entry.overrides)) for entry in entries)


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
