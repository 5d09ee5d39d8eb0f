"""`plumbline look`: one model on one page, without settings or a corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.pipelines.command.base import DEFAULT_WAREHOUSE, Command, Context, Done, On
from plumbline.pipelines.command.fields import DataOption, OutputDirectory
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.storage.store import Store

#: Plumbline's own pairs, for users without the released sets.
_OWN_PAIRS = "closed-world"
#: A short FairPair: few samples, long enough that one replaced name changes little of a text.
_FAIRPAIR = {"n": 8, "max_new_tokens": 64, "n_permutations": 199, "n_resamples": 300}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Look(DataOption, Command):
    """Look at a model: which sentences it prefers, what it assumes, and how it continues texts.

    Scores the same 300 pairs of each released set under --data, or of Plumbline's own pairs without
    it; asks about prompts that give no gender; and runs a short FairPair. A model of 100 M
    parameters takes a few minutes on a laptop. Further models come on the same page.

    Example: plumbline look EleutherAI/pythia-70m
    """

    makes_warehouse = True

    model: Annotated[
        str,
        Field(min_length=1, description="Hub id, or directory of a saved model."),
        On(positional=True),
    ]
    n: Annotated[int, Field(ge=2, le=1_000_000, description="Pairs of each set.")] = 300
    out: Annotated[OutputDirectory, Field(description="Directory for everything.")] = Path(
        "out/look"
    )
    warehouse: Annotated[
        Path, Field(description="Warehouse of the results."), On(metavar="DIRECTORY")
    ] = Path("out/look/warehouse")

    @classmethod
    def usual(cls, given: Mapping[str, object]) -> Mapping[str, object]:
        """The warehouse is in a given ``out``."""
        if "out" not in given:
            return {}
        return {"warehouse": Path(str(given["out"])) / DEFAULT_WAREHOUSE.name}

    def sets(self) -> list[str]:
        """The released sets under ``data``; Plumbline's own pairs if there are none."""
        from plumbline.eval_workers.pairs.benchmarks import default_source
        from plumbline.pipelines.pipeline_plan import RELEASED

        if self.data is None:
            return [_OWN_PAIRS]
        paths = {name: default_source(name, self.data) for name in RELEASED}
        return [name for name, path in paths.items() if path and path.exists()] or [_OWN_PAIRS]

    def check(self) -> None:
        """Raise for a model that can't be found; no weights are read."""
        from plumbline.eval_workers.models import open_backend
        from plumbline.eval_workers.models.model_options import ModelOptions

        _ = open_backend(self.model, ModelOptions()).identity

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.command.value_sources import made
        from plumbline.pipelines.commands.pipeline import Pipeline
        from plumbline.pipelines.pipeline_parts import Parts
        from plumbline.pipelines.pipeline_plan import PROMPTS, make_plan
        from plumbline.pipelines.report.plain import page_answer

        sets, said = list[str](), list[str]()
        for name in self.sets():
            stage = f"take {self.n} pairs of {name}"
            sample, line = context.stage(stage, self._take, context.store, name, context.run_id)
            sets.append(sample)
            said.append(line)
        given: dict[str, Any] = {f"fairpair_{name}": value for name, value in _FAIRPAIR.items()}
        given |= {"benchmarks": sets, "probe_set": "common-sents", "prompt_sets": (PROMPTS,)}
        places = {"out": self.out, "warehouse": self.warehouse}
        pipeline = made(Pipeline, {**given, **places, "model": (self.model,)})
        parts = Parts(pipeline, make_plan(pipeline), context)
        parts.evaluate()
        parts.report()
        done = dict(parts.done)
        page = Path(done["report"].files[0])
        return Done(
            rows=done["measure"].rows,
            said=[*said, *page_answer(page.read_text(encoding="utf-8"))],
            files=[str(page)],
            next="plumbline look ANOTHER_MODEL",
            query="FROM metric_value ORDER BY ALL",
            failed=next(map(BadInput, parts.failed), None),
        )

    def _take(self, store: Store, name: str, run_id: str) -> tuple[str, str]:
        """Write the sample of a set: the same pairs for every model and machine.

        The sample is a benchmark of its own, so that the set and samples of other sizes keep their
        pairs and results. Returns its name and a line on its size.
        """
        from plumbline.eval_workers.pairs import benchmarks
        from plumbline.eval_workers.scoring.pair_scores import drawn

        options = benchmarks.ImportOptions()
        parsed, path = benchmarks.read_pairs_of(name, None, options, self.data or "")

        sample = replace(parsed, pairs=drawn(parsed.pairs, self.n))
        done = benchmarks.replace_benchmark(store, f"look-{name}-{self.n}", sample, path, run_id)
        line = f"{done.benchmark}: {done.n_pairs:,} of {len(parsed.pairs):,} pairs of {name}"
        if done.n_rejects:
            line += f"; {done.n_rejects:,} rows can't be used (table `reject`)"
        return done.benchmark, line
