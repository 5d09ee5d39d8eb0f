"""`plumbline measure`: every metric of what is scored."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic.dataclasses import dataclass

from plumbline.eval_workers.statistics.metrics import WRITTEN, measure
from plumbline.eval_workers.statistics.options import MeasureOptions
from plumbline.pipelines.command.base import Command, Context, Done
from plumbline.pipelines.report.metrics import measured
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.query.connection import connect, model_labels, query, rows_of, sql
from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Measure(MeasureOptions, Command):
    """Compute US, PD, AuFC, gaps and how far models follow their corpus.

    Where an n-gram model of the corpus has scores (`plumbline train --preset 5gram`), also whether
    the corpus predicts log ratios beyond frequency, n-grams and length.

    Example: plumbline measure --eta 0.5 --eta 0.65
    """

    reads = "pair_score"
    deployable = True

    def run(self, context: Context) -> Done:
        """Compute all of them anew, also those of scores that are gone."""
        store = context.store
        rows = measure(store, context.run_id, self)
        if not rows.num_rows:
            return Done(said=["Nothing to measure yet: run `plumbline score` first"])
        connection = connect(store.root, "model_label " + sql("report/metric"))
        found = query(connection, "report/metric")
        few = {r["benchmark"] for r in found.to_pylist() if r["cluster_values"]}
        return Done(
            rows=measured(found, store.read("control"), model_labels(connection)),
            said=[*_lines(store, sorted(few)), f"{rows.num_rows:,} metrics"],
            wrote=WRITTEN,
            next="plumbline report",
            query="FROM metric_value ORDER BY ALL",
        )


def _lines(store: Store, few: list[str]) -> Iterator[str]:
    yield "low and high: 95% intervals; ranks: 95% sets, for all models of a benchmark"
    if few:
        yield (
            "no interval below five words, frames or other clusters, nor a claim: "
            f"{', '.join(few)}; `cluster_values` of metric_value has their figures"
        )
    for row in rows_of(store, sql("report/score")):
        n_scored = row["n_scored"] - row["n_unknown"] - row["n_unnatural"]
        if n_scored < (row["n_usable"] or 0):
            yield (
                f"{row['model']} has scores of {n_scored:,} of the {row['n_usable']:,} pairs "
                f"of {row['benchmark']}; figures are of these. plumbline score does the others"
            )
