"""`plumbline pipeline`: from text to a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic.dataclasses import dataclass

from plumbline.eval_workers.fairpair.fairpair_options import CLOSED_WORLD
from plumbline.eval_workers.models.model_lists import AMONG_OTHERS
from plumbline.pipelines.command.base import (
    DEFAULT_WAREHOUSE,
    Command,
    Context,
    Done,
    Row,
    planned,
)
from plumbline.pipelines.command.failures import ShardsFailed
from plumbline.pipelines.command.registry import targets
from plumbline.pipelines.pipeline_options import OUT, PipelineOptions
from plumbline.pipelines.pipeline_plan import OFFLINE, WORK, make_plan
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.paths import address
from plumbline.warehouse.storage.store import Store

#: Fields that hold options of their own, in a table of the settings file.
_TABLES = ("fairpair", "disclosure", "measure")
#: The tables of interest that it writes.
_WRITES = (
    *("corpus", "word_delta", "benchmark_pair", "pair_association"),
    *("pair_score", "metric_value"),
)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Pipeline(PipelineOptions, Command):
    """Count, associate, constrain, score, measure and report; alone: the closed world.

    Without arguments it needs no data and no network: it writes a corpus whose associations are
    known, trains a model on it, and shows whether the model took up the lean of its text.
    With --corpus and --model alone it makes a benchmark of fixed frames around words of the corpus.

    Example: plumbline pipeline --corpus 'shards/*.jsonl.zst' --benchmarks winobias,use-5
    --model train:small
    """

    makes_warehouse = True
    records = False
    at_top = True
    settings_only = (
        *("text_field", "rule", "window", "min_count", "evidence", "source_field", "memory"),
        *("replace", "revision", "batch_tokens", "bos", "base_url", "concurrency", "adapter"),
        *("tensor_parallel", "quantisation", "text_form", "pll", "chat", "per_token", "family"),
        *("build", "prompt_sets", "spark_conf", "spark_submit", "spark_options", "dist"),
        "score_workers",
    )

    @classmethod
    def of_settings(cls, content: Mapping[str, Any], file: str) -> Mapping[str, object]:
        """Options at the top, in `[pipeline]`, and in ``_TABLES``, without options of commands.

        >>> Pipeline.of_settings({"seed": 1, "fairpair": {"n": 3, "run": {}}, "score": {}}, "")
        {'seed': 1, 'fairpair_n': 3}
        """
        there, options = targets(), dict[str, object]()
        groups = {name.split()[0] for name in there}
        for name, value in {**content, **content.get("pipeline", {})}.items():
            if name == "model" and isinstance(value, list) and dict in map(type, value):
                options["models"] = f"{file}{AMONG_OTHERS}"
            elif isinstance(value, dict) and name in _TABLES:
                own = {k: v for k, v in value.items() if f"{name} {k}" not in there}
                options |= {f"{name}_{key}": one for key, one in own.items()}
            elif not (isinstance(value, dict) and name in groups):
                options[name] = value
        return options

    @classmethod
    def usual(cls, given: Mapping[str, object]) -> Mapping[str, object]:
        """The warehouse is in a given ``out``; else ``out`` is beside a given warehouse.

        In the closed world FairPair takes few, short samples.
        """
        places = {"out": OUT}
        if "out" in given:
            places = {"warehouse": Path(str(given["out"])) / DEFAULT_WAREHOUSE.name}
        elif "warehouse" in given:
            places = {"out": _beside(str(given["warehouse"]))}
        is_work = any(given.get(name) for name in WORK)
        return places if is_work else {**places, "fairpair": CLOSED_WORLD}

    def check(self) -> None:
        """Raise the errors of the input that can be detected before the first part runs."""
        from plumbline.pipelines.pipeline_parts import check_plan

        if self.benchmarks and not make_plan(self).models:
            problem = "is empty, but benchmarks need one"
            raise UsageProblem("setting model", problem, "give train:small")
        check_plan(self)

    def plan(self, store: Store | None) -> Iterator[Row]:
        """The corpora, benchmarks and models; raises for a model that can't be loaded."""
        from plumbline.eval_workers.models import open_backend
        from plumbline.pipelines.pipeline_parts import is_built
        from plumbline.pipelines.stages import with_retries
        from plumbline.warehouse.input.shards import expand_shards

        plan = make_plan(self)
        for corpus in plan.corpora:
            if corpus.world:
                yield planned(corpus.name, "to write", self.demo_tokens, "tokens")
            else:
                yield planned(
                    corpus.name, "to count", len(expand_shards(corpus.patterns)), "shards"
                )
        for name in plan.benchmarks:
            yield planned(name, "is there" if is_built(self, name) else "to import", None)
        for written in plan.written:
            yield planned(written.name, "to write, words", written.n_words, "", "at most")
        for model in plan.models:
            if not model.preset:
                with_retries(lambda m=model: open_backend(m.location, m.options).identity)  # type: ignore[misc]
            what = "to train" if model.preset else "can be loaded"
            yield planned(model.name, what, None, "", ", ".join(plan.scored()))

    def run(self, context: Context) -> Done:
        """Run the parts in order; an unreadable shard or unusable benchmark stops no others."""
        from plumbline.pipelines.pipeline_parts import (
            Parts,
            preference_caveat,
            recovered,
            sole_pipeline,
        )
        from plumbline.pipelines.report.plain import page_answer

        plan = make_plan(self)
        parts = Parts(self, plan, context)
        with sole_pipeline(self.warehouse, self.out):
            parts.corpus()
            parts.evaluate()
            parts.report()
        offline = (w.name for w in plan.written if w.offline and w.name != OFFLINE)
        lines = (*map(ShardsFailed, parts.unread), *map(BadInput, parts.failed))
        failures = (*lines, *filter(None, [parts.changed]))
        files = [file for name, one in parts.done if name == "report" for file in one.files]
        return Done(
            said=[
                *page_answer(Path(files[0]).read_text(encoding="utf-8")),
                *recovered(context.store),
                *(preference_caveat(context.store, name) for name in offline),
            ],
            wrote=_WRITES,
            files=files,
            next="plumbline sql",
            query="FROM metric_value",
            failed=next(iter(failures), None),
        )


def _beside(warehouse: str) -> Path:
    """The directory of a warehouse's reports and models; each of two neighbours has its own.

    >>> str(_beside("study/warehouse")), str(_beside("study/ages")), str(_beside("s3://b/runs"))
    ('study', 'study/ages-out', 'runs-out')
    """
    there = Path(Path(warehouse).name) if address(warehouse) else Path(warehouse)
    if not there.name:
        return OUT
    if there.name == DEFAULT_WAREHOUSE.name and there != Path(there.name):
        return there.parent
    return there.with_name(f"{there.name}-out")
