"""`plumbline measure`: compute all metrics of the scored pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator

from plumbline.eval_workers.scoring.measure import MeasureOptions, measure
from plumbline.pipelines.command.base import WARNING, Command, Context, Done
from plumbline.pipelines.report.facts import Facts, TrainingTexts
from plumbline.pipelines.report.metric_tables import LEGEND, controlled, few_pairs, measured
from plumbline.pipelines.report.rows import set_name
from plumbline.pipelines.report.sentences import (
    check_changes,
    lack,
    unscored,
    version_changed,
    version_changes,
)


class Measure(MeasureOptions, Command):
    """Compute US, PD, AuFC and gaps, and compare models' preferences with each counted corpus.

    docs/methods.md defines the metrics. Also predicts each model's preferences from n-grams,
    word frequency and sentence length, and tests whether adding the leans of words helps. This test
    needs scores of an n-gram model of the corpus (`train --preset 5gram`).

    Example: plumbline measure --eta 0.5 --eta 0.65
    """

    reads = "pair_score"

    def run(self, context: Context) -> Done:
        """Recompute all metrics, and delete metrics whose scores were deleted."""
        store = context.store
        rows = measure(store, context.run_id, self)
        if not rows.num_rows:
            return Done(said=["Nothing to measure yet: run `plumbline score` first"])
        facts = Facts(store)
        metrics = facts.rows("metric")
        of_all = metrics.where(subset="all", metric="us")
        told = [f"{set_name(r)}: preferences can't be told{lack(r)}" for r in of_all if lack(r)]
        changes = version_changes(facts)
        most = math.inf if self.most_change is None else self.most_change
        warned, failed = check_changes(changes, most)
        return Done(
            rows=measured(metrics, TrainingTexts(facts)),
            said=[
                *_lines(facts),
                *controlled(facts.rows("control")),
                *map(version_changed, changes),
                *(WARNING + line for line in warned),
                *dict.fromkeys(told),
                *filter(None, [few_pairs(of_all)]),
                f"{rows.num_rows:,} metrics",
            ],
            next="plumbline report",
            query="FROM metric_value ORDER BY ALL",
            failed=failed,
        )


def _lines(facts: Facts) -> Iterator[str]:
    yield f"{LEGEND}; reliability: share of the leans' variance that isn't error"
    yield (
        "in brackets: 95% intervals; those of ranks hold with 95% confidence for all models of a "
        "benchmark at once"
    )
    for row in facts.rows("score"):
        if row["n_missing"]:
            yield (
                f"{WARNING}{row['model']} has scores of {row['n_usable'] - row['n_missing']:,} of "
                f"the {row['n_usable']:,} pairs of {row['benchmark']}; its figures use only these. "
                f"{unscored(row)}"
            )
