"""`plumbline pipeline`: from text to a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.pipelines.command.base import (
    DEFAULT_WAREHOUSE,
    Command,
    Context,
    Done,
    Row,
    planned,
)
from plumbline.pipelines.command.failures import ShardsFailed
from plumbline.pipelines.command.fields import ContrastOption, DataOption, OutputDirectory, Seed
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.options import MOST
from plumbline.warehouse.paths import address
from plumbline.warehouse.storage.store import Store

_OUT = Path("out")


class Pipeline(ModelOptions, ContrastOption, DataOption, Command):
    """Count, associate, constrain, score, measure and report; alone: the closed world.

    Without arguments it needs no data and no network: it writes a corpus whose associations are
    known, trains a model on it, and shows whether the model took up the lean of its text.
    With --corpus and --model alone it makes a benchmark of fixed frames around words of the corpus.
    Each command that it runs takes further options from its own table of the settings file.

    Example: plumbline pipeline --corpus 'shards/*.jsonl.zst' --benchmarks winobias,use-5
    --model train:small
    """

    makes_warehouse = True
    records = False
    at_top = True
    without = (
        *("revision", "batch_tokens", "bos", "base_url", "concurrency", "adapter"),
        *("tensor_parallel", "quantisation", "text_form", "pll", "chat", "per_token", "family"),
    )

    conf: Annotated[str, Field(description="Settings file (TOML).")] = ""
    out: Annotated[
        OutputDirectory, Field(description="Directory for everything that is written.")
    ] = _OUT
    corpus: Annotated[
        str, Field(description="Shards to count: paths or globs, separated by spaces.")
    ] = ""
    corpus_name: Annotated[
        str, Field(description="Name of the corpus; default: the shards' directory.")
    ] = ""
    benchmarks: Annotated[
        tuple[str, ...],
        Field(description="Benchmarks, by commas; default: five of `data`, or our own."),
    ] = ()
    model: Annotated[
        tuple[str, ...], Field(description="Hub ids, paths or train:small, by commas.")
    ] = ()
    models: Annotated[
        str, Field(description="Instead of `model` a list: a TOML file, or a name: unstereoeval.")
    ] = ""
    probe_set: Annotated[str, Field(description="Prompts that FairPair continues.")] = ""
    prompt_sets: Annotated[
        tuple[str, ...], Field(description="Prompts that disclosure is measured on, by commas.")
    ] = ()
    seed: Annotated[Seed, Field(description="Seed of corpus writing, training and samples.")] = 0
    demo_tokens: Annotated[
        int, Field(ge=1, le=MOST, description="Size of each closed-world corpus in tokens.")
    ] = 3_000_000
    twin: Annotated[
        bool, Field(description="Closed world: also train on the text with she and he exchanged.")
    ] = False
    train_tokens: Annotated[
        int,
        Field(ge=0, le=MOST, description="Most tokens to train on; 0: the preset's limit."),
    ] = 0
    master: Annotated[str, Field(description="Spark master that counts; default: here.")] = ""

    @classmethod
    def usual(cls, given: Mapping[str, object]) -> Mapping[str, object]:
        """The warehouse is in a given ``out``; else ``out`` is beside a given warehouse."""
        if "out" in given:
            return {"warehouse": Path(str(given["out"])) / DEFAULT_WAREHOUSE.name}
        if "warehouse" in given:
            return {"out": _beside(str(given["warehouse"]))}
        return {}

    def check(self) -> None:
        """Raise the errors of the input that can be detected before the first part runs."""
        from plumbline.pipelines.pipeline_parts import check_plan
        from plumbline.pipelines.pipeline_plan import make_plan

        if self.benchmarks and not make_plan(self).models:
            problem = "is empty, but benchmarks need one"
            raise UsageProblem("setting model", problem, "give train:small")
        check_plan(self)

    def plan(self, store: Store | None) -> Iterator[Row]:
        """The corpora, benchmarks and models; raises for a model that can't be loaded."""
        from plumbline.eval_workers.models import open_backend
        from plumbline.pipelines.command.failures import with_retries
        from plumbline.pipelines.pipeline_parts import is_built
        from plumbline.pipelines.pipeline_plan import make_plan
        from plumbline.warehouse.input.shards import expand_shards

        plan = make_plan(self)
        for corpus in plan.corpora:
            if corpus.world:
                yield planned(corpus.name, "to write", self.demo_tokens, "tokens")
            else:
                n_shards = len(expand_shards(corpus.patterns))
                yield planned(corpus.name, "to count", n_shards, "shards")
        for name in plan.benchmarks:
            yield planned(name, "is there" if is_built(self, name) else "to import", None)
        for name, of_corpus in plan.offline.items():
            yield planned(name, "to write around words", None, "", f"of {of_corpus}")
        for model in plan.models:
            if not model.preset:
                with_retries(lambda m=model: open_backend(m.location, m.options).identity)  # type: ignore[misc]
            what = "to train" if model.preset else "can be loaded"
            yield planned(model.name, what, None, "", ", ".join(plan.scored()))

    def run(self, context: Context) -> Done:
        """Run the parts in order; an unreadable shard or unusable benchmark stops no others."""
        from plumbline.pipelines import pipeline_parts
        from plumbline.pipelines.pipeline_plan import OFFLINE, make_plan

        plan = make_plan(self)
        with pipeline_parts.sole_pipeline(self.warehouse, self.out) as store:
            parts = pipeline_parts.Parts(self, plan, store)
            parts.corpus()
            parts.evaluate()
            _, report = parts.report()
        own = (name for name in plan.offline if name != OFFLINE)
        caveats = (pipeline_parts.preference_caveat(store, name) for name in own)
        errors: list[Exception] = [*map(ShardsFailed, parts.unread), *map(BadInput, parts.failed)]
        errors += [parts.changed] if parts.changed else []
        return Done(
            said=[*pipeline_parts.recovered(store), *caveats],
            files=report.files,
            next="plumbline sql",
            query="FROM metric_value",
            failed=next(iter(errors), None),
        )


def _beside(warehouse: str) -> Path:
    """The directory of a warehouse's reports and models; each of two neighbours has its own.

    >>> str(_beside("study/warehouse")), str(_beside("study/ages")), str(_beside("s3://b/runs"))
    ('study', 'study/ages-out', 'runs-out')
    """
    there = Path(Path(warehouse).name) if address(warehouse) else Path(warehouse)
    if not there.name:
        return _OUT
    if there.name == DEFAULT_WAREHOUSE.name and there != Path(there.name):
        return there.parent
    return there.with_name(f"{there.name}-out")
