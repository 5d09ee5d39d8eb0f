"""Every metric, ours and those of other packages, computed and written to ``metric_value``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from plumbline.pipelines.settings import MeasureOptions
from plumbline.warehouse.query.connection import connect, query, sql, sql_names
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store, cast


def compute(
    root: Path, options: MeasureOptions, run_id: str, metrics: Sequence[str] | None = None
) -> pa.Table:
    """Metrics of a warehouse as rows of ``metric_value``, sorted by key; nothing is written.

    ``metrics`` are their names, by default of all. An empty warehouse gives no rows.
    """
    names = sql_names("metrics") if metrics is None else [f"metrics/{name}" for name in metrics]
    connection = connect(root, "".join(map(sql, names)))
    schema = TABLES["metric_value"]
    parts = []
    for name in names:
        rows = query(connection, name, options.params())
        parts.append(cast(schema, rows.append_column("run_id", pa.array([run_id] * len(rows)))))
    table = pa.concat_tables(parts)
    return table.sort_by([(column, "ascending") for column in schema.key])


def measure(store: Store, run_id: str, options: MeasureOptions | None = None) -> pa.Table:
    """Compute every metric and replace ``metric_value`` with the result, benchmark by benchmark.

    Returns the rows written. Benchmarks that have no metrics any more lose their old ones.
    """
    rows = compute(store.root, options or MeasureOptions(), run_id)
    stale = set(store.read("metric_value")["benchmark"].unique().to_pylist())
    with store.together(run_id, "measure"):
        for benchmark in sorted(stale | set(rows["benchmark"].unique().to_pylist())):
            of_benchmark = rows.filter(pc.equal(rows["benchmark"], benchmark))
            store.replace("metric_value", of_benchmark, {"benchmark": benchmark}, run_id)
    return rows
