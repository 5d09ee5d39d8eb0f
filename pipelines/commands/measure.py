"""`plumbline measure`: compute all metrics of the scored pairs."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.eval_workers.scoring.measure import MeasureOptions, measure
from plumbline.pipelines.command.base import WARNING, Command, Context, Done
from plumbline.pipelines.report.facts import Facts, TrainingTexts
from plumbline.pipelines.report.metric_tables import controlled, few_pairs, measured
from plumbline.pipelines.report.rows import Rows, set_name
from plumbline.pipelines.report.sentences import (
    check_changes,
    lack,
    unscored,
    version_changed,
    version_changes,
)
from plumbline.warehouse.errors import ModelChanged
from plumbline.warehouse.query.connection import arrow_rows, model_labels, rows_of, sql
from plumbline.warehouse.storage.store import Store

_EARLIER = "SELECT model_key FROM model_version WHERE NOT is_latest"


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
        metrics = arrow_rows(facts.connection, sql("report/metric"))
        of_all = Rows(metrics.to_pylist()).where(subset="all", metric="us")
        told = [f"{set_name(r)}: preferences can't be told{lack(r)}" for r in of_all if lack(r)]
        changes = version_changes(facts)
        warned, failed = list[str](), None
        if self.most_change is not None:
            try:
                warned = check_changes(changes, self.most_change)
            except ModelChanged as e:
                failed = e
        return Done(
            rows=measured(metrics, model_labels(facts.connection), TrainingTexts(facts)),
            said=[
                *_lines(store),
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


def _lines(store: Store) -> Iterator[str]:
    yield (
        "in brackets: 95% intervals; those of ranks hold with 95% confidence for all models of a "
        "benchmark at once"
    )
    earlier = {row["model_key"] for row in rows_of(store, _EARLIER)}
    for row in rows_of(store, sql("report/score")):
        if row["model_key"] not in earlier and row["n_missing"]:
            yield (
                f"{WARNING}{row['model']} has scores of {row['n_usable'] - row['n_missing']:,} of "
                f"the {row['n_usable']:,} pairs of {row['benchmark']}; its figures use only these. "
                f"{unscored(row)}"
            )
