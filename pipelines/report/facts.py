"""Query results for the report's sections: of ``sql/report/*.sql``, or of any other query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.pipelines.report.rows import Row, Rows, filled
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import (
    arrow_rows,
    connect,
    model_labels,
    opened,
    query,
    sql,
)
from plumbline.warehouse.storage.opening import OpenWarehouse

if TYPE_CHECKING:
    import pyarrow as pa

#: Columns that identify a fit.
_FIT = ("subset", "model_key", "benchmark", "groups", "corpus", "contrast", "options")

#: Option -> the columns with the keys of the benchmarks, models or corpora that it selects.
_COLUMNS = {
    "benchmark": ("benchmark",),
    "model": ("model_key", "reference_key"),
    "corpus": ("corpus", "corpus_a", "corpus_b"),
}


class Facts:
    """Results of queries on one version of a warehouse; each query runs once.

    Rows with a ``model_key`` get that model's label in column ``model``.

    Raises ``BadInput`` when ``warehouse`` is not a warehouse.
    """

    def __init__(self, warehouse: str | Path | OpenWarehouse) -> None:
        self.warehouse, self._rows_by_query = opened(warehouse).pinned(), dict[str, Rows]()
        self.connection = connect(self.warehouse)
        bar = "enable_progress_bar"  # already off, and fixed, in a notebook without ipywidgets
        if self.connection.sql(f"SELECT current_setting('{bar}')").fetchall() == [(True,)]:
            self.connection.execute(f"SET {bar} = false")
        self._labels, self._has_points = model_labels(self.connection), False
        self._limits: dict[str, object] = {}

    def within(self, **values: object) -> Facts:
        """Facts limited to rows whose columns have these values, as for ``Rows.where``.

        Rows without such a column stay, except that a limit on models leaves out rows that sum up
        several models (those with a column ``n_models``).
        """
        part = copy(self)
        part._limits = {**self._limits, **values}
        return part

    @property
    def whole(self) -> Facts:
        """The facts about everything that the warehouse holds."""
        part = copy(self)
        part._limits = {}
        return part

    def rows(self, name: str, **params: object) -> Rows:
        """Rows of ``sql/report/<name>.sql``, whose first line says what a row is.

        Raises ``KeyError`` for a parameter of the query without a value.
        """
        file = f"report/{name}"
        return self._once(filled(sql(file), params), lambda: query(self.connection, file, params))

    def query(self, text: str) -> Rows:
        """Rows of a query that isn't a file of ``sql/report``, over any tables and views."""
        return self._once(text, lambda: arrow_rows(self.connection, text))

    def metrics(self, name: str, **wanted: object) -> Rows:
        """Rows of ``metric_value`` of one metric, where columns have the ``wanted`` values."""
        return self.rows("metric").where(metric=name, **wanted)

    def points(self, fit: Row) -> Rows:
        """The points of a row of view ``fit``."""
        if not self._has_points:
            # The view computes all points at each query: store them in a table that shadows it.
            self.connection.execute(
                "CREATE TEMP TABLE IF NOT EXISTS fit_point AS FROM main.fit_point"
            )
            self._has_points = True
        return self.rows("point", **{column: fit[column] for column in _FIT})

    def _once(self, text: str, run: Callable[[], pa.Table]) -> Rows:
        """The rows of a query that are within the limits; ``run`` runs it the first time."""
        if text not in self._rows_by_query:
            self._rows_by_query[text] = Rows(map(self._labelled, run().to_pylist()), text)
        rows = self._rows_by_query[text]
        columns = {c: value for c, value in self._limits.items() if rows and c in rows[0]}
        if rows and "model_key" in self._limits and "n_models" in rows[0]:
            return rows.only(lambda _: False)
        return rows.where(**columns) if columns else rows

    def _labelled(self, row: Row) -> Row:
        label = self._labels.get(row.get("model_key", ""))
        return {**row, "model": label} if label else row


def narrowed(facts: Facts, patterns: Mapping[str, Sequence[str]]) -> Facts:
    """Facts limited by patterns for ``benchmark``, ``model`` and ``corpus``, if there are any.

    Rows without a benchmark, model or corpus stay, such as metrics that need no text. Raises
    ``UsageProblem`` for a pattern that matches nothing.
    """
    columns: dict[str, object] = {}
    for option, option_patterns in patterns.items():
        if option_patterns:
            keys = named(option, option_patterns, facts.rows("named"))
            columns |= dict.fromkeys(_COLUMNS[option], (*keys, "", None))
    return facts.within(**columns)


def named(option: str, patterns: Sequence[str], rows: Sequence[Row]) -> tuple[str, ...]:
    """The keys whose names match an option's patterns, from rows of ``sql/report/named.sql``.

    Raises ``UsageProblem``, which lists all names, for a pattern that matches none.
    """
    names = {str(r["key"]): str(r["name"]) for r in rows if r["option"] == option}
    keys = list[str]()
    for pattern in patterns:
        matches = [key for key, name in names.items() if _is_named(name, pattern)]
        if not matches:
            listed = ", ".join(names.values()) or "none yet"
            raise UsageProblem(f"--{option} {pattern}", "names nothing here", f"there is {listed}")
        keys += matches
    return tuple(dict.fromkeys(keys))


def _is_named(name: str, pattern: str) -> bool:
    """True if a pattern matches a name, with or without the owner before it.

    >>> _is_named("EleutherAI/pythia-70m", "pythia-*"), _is_named("a/gpt2", "a/*")
    (True, True)
    """
    return fnmatchcase(name, pattern) or fnmatchcase(name.rpartition("/")[2], pattern)
