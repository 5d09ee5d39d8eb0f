"""`plumbline look`: a quick report on one model, without settings or a corpus."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.scoring_contract import GIVEN_EMPTY, LOG_LIKELIHOOD
from plumbline.eval_workers.pairs import benchmarks
from plumbline.eval_workers.pairs.released_scores import import_scores
from plumbline.eval_workers.scoring.pair_scores import drawn
from plumbline.pipelines.command.base import WARNING, Command, Context, Done, On
from plumbline.pipelines.command.fields import DataOption, OutOption, OutputDirectory
from plumbline.pipelines.command.settings import made
from plumbline.pipelines.commands.pipeline import Parts, Pipeline
from plumbline.pipelines.pipeline_plan import PROMPTS, RELEASED, PipelinePlan
from plumbline.pipelines.report.metric_tables import LEGEND
from plumbline.warehouse.errors import BadInput, Interrupted
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import say

#: Plumbline's own pairs, for users without the released sets.
_OWN_PAIRS = "closed-world"
#: Number of the paper's table with US of all pairs, and the metric's name there.
_US = (8, "US")
#: Names of the models that `look` has scored.
_LABELS = "SELECT label FROM model_label JOIN model USING (model_key) WHERE backend <> 'released'"
#: A model's US on each sample of pairs, and its rank among the models that scored the sample.
_PLACE = """
SELECT m.benchmark, m.value, r.rank, r.rank_low, r.rank_high, r.n_models
FROM metric_value AS m
LEFT JOIN model_rank AS r USING (benchmark, groups, metric, model_key)
WHERE metric = 'us' AND subset = 'all' AND model_key = $key AND list_contains($samples, benchmark)
ORDER BY list_position($samples, benchmark);"""
#: Options of a short FairPair: few samples, but long ones, in which names are a small part.
_FAIRPAIR = {"n": 8, "max_new_tokens": 64, "n_permutations": 199, "n_resamples": 300}


class Look(DataOption, OutOption, Command):
    """Report which sentences a model prefers, which gender it assumes, and how it continues texts.

    Scores 300 sentence pairs of each released benchmark. Every model gets the same pairs. Compares
    the model with 28 models of the UnStereoEval paper. Measures which gender the model assumes when
    a prompt gives no gender, and runs a short FairPair test. A model of 100 M parameters takes a
    few minutes on a laptop. After you run the command on another model, the page shows both models.

    The benchmarks are read from --data (a clone of UnStereoEval or its parent directory), or
    downloaded. If neither works, Plumbline's own pairs are used.

    Example: plumbline look EleutherAI/pythia-70m
    """

    makes_warehouse = True

    model: Annotated[
        str,
        Field(min_length=1, description="Model: Hugging Face id, or directory."),
        On(positional=True),
    ]
    n: Annotated[int, Field(ge=2, le=10**6, description="Number of pairs per benchmark.")] = 300
    out: Annotated[OutputDirectory, Field(description="Directory for all output.")] = Path(
        "out/look"
    )
    warehouse: Annotated[
        Path, Field(description="Directory of the warehouse."), On(metavar="DIRECTORY")
    ] = Path("out/look/warehouse")

    def sets(self, data: Path | None) -> list[str]:
        paths = {name: benchmarks.default_source(name, data) for name in RELEASED} if data else {}
        return [name for name, path in paths.items() if path and path.exists()]

    def _released(self) -> tuple[Path | None, list[str], list[str]]:
        """Return the directory and the names of the released benchmarks, and lines to print.

        Without released benchmarks, returns ``None`` and the name of Plumbline's own benchmark.
        """
        from plumbline.eval_workers.pairs.benchmarks.released_sets import downloaded

        if names := self.sets(self.data):
            return self.data, names, []
        try:
            data = downloaded()
        except (BadInput, Interrupted) as e:
            line = "no rank among the 28 published models: they didn't score Plumbline's own pairs"
            say(f"{e}; going on with Plumbline's own pairs", err=True)
            return None, [_OWN_PAIRS], [line]
        return data, self.sets(data), []

    def check(self) -> None:
        _ = open_backend(self.model, ModelOptions()).identity

    def run(self, context: Context) -> Done:
        samples, (data, names, said) = dict[str, str](), self._released()
        for name in names:
            work = (self._sample, context.store, name, context.run_id, data)
            samples[name], line = context.stage(f"take {self.n} pairs of {name}", *work)
            said.append(line)
        has_scores = data is not None and self._import_published(context, samples, data)
        given = {"probe_set": "common-sents", "prompt_sets": (PROMPTS,)}
        given["benchmarks"] = tuple(samples.values())
        places = {"out": self.out, "warehouse": self.warehouse}
        pipeline = made(Pipeline, {**given, **places, "model": (self.model,)})
        parts = Parts(pipeline, context.store)
        parts.plan, skipped = self._possible(replace(parts.plan, fairpair=_FAIRPAIR))
        shown = partial(_labels, context.store)

        def about() -> dict[str, tuple[str, ...]]:
            return {"model": tuple(map(glob.escape, shown())) if has_scores else ()}

        parts.do([*parts.evaluate(), *parts.report(about)])
        (name,) = (model.name for model in parts.plan.models)
        scored = parts.results.get(f"score {name}")
        if scored and data is not None:
            key = scored.rows[0]["model_key"]
            said += _places(context.store, samples, key, has_scores)
        said += skipped
        if scored:  # other errors become warnings
            said += [f"{WARNING}{error}" for error in parts.errors]
        return Done(
            rows=[row for row in parts.results["measure"].rows if row["model"] in shown()],
            said=[*said, LEGEND, *parts.results["report"].said],
            files=parts.results["report"].files,
            next="plumbline look ANOTHER_MODEL",
            query="FROM metric_value ORDER BY ALL",
            failed=None if scored else next(iter(parts.errors), None),
        )

    def _possible(self, plan: PipelinePlan) -> tuple[PipelinePlan, list[str]]:
        """Limit the plan to tests that the model can run. Return it, and lines on skipped tests."""
        model = open_backend(self.model, ModelOptions())
        name, measure = model.identity.model, model.identity.measure
        if measure == GIVEN_EMPTY:
            line = f"Disclosure skipped: {name} is an encoder-decoder"
            return replace(plan, disclosure=()), [line]
        if measure != LOG_LIKELIHOOD:
            line = f"FairPair and disclosure skipped: {name} doesn't predict next tokens"
            return replace(plan, probe_set="", disclosure=()), [line]
        n_context = getattr(model, "n_context", None)
        if n_context is not None and n_context <= _FAIRPAIR["max_new_tokens"]:
            line = (
                f"FairPair skipped: its texts don't fit into the context of {n_context} tokens; "
                "`plumbline fairpair run` can write shorter ones"
            )
            return replace(plan, probe_set=""), [line]
        return plan, []

    def _import_published(self, context: Context, samples: Mapping[str, str], data: Path) -> bool:
        """Import the 28 models' published scores of the pairs. Return False if there are none."""
        results = benchmarks.under_data("released scores", "unstereo-eval/results", data)
        if not results.is_dir():
            return False
        work = (context.store, results, context.run_id, samples)
        context.stage("read the scores of the 28 published models", import_scores, *work)
        return True

    def _sample(self, store: Store, name: str, run_id: str, data: Path | None) -> tuple[str, str]:
        """Store a sample of a benchmark's pairs. All models and machines get the same sample.

        The sample is stored as a new benchmark. The full benchmark and samples of other sizes keep
        their results. Returns the sample's name, and a line to print about its size.
        """
        parsed, path = benchmarks.read_pairs_of(name, None, data or "")
        parts, sample = replace(parsed, pairs=drawn(parsed.pairs, self.n)), f"look-{name}-{self.n}"
        benchmarks.replace_benchmark(store, sample, parts, path, run_id)
        n_pairs = f"{len(parts.pairs):,} of {len(parsed.pairs):,}"
        return sample, f"{sample}: {n_pairs} pairs of {name}"


