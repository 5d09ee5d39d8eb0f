"""Every metric, ours and those of other packages, computed and written to ``metric_value``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import connect, query, sql, sql_names
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store, cast


@dataclass(frozen=True)
class MeasureOptions:
    """What the metrics' ``$params`` are set to.

    Attributes:
        epsilon_nats: a pair counts as unstereotypical up to this \\|log ratio\\|; ln 1.65 as
            published by UnStereoEval.
        etas: constraints on \\|MaxPMI\\|, in nats; besides them every subset with a defined MaxPMI.
        log_bases: bases of the log ratios that AuFC is integrated over (10 in their Table 19).
        sd_n_pairs: pairs that US's standard deviation is taken over instead of the subset's own
            number (their Tables 8-11 print all with that of one benchmark).

    Raises ``UsageProblem`` for values that are not finite, negative, a base of 1 or less, or
    fewer than one pair.

    >>> round(MeasureOptions().epsilon_nats, 4)
    0.5008
    """

    epsilon_nats: float = math.log(1.65)
    etas: tuple[float, ...] = (0.5, 0.65, 0.8, 1.0)
    log_bases: tuple[float, ...] = (math.e,)
    sd_n_pairs: int | None = None

    def __post_init__(self) -> None:
        for name, value in [("epsilon", self.epsilon_nats), *(("eta", eta) for eta in self.etas)]:
            if not (math.isfinite(value) and value >= 0):
                raise UsageProblem(f"{name} {value}", "expected a number of nats, 0 or more")
        for base in self.log_bases:
            if not (math.isfinite(base) and base > 1):
                raise UsageProblem(f"log base {base}", "expected a number above 1")
        if self.sd_n_pairs is not None and self.sd_n_pairs < 1:
            raise UsageProblem(f"sd pairs {self.sd_n_pairs}", "expected 1 or more")

    def params(self) -> dict[str, object]:
        """The options as DuckDB parameters; repeated etas count once, in ascending order.

        >>> MeasureOptions(etas=(0.8, 0.5, 0.8)).params()["etas"]
        [0.5, 0.8]
        """
        etas = sorted({float(eta) for eta in self.etas})
        bases = sorted({float(base) for base in self.log_bases})
        return {
            "epsilon_nats": self.epsilon_nats,
            "etas": etas,
            "log_bases": bases,
            "sd_n_pairs": self.sd_n_pairs,
        }


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
    for benchmark in sorted(stale | set(rows["benchmark"].unique().to_pylist())):
        of_benchmark = rows.filter(pc.equal(rows["benchmark"], benchmark))
        store.replace("metric_value", of_benchmark, {"benchmark": benchmark}, run_id)
    return rows
