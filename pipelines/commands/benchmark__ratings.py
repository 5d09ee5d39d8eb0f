"""`plumbline benchmark export-ratings` and `import-ratings`: people's judgements of its pairs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.pairs.ratings import answers, questions, rating_facts, sheets
from plumbline.pipelines.command.base import Command, Context, Done, On
from plumbline.pipelines.command.fields import BenchmarkName, InputFile, OutputDirectory, Seed
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.paths import segment
from plumbline.warehouse.query.connection import rows_of


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ExportRatings(Command):
    """Write a rating sheet for each rater: a form that works offline, and the same as CSV.

    By default six raters judge the same 100 pairs, as in UnStereoEval (section 6, footnote 7); its
    authors' own check is --pairs 250 --raters vet. With --per-pair each pair has only so many.

    Example: plumbline benchmark export-ratings use-5 --raters ana,ben,cleo --per-pair 2
    """

    reads = "benchmark_pair"

    name: BenchmarkName
    pairs: Annotated[
        int, Field(ge=1, le=1_000_000, description="Pairs to judge, drawn at random.")
    ] = 100
    raters: Annotated[str, Field(description="Number of raters, or names as ana,ben.")] = "6"
    per_pair: Annotated[
        int | None,
        Field(ge=1, le=1_000, description="Raters of each pair; default: all of them."),
    ] = None
    seed: Annotated[Seed, Field(description="Seed of the draw, orders and sides.")] = 0
    questions: Annotated[
        InputFile | None,
        Field(description="TOML file with questions of your own (docs/ratings.md)."),
    ] = None
    with_unnatural: Annotated[bool, Field(description="Draw also from pairs judged unnatural.")] = (
        False
    )
    out: Annotated[
        OutputDirectory | None, Field(description="Directory; default: out/ratings/NAME.")
    ] = None

    def run(self, context: Context) -> Done:
        wordings, named = questions.load(self.questions), sheets.raters(self.raters)
        arguments = (self.pairs, named, self.per_pair, self.seed, self.with_unnatural)
        design = sheets.RatingDesign(*arguments)
        out = self.out or Path("out/ratings") / segment(self.name)
        made = sheets.make(context.store, self.name, design, wordings, out, context.run_id)
        said = [f"{self.name}: {design.named(made.n_pairs)}"]
        if design.each < 5:
            said.append("No share by at least five raters: no pair has five")
        n_questions = len(wordings.questions)
        return Done(
            rows=[
                {"rater": rater, "n_pairs": len(rows), "n_questions": n_questions}
                for rater, rows in made.rows.items()
            ],
            said=said,
            wrote=("rating_sheet", "rating_question"),
            files=tuple(map(str, made.paths)),
            next="send each rater the .html or the .csv, then plumbline benchmark import-ratings "
            "FILE...",
            query="FROM rating_sheet WHERE benchmark = $benchmark ORDER BY rater, position",
            params={"benchmark": self.name},
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ImportRatings(Command):
    """Read raters' answers; those that can't be used are kept in `reject` with the reason.

    A rater's file replaces the same rater's earlier answers.

    Example: plumbline benchmark import-ratings back/rater-1.csv back/rater-2.csv
    """

    reads = "rating_sheet"

    files: Annotated[
        tuple[str, ...],
        Field(min_length=1, description="CSV files, one for each rater."),
        On(positional=True),
    ]

    def run(self, context: Context) -> Done:
        store = context.store
        files = [Path(file) for file in self.files]
        imported = answers.import_answers(store, files, context.run_id)
        said = list(map(str, imported))
        if any(one.rejects for one in imported):
            said.append("Reasons: plumbline sql \"FROM reject WHERE stage = 'ratings'\"")
        benchmarks = list(dict.fromkeys(one.benchmark for one in imported))
        for name in benchmarks:
            said += [": ".join(line) for line in rating_facts.people_say(store.root, name).items()]
        params = {"benchmarks": benchmarks}
        return Done(
            rows=rows_of(store.root, _AGREEMENT, params),
            said=said,
            wrote=("rating", "rating_agreement", "reject"),
            next=f"plumbline benchmark card {shlex.quote(benchmarks[0])}",
            query=_AGREEMENT,
            params=params,
        )


_AGREEMENT = """
SELECT benchmark, question, rater, n_answers, yes_share, equal_share, alpha_without
FROM rater_agreement WHERE list_contains($benchmarks, benchmark)
ORDER BY benchmark, question, rater
"""
