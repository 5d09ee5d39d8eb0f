"""Every metric, ours and those of other packages, computed and written to the warehouse."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from plumbline.eval_workers.scoring.statistics import controls
from plumbline.eval_workers.scoring.statistics.measure_options import MeasureOptions
from plumbline.eval_workers.scoring.statistics.power import powers
from plumbline.eval_workers.scoring.statistics.ranks import model_ranks
from plumbline.eval_workers.scoring.statistics.scored import scored
from plumbline.warehouse.query.connection import arrow_rows, connect, query, sql, sql_names
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.opening import OpenWarehouse
from plumbline.warehouse.storage.store import Store, cast
from plumbline.warehouse.text.progress import progress

#: Tables that ``measure`` writes.
WRITTEN = ("metric_value", "model_rank", "benchmark_power", "control")
#: Query for the values and intervals of a metric that has one row per pair.
_OF_PAIRS = "FROM metric_of_pairs('pair')"


def compute(
    root: Path | OpenWarehouse,
    options: MeasureOptions,
    run_id: str,
    metrics: Sequence[str] | None = None,
) -> pa.Table:
    """Metrics of a warehouse as rows of ``metric_value``, sorted by key; nothing is written.

    ``metrics`` are names of metrics, by default all. An empty warehouse gives no rows.
    """
    names = sql_names("metrics") if metrics is None else [f"metrics/{name}" for name in metrics]
    connection = connect(root, "".join(map(sql, names)) + _OF_PAIRS)
    schema = TABLES["metric_value"]
    parts = []
    with progress("measure", "metrics") as update:
        for n_done, name in enumerate(names):
            update(n_done, len(names))
            rows = query(connection, name, options.params())
            if "pair_id" in rows.column_names:  # one row per pair: summarise them
                connection.register("pair", rows)
                rows = arrow_rows(connection, _OF_PAIRS)
            rows = _with_p(rows).append_column("run_id", pa.array([run_id] * len(rows)))
            parts.append(cast(schema, rows))
        update(len(names), len(names))
    return pa.concat_tables(parts).sort_by([(column, "ascending") for column in schema.key])


def _with_p(rows: pa.Table) -> pa.Table:
    """Rows with the two-sided p of their ``statistic``, by Student's t with their ``df``."""
    if "statistic" not in rows.column_names:
        return rows
    from scipy.special import stdtr

    statistic, df = (
        rows[name].cast(pa.float64()).to_numpy(zero_copy_only=False) for name in ("statistic", "df")
    )
    p = pa.array(2 * stdtr(df, -statistic), from_pandas=True)
    return rows.drop_columns("statistic").append_column("p", p)


@progress("measure")
def measure(
    store: Store,
    run_id: str,
    options: MeasureOptions | None = None,
    benchmarks: Collection[str] = (),
) -> pa.Table:
    """Compute every metric and replace ``metric_value`` by benchmark; returns its new rows.

    Also replaces `model_rank` and `benchmark_power`, and `control`, of scores with an n-gram model.
    With ``benchmarks``, only these are measured and replaced, with all models.
    """
    options = options or MeasureOptions()
    pinned = store.pinned()
    warehouse = pinned.of_benchmarks(benchmarks) if benchmarks else pinned
    rows = compute(warehouse, options, run_id)
    if benchmarks:
        rows = rows.filter(pc.is_in(rows["benchmark"], pa.array(sorted(benchmarks))))
    scored_pairs = list(scored(warehouse, options.epsilon))
    # Cheaper than queries that find nothing to join.
    has_ngrams = "ngram" in pinned.read("model")["backend"].to_pylist()
    others = {
        "model_rank": model_ranks(scored_pairs, options.epsilon),
        "benchmark_power": powers(scored_pairs),
        "control": controls.effects_of_all(warehouse) if has_ngrams else [],
    }
    with store.transaction(run_id, "measure"):
        _replace(store, "metric_value", rows, run_id)
        for name, made in others.items():
            table = cast(TABLES[name], [{**row, "run_id": run_id} for row in made])
            _replace(store, name, table, run_id)
    return rows


def _replace(store: Store, name: str, rows: pa.Table, run_id: str) -> None:
    for benchmark in sorted(rows["benchmark"].unique().to_pylist()):
        of_benchmark = rows.filter(pc.equal(rows["benchmark"], benchmark))
        store.replace(name, of_benchmark, {"benchmark": benchmark}, run_id)
