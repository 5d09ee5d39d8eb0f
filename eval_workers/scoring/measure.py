"""Compute all metrics, including metrics that other packages add, and store the values."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from plumbline.warehouse.options import STRICT
from plumbline.warehouse.query.connection import arrow_rows, connect, sql, sql_names
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.data_files import cast
from plumbline.warehouse.storage.opening import OpenWarehouse
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress

if TYPE_CHECKING:
    import pyarrow as pa

#: Computes a metric's values and intervals from one row per pair.
_OF_PAIRS = "WITH pair AS (\n{}\n)\nFROM metric_of_pairs('pair')"


def _rule(text: str) -> str:
    """Check the rule of ``--fail-if``. Raise ``ValueError`` if it is invalid."""
    if not re.fullmatch(r"(pd changes by more than \d+(\.\d+)?)?", text):
        raise ValueError("should be a rule such as 'pd changes by more than 5'")
    return text


@dataclass(frozen=True, config=STRICT)
class MeasureOptions:
    """Parameters of the metrics' SQL queries, and the rule of ``--fail-if``.

    The default ``epsilon``, ln 1.65, is UnStereoEval's. Each ``eta`` adds a subset: the pairs whose
    |MaxPMI| is at most ``eta``. One more subset has all pairs with a defined MaxPMI. To compute
    AuFC as in Table 19 of the UnStereoEval paper, set ``log_base`` to 10.

    >>> round(MeasureOptions().epsilon, 4)
    0.5008
    """

    epsilon: Annotated[
        float,
        Field(
            ge=0,
            le=1_000,
            description="Largest |log ratio| that doesn't count as a preference, in nats.",
        ),
    ] = math.log(1.65)
    eta: Annotated[
        tuple[Annotated[float, Field(ge=0, le=1_000)], ...],
        Field(description="Also measure pairs with |MaxPMI| up to this value (nats). Repeatable."),
    ] = (0.5, 0.65, 0.8, 1.0)
    log_base: Annotated[
        tuple[Annotated[float, Field(gt=1, le=1_000_000)], ...],
        Field(description="Base of the logarithms used for AuFC. Repeatable."),
    ] = (math.e,)
    fail_if: Annotated[
        str,
        AfterValidator(_rule),
        Field(
            description="With 'pd changes by more than 5', fail if a named model's PD rose or fell "
            "by more than 5 points since its previous version, according to the whole 95% interval "
            "of the change.",
        ),
    ] = ""

    @property
    def most_change(self) -> float | None:
        """Largest change of PD that ``fail_if`` allows, in points. ``None`` if there is no rule."""
        return float(self.fail_if.rpartition(" ")[2]) if self.fail_if else None

    def params(self) -> dict[str, object]:
        """Return the options as DuckDB parameters. Lists are sorted and have no duplicates.

        >>> MeasureOptions(eta=(0.8, 0.5, 0.8)).params()["etas"]
        [0.5, 0.8]
        """
        return {
            "epsilon_nats": self.epsilon,
            "etas": sorted(set(self.eta)),
            "log_bases": sorted(set(self.log_base)),
        }


def compute(root: Path | OpenWarehouse, options: MeasureOptions, run_id: str) -> pa.Table:
    """Compute all metrics. Return rows of ``metric_value``, sorted by key, without storing them.

    An empty warehouse gives no rows.
    """
    import pyarrow as pa

    queries = [_query_of(sql(name)) for name in sql_names("metrics")]
    connection = connect(root, "\n".join(queries))
    schema = TABLES["metric_value"]
    parts = []
    with progress("measure", "metrics") as update:
        for n_done, text in enumerate(queries):
            update(n_done, len(queries))
            rows = _with_p(arrow_rows(connection, text, options.params()))
            parts.append(cast(schema, rows, run_id=run_id))
        update(len(queries), len(queries))
    return pa.concat_tables(parts).sort_by([(column, "ascending") for column in schema.key])


def _query_of(metric: str) -> str:
    """Return the query that computes a metric. ``metric`` is the SQL of the metric's file.

    If the first line says that each row is a pair, add the macro that computes the values.
    """
    is_of_pairs = metric.partition("\n")[0].endswith("pair_id")
    return _OF_PAIRS.format(metric.strip().removesuffix(";")) if is_of_pairs else metric


def _with_p(rows: pa.Table) -> pa.Table:
    """If there is a column ``statistic`` (Student's t), replace it with the two-sided p-value."""
    import pyarrow as pa

    if "statistic" not in rows.column_names:
        return rows
    from scipy.special import stdtr

    statistic, df = (
        rows[name].cast(pa.float64()).to_numpy(zero_copy_only=False) for name in ("statistic", "df")
    )
    p = pa.array(2 * stdtr(df, -statistic), from_pandas=True)
    return rows.drop_columns("statistic").append_column("p", p)


@progress("measure")
def measure(store: Store, run_id: str, options: MeasureOptions | None = None) -> pa.Table:
    """Compute all metrics, replace the rows of ``metric_value``, and return the new rows.

    Also replaces the rows of `model_rank` and `benchmark_power`. If there is an n-gram model, also
    replaces the rows of `control`.
    """
    import pyarrow.compute as pc

    from plumbline.eval_workers.scoring.controls import effects_of_all
    from plumbline.eval_workers.scoring.ranks_and_power import model_ranks, powers
    from plumbline.eval_workers.scoring.scored_pairs import scored

    options = options or MeasureOptions()
    warehouse = store.pinned()
    rows = compute(warehouse, options, run_id)
    every = list(scored(warehouse, options.epsilon))
    # Without an n-gram model, `control` has no rows, so its query would waste time.
    has_ngrams = "ngram" in warehouse.read("model")["backend"].to_pylist()
    others = {
        "model_rank": [row for pairs in every for row in model_ranks(pairs, options.epsilon)],
        "benchmark_power": [row for pairs in every for row in powers(pairs)],
        "control": effects_of_all(warehouse) if has_ngrams else [],
    }
    tables = {"metric_value": rows} | {
        name: cast(TABLES[name], made, run_id=run_id) for name, made in others.items()
    }
    with store.transaction(run_id, "measure"):
        for name, table in tables.items():
            for benchmark in sorted(table["benchmark"].unique().to_pylist()):
                of_benchmark = table.filter(pc.equal(table["benchmark"], benchmark))
                store.replace(name, of_benchmark, {"benchmark": benchmark}, run_id)
    return rows
