"""All that the report reads from the warehouse, through the queries ``sql/report_*.sql``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.pipelines.report.model import Row
from plumbline.pipelines.report.queries import as_sql
from plumbline.warehouse.query.connection import connect, model_labels, query

if TYPE_CHECKING:
    import duckdb

#: Words and pairs listed a side.
TOP_WORDS, TOP_PAIRS = 15, 20
#: A word's delta is shown when it was seen this often with the words of either gender.
MIN_PAIRS = 5
_PARAMS: dict[str, object] = {"min_pairs": MIN_PAIRS}
#: Parameters of single queries.
_OWN: dict[str, dict[str, object]] = {
    "word": {"top": TOP_WORDS},
    "word_difference": {"top": TOP_WORDS},
    "pair": {"top": TOP_PAIRS},
}
#: What tells one fit from another.
_FIT = ("subset", "model_key", "benchmark", "corpus", "contrast", "options")


@dataclass(frozen=True)
class Facts:
    """Rows of each query; see the file of the same name for the grain."""

    ledger: list[Row]
    failed_shard: list[Row]
    reject: list[Row]
    delta: list[Row]
    word: list[Row]
    kept: list[Row]
    curve: list[Row]
    metric: list[Row]
    pair: list[Row]
    fit: list[Row]
    score: list[Row]
    model: list[Row]
    run: list[Row]
    connection: duckdb.DuckDBPyConnection
    labels: Mapping[str, str]
    answers: dict[str, list[Row]] = field(default_factory=dict)

    def metrics(self, name: str, **wanted: object) -> list[Row]:
        """Rows of ``metric_value`` of one metric whose columns have the wanted values."""
        return [
            row
            for row in self.metric
            if row["metric"] == name and all(row[k] == v for k, v in wanted.items())
        ]

    def points(self, fit: Row) -> list[Row]:
        """The points of a row of ``fit``."""
        return _rows(self.connection, "point", {k: fit[k] for k in _FIT})

    def sql(
        self,
        name: str,
        where: Mapping[str, object] | None = None,
        but: Mapping[str, object] | None = None,
        **params: object,
    ) -> str:
        """A query as text to run, narrowed as ``as_sql`` does; for a point, ``where`` is a fit."""
        if name == "point" and where is not None:
            return as_sql(name, {k: where[k] for k in _FIT})
        return as_sql(name, _params(name, params), where, but)

    def ask(self, name: str, **params: object) -> list[Row]:
        """Rows of a query that only the parts with its data ask; models go by their labels."""
        asked = f"{name} {sorted(params.items())}"
        if asked not in self.answers:  # the opening and the sections ask the same
            rows = _rows(self.connection, name, _params(name, params))
            self.answers[asked] = [_labelled(row, self.labels) for row in rows]
        return self.answers[asked]


def read_facts(root: Path) -> Facts:
    """Run every query of the report on a warehouse; models go by their labels."""
    connection = connect(root)
    connection.execute("SET enable_progress_bar = false")
    labels = model_labels(connection)

    def rows(name: str) -> list[Row]:
        found = _rows(connection, name, _params(name, {}))
        return [_labelled(row, labels) for row in found]

    return Facts(
        ledger=rows("ledger"),
        failed_shard=rows("failed_shard"),
        reject=rows("reject"),
        delta=rows("delta"),
        word=rows("word"),
        kept=rows("kept"),
        curve=rows("curve"),
        metric=rows("metric"),
        pair=rows("pair"),
        fit=rows("fit"),
        score=rows("score"),
        model=rows("model"),
        run=rows("run"),
        connection=connection,
        labels=labels,
    )


def _params(name: str, given: Mapping[str, object]) -> dict[str, object]:
    return {**_PARAMS, **_OWN.get(name, {}), **given}


def _labelled(row: Row, labels: Mapping[str, str]) -> Row:
    label = labels.get(row.get("model_key", ""))
    return {**row, "model": label} if label else row


def _rows(connection: duckdb.DuckDBPyConnection, name: str, params: dict[str, object]) -> list[Row]:
    found: list[Row] = query(connection, f"report/{name}", params).to_pylist()
    return found
