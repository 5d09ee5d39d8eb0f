"""Import people's judgements of pairs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.pairs.human_ratings import import_answers, people_say
from plumbline.pipelines.command.base import Command, Context, Done, On
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.query.connection import rows_of


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ImportRatings(Command):
    """Read raters' answers; those that can't be used are kept in `reject` with the reason.

    A file has the columns benchmark and pair_id, and one for each question, with yes or no. A
    rater's file replaces the same rater's earlier answers (docs/generation.md).

    Example: plumbline benchmark import-ratings back/rater-1.csv back/rater-2.csv
    """

    reads = "benchmark_pair"

    files: Annotated[
        tuple[str, ...],
        Field(min_length=1, description="CSV files, one for each rater."),
        On(positional=True),
    ]

    def run(self, context: Context) -> Done:
        store = context.store
        files = [Path(file) for file in self.files]
        imported = import_answers(store, files, context.run_id)
        said = list(map(str, imported))
        if any(one.rejects for one in imported):
            said.append("Reasons: plumbline sql \"FROM reject WHERE stage = 'ratings'\"")
        benchmarks = list(dict.fromkeys(one.benchmark for one in imported))
        for name in benchmarks:
            said += [": ".join(line) for line in people_say(store.root, name).items()]
        params = {"benchmarks": benchmarks}
        return Done(
            rows=rows_of(store.root, _AGREEMENT, params),
            said=said,
            wrote=("rating", "rating_agreement", "reject"),
            next=f"plumbline benchmark export {shlex.quote(benchmarks[0])}",
            query=_AGREEMENT,
            params=params,
        )


_AGREEMENT = """
SELECT benchmark, question, rater, n_answers, yes_share, equal_share, alpha_without
FROM rater_agreement WHERE list_contains($benchmarks, benchmark)
ORDER BY benchmark, question, rater
"""
