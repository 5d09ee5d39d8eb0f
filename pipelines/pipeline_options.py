"""Options of a pipeline: its inputs, and options for loading models and counting corpora."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.disclosure.set_measures import ProbeOptions
from plumbline.eval_workers.fairpair.fairpair_options import FairPairOptions
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.scoring.measure import MeasureOptions
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.pipelines.command.base import Command, On
from plumbline.pipelines.command.fields import DataOption, OutputDirectory, Seed
from plumbline.warehouse.options import MOST, STRICT

OUT = Path("out")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class PipelineOptions(ModelOptions, CorpusOptions, DataOption, Command):
    """The options of `plumbline pipeline`."""

    out: Annotated[
        OutputDirectory, Field(description="Directory for everything that is written.")
    ] = OUT
    corpus: Annotated[
        tuple[str, ...],
        Field(description="Shards to count: paths or globs, separated by spaces."),
        On(separator=" "),
    ] = ()
    corpus_name: Annotated[
        str, Field(description="Name of the corpus; empty: the shards' directory.")
    ] = ""
    contrast: Annotated[str, Field(description="Contrast that constrains the benchmarks.")] = (
        "she/he"
    )
    why: Annotated[
        tuple[str, ...],
        Field(description="Words to explain, by commas; empty: the two that lean most each way."),
    ] = ()
    benchmarks: Annotated[
        tuple[str, ...],
        Field(description="Benchmarks, by commas; empty: five of `data`, or our own."),
    ] = ()
    model: Annotated[
        tuple[str, ...], Field(description="Hub ids, paths or train:small, by commas.")
    ] = ()
    build: Annotated[
        str, Field(description="Benchmark that a chat model is to write: its TOML file.")
    ] = ""
    probe_set: Annotated[str, Field(description="Prompts that FairPair continues.")] = ""
    prompt_sets: Annotated[
        tuple[str, ...], Field(description="Prompts that disclosure is measured on, by commas.")
    ] = ()
    models: Annotated[
        str, Field(description="Instead of `model` a list: a TOML file, or a name: unstereoeval.")
    ] = ""
    seed: Annotated[Seed, Field(description="Seed of corpus writing, training and samples.")] = 0
    demo_tokens: Annotated[
        int, Field(ge=1, le=MOST, description="Size of each closed-world corpus in tokens.")
    ] = 3_000_000
    twin: Annotated[
        bool, Field(description="Closed world: also train on the text with she and he exchanged.")
    ] = False
    train_tokens: Annotated[
        int,
        Field(
            ge=0, le=MOST, description="Limit on the tokens a model is trained on; 0: the preset's."
        ),
    ] = 0
    master: Annotated[
        str, Field(description="Spark master; empty: what `spark_conf` says, or this machine.")
    ] = ""
    spark_conf: Annotated[
        str, Field(description="Spark settings: local, cluster or a .conf; empty: by master.")
    ] = ""
    spark_submit: Annotated[
        str, Field(description="spark-submit that counts; empty: this process does.")
    ] = ""
    spark_options: Annotated[
        str, Field(description="Further options for spark-submit, as on its line.")
    ] = ""
    dist: Annotated[
        str, Field(description="What `make dist` wrote, for spark-submit; empty: written anew.")
    ] = ""
    score_workers: Annotated[
        int,
        Field(ge=1, le=1024, description="Scoring processes on this machine."),
        On(variable="PLUMBLINE_PIPELINE_SCORE_WORKERS"),
    ] = 1

    fairpair: Annotated[FairPairOptions, Field(description="FairPair of the models.")] = (
        FairPairOptions()
    )
    disclosure: Annotated[ProbeOptions, Field(description="Disclosure of other models.")] = (
        ProbeOptions()
    )
    measure: Annotated[MeasureOptions, Field(description="Metrics.")] = MeasureOptions()