def _labels(store: Store) -> list[str]:
    return [row["label"] for row in rows_of(store, _LABELS)]


def _places(store: Store, samples: Mapping[str, str], key: str, has_scores: bool) -> Iterator[str]:
    """Yield a line per benchmark: the model's rank by US among the 28 published models.

    Without the published scores, compares the model's US with the figures printed in the paper.
    """
    from plumbline.pipelines.reproduce.claims import figures

    printed = [row for row in figures("unstereoeval") if (row["table"], row["metric"]) == _US]
    for row in rows_of(store, _PLACE, {"key": key, "samples": [*samples.values()]}):
        name = next(name for name, sample in samples.items() if sample == row["benchmark"])
        start = f"{name}: US {100 * row['value']:.1f}%"
        if has_scores:
            yield (
                f"{start}, rank {row['rank']} of {row['n_models']} (95%: {row['rank_low']} to "
                f"{row['rank_high']}) with the 28 published models on the same pairs"
            )
            continue
        of_others = [one["value"] for one in printed if one["benchmark"] == name and one["model"]]
        n_higher = sum(value > 100 * row["value"] for value in of_others)
        yield (
            f"{start}; the paper prints a higher US, on all pairs, for {n_higher} of the "
            f"{len(of_others)} published models ({min(of_others):.1f} to {max(of_others):.1f}%)"
        )
