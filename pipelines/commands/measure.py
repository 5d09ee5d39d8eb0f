"""`plumbline measure`: every metric of the scored pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from plumbline.eval_workers.scoring.measure import MeasureOptions, measure
from plumbline.pipelines.command.base import WARNING, Command, Context, Done
from plumbline.pipelines.command.fields import Benchmarks
from plumbline.pipelines.report.facts import Facts, named
from plumbline.pipelines.report.metric_tables import few_pairs, measured
from plumbline.pipelines.report.rows import Rows
from plumbline.pipelines.report.sentences import (
    check_changes,
    unscored,
    version_changed,
    version_changes,
)
from plumbline.warehouse.errors import ModelChanged, UsageProblem
from plumbline.warehouse.query.connection import connect, model_labels, query, rows_of, sql
from plumbline.warehouse.storage.store import Store

_EARLIER = "SELECT model_key FROM model_version WHERE NOT is_latest"
_EPSILONS = "SELECT DISTINCT benchmark, epsilon_nats FROM metric_value WHERE metric = 'us'"


class Measure(MeasureOptions, Command):
    """Compute US, PD, AuFC, gaps, and how closely models follow each counted corpus.

    If an n-gram model of the corpus (`plumbline train --preset 5gram`) was scored, also tests if
    the corpus predicts log ratios beyond frequency, n-grams and length. --benchmark measures only
    the named benchmarks, for all their models, and leaves the rows of others as they are.

    Example: plumbline measure --eta 0.5 --eta 0.65
    """

    reads = "pair_score"

    benchmark: Benchmarks = ()

    def run(self, context: Context) -> Done:
        """Recompute all metrics, and remove those whose scores are gone."""
        store = context.store
        names = self._named(store)
        rows = measure(store, context.run_id, self, names)
        if not rows.num_rows:
            return Done(said=["Nothing to measure yet: run `plumbline score` first"])
        connection = connect(store.root, "model_label " + sql("report/metric"))
        metrics, controls = query(connection, "report/metric"), store.read("control")
        if names:
            metrics, controls = (
                table.filter(pc.is_in(table["benchmark"], pa.array(names)))
                for table in (metrics, controls)
            )
        every = metrics.to_pylist()
        of_all = Rows(every).where(subset="all", metric="us")
        changes = [r for r in version_changes(Facts(store)) if not names or r["benchmark"] in names]
        warned, failed = list[str](), None
        if self.most_change is not None:
            try:
                warned = check_changes(changes, self.most_change)
            except ModelChanged as e:
                failed = e
        return Done(
            rows=measured(metrics, controls, model_labels(connection)),
            said=[
                *_lines(store, names),
                *map(version_changed, changes),
                *(WARNING + line for line in warned),
                *filter(None, [few_pairs(of_all)]),
                f"{rows.num_rows:,} metrics",
            ],
            next="plumbline report",
            query="FROM metric_value ORDER BY ALL",
            failed=failed,
        )

    def _named(self, store: Store) -> tuple[str, ...]:
        """Return the benchmarks to measure; empty for all.

        Raises ``UsageProblem`` if other benchmarks would keep metrics with another epsilon, since
        a report's figures would not be comparable.
        """
        if not self.benchmark:
            return ()
        names = named("benchmark", self.benchmark, rows_of(store, sql("report/named")))
        others = {
            row["epsilon_nats"]
            for row in rows_of(store, _EPSILONS)
            if row["benchmark"] not in names and row["epsilon_nats"] != self.epsilon
        }
        if others:
            left = f"leaves others at epsilon {', '.join(map(str, sorted(others)))}"
            fix = "give that as --epsilon, or measure all"
            raise UsageProblem(f"--benchmark with epsilon {self.epsilon}", left, fix)
        return names


def _lines(store: Store, names: Sequence[str]) -> Iterator[str]:
    yield (
        "in brackets: 95% intervals; for ranks, the ranks that a model may have, right for all "
        "models of a benchmark at once with 95% confidence"
    )
    earlier = {row["model_key"] for row in rows_of(store, _EARLIER)}
    for row in rows_of(store, sql("report/score")):
        if row["model_key"] in earlier or (names and row["benchmark"] not in names):
            continue
        if row["n_missing"]:
            yield (
                f"{WARNING}{row['model']} has scores of {row['n_usable'] - row['n_missing']:,} of "
                f"the {row['n_usable']:,} pairs of {row['benchmark']}; figures are of these. "
                f"{unscored(row)}"
            )
