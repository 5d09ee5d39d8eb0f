"""Query the warehouse for the report, and look up the training texts of models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from fnmatch import filter as filter_names
from pathlib import Path
from typing import Any

from plumbline.eval_workers.models.model_texts import Relation, relation
from plumbline.pipelines.report.rows import FIT, Row, Rows, filled, same
from plumbline.warehouse.errors import UsageProblem, did_you_mean
from plumbline.warehouse.query.connection import arrow_rows, connect, model_labels, opened, sql
from plumbline.warehouse.storage.opening import OpenWarehouse
from plumbline.warehouse.wordlists import from_rows, side_names

_CONSTRAINED = "SELECT DISTINCT benchmark, corpus FROM pair_association ORDER BY ALL;"
#: For each option of `plumbline report`: the columns that the option limits.
_COLUMNS = {
    "benchmark": ("benchmark", "probe_set"),
    "model": ("model_key", "reference_key"),
    "corpus": ("corpus", "corpus_a", "corpus_b"),
}
_SETS = _COLUMNS["benchmark"]


class Facts:
    """Run queries on one version of a warehouse for the report, and cache their results.

    If a row has a ``model_key``, its column ``model`` is set to the model's label. Rows about old
    versions of a named model are left out.

    Raises ``BadInput`` if ``warehouse`` is not a warehouse.
    """

    def __init__(self, warehouse: str | Path | OpenWarehouse) -> None:
        self.warehouse, self._rows_by_query = opened(warehouse).pinned(), dict[str, Rows]()
        self.connection = connect(self.warehouse)
        # Change this setting only if needed: in a notebook, DuckDB needs ipywidgets to change it.
        bar = "enable_progress_bar"
        if self.connection.sql(f"SELECT current_setting('{bar}')").fetchall() == [(True,)]:
            self.connection.execute(f"SET {bar} = false")
        self._labels, self._has_points = model_labels(self.connection), False
        replaced = "SELECT model_key FROM model_version WHERE NOT is_latest"
        self._replaced = [key for (key,) in self.connection.execute(replaced).fetchall()]
        self._limits: dict[str, object] = {}
        self._scored_by: tuple[str | None, ...] = ()

    def within(self, **values: object) -> Facts:
        """Return facts limited to rows with the given column values, as in ``Rows.where``.

        If the rows of a query lack a column, that column's limit has no effect. If models are
        limited, rows with a column ``n_models`` are left out, since they are about several models.
        """
        part = copy(self)
        part._limits = {**self._limits, **values}
        return part

    def rows(self, name: str, **params: object) -> Rows:
        """Return the rows of the query ``sql/report/<name>.sql`` with parameters filled in.

        Raises ``KeyError`` if a parameter has no value.
        """
        return self.query(filled(sql(f"report/{name}"), params))

    def query(self, text: str) -> Rows:
        """Run any SQL query on the warehouse. Leaves out rows outside the limits of ``within``."""
        if text not in self._rows_by_query:
            found = arrow_rows(self.connection, text).to_pylist()
            rows = Rows(map(self._labelled, found), text)
            for column in {"model_key", "reference_key"}.intersection(rows[0] if rows else ()):
                for key in self._replaced:
                    rows = rows.but(**{column: key})
            self._rows_by_query[text] = rows
        rows = self._rows_by_query[text]
        if not rows:
            return rows
        if "model_key" in self._limits and "n_models" in rows[0]:
            return rows.only(lambda _: False)
        if self._scored_by and "model_key" in rows[0] and rows[0].keys().isdisjoint(_SETS):
            rows = rows.where(model_key=self._scored_by)
        return rows.where(**{c: v for c, v in self._limits.items() if rows and c in rows[0]})

    def metrics(self, name: str, **wanted: object) -> Rows:
        """Return the rows of ``metric_value`` for a metric, if they have the ``wanted`` values."""
        return self.rows("metric").where(metric=name, **wanted)

    def contrast_sides(self, corpus: str, contrast: str) -> tuple[str, str]:
        """Return the names of a contrast's sides, such as she (lean above 0) and he (below 0)."""
        rows = self.query("FROM word_list ORDER BY ALL").where(corpus=corpus)
        lists = [from_rows(list_rows) for list_rows in rows.groups("word_list")]
        return side_names(contrast, lists)

    def points(self, fit: Row) -> Rows:
        """Return the points of a fit, which is a row of view ``fit``.

        Returns an empty ``Rows`` if there are fewer than two points, or if a point isn't finite.
        """
        if not self._has_points:
            # Each query of the view would compute all points again, so copy them to a table.
            self.connection.execute(
                "CREATE TEMP TABLE IF NOT EXISTS fit_point AS FROM main.fit_point"
            )
            self._has_points = True
        points = self.rows("point", **same(fit, FIT))
        is_finite = all(math.isfinite(p["x_nats"]) and math.isfinite(p["y_nats"]) for p in points)
        return points if len(points) > 1 and is_finite else Rows()

    def _labelled(self, row: Row) -> Row:
        label = self._labels.get(row.get("model_key", ""))
        return {**row, "model": label} if label else row


def narrowed(facts: Facts, patterns: Mapping[str, Sequence[str]]) -> Facts:
    """Return facts about only those benchmarks, models and corpora whose names match patterns.

    ``patterns`` has patterns for ``benchmark``, ``model`` and ``corpus``. Without patterns for
    ``corpus``, corpora are left out unless a remaining result is compared with them. Comparisons of
    corpora are then left out too. Rows whose benchmark, model or corpus is NULL, or whose model or
    corpus is empty, are kept. To keep rows with an empty benchmark, give the pattern "". Patterns
    that match every name have no effect. Raises ``UsageProblem`` if a pattern matches nothing.
    """
    columns: dict[str, Any] = {}
    listed = facts.rows("named")
    for option, option_patterns in patterns.items():
        keys = _named(option, option_patterns, listed)
        if keys and {*keys} < {"", *(row["key"] for row in listed.where(option=option))}:
            unnamed = (None,) if option == "benchmark" else ("", None)
            columns |= dict.fromkeys(_COLUMNS[option], keys + unnamed)
    part = facts.within(**columns)
    scored = part.rows("score") if columns else Rows()
    if "benchmark" in columns:
        part._scored_by = (*(row["model_key"] for row in scored), "", None)
    if columns and not patterns.get("corpus"):
        names = tuple(row["benchmark"] for row in scored)
        based = (*part.rows("slope"), *facts.query(_CONSTRAINED).where(benchmark=names))
        part = part.within(corpus=(*sorted({r["corpus"] for r in based}), "", None), corpus_a=())
    return part


def _named(option: str, patterns: Sequence[str], rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the keys of the benchmarks, models or corpora whose names match the patterns.

    A pattern may leave out the owner in a name such as ``owner/model``. ``rows`` come from
    ``sql/report/named.sql``. Raises ``UsageProblem`` if a pattern matches no name.
    """
    names = {"": ""} | {str(r["key"]): str(r["name"]) for r in rows if r["option"] == option}
    keys = list[str]()
    for pattern in patterns:
        matches = [k for k, n in names.items() if filter_names([n, n.rpartition("/")[2]], pattern)]
        if not matches:
            listed = f"there is {', '.join(filter(None, names.values())) or 'none yet'}"
            fix = did_you_mean(pattern, names.values(), listed)
            raise UsageProblem(f"--{option} {pattern}", "matches nothing in this warehouse", fix)
        keys += matches
    return tuple(dict.fromkeys(keys))


class TrainingTexts:
    """What is known about a warehouse's models: training text, family and size."""

    def __init__(self, facts: Facts) -> None:
        self._models = {row["model_key"]: row for row in facts.rows("model")}

    def _of(self, row: Row, column: str) -> Any:
        return self._models.get(row["model_key"], {}).get(column)

    def relation(self, row: Row) -> Relation:
        """Return how the training text of a row's model relates to the row's corpus.

        For a model trained in this warehouse, the training corpus is recorded. For other models,
        the relation is looked up by the model's name. If the model has an adapter, the relation is
        `unknown`, since the adapter was trained on other text.
        """
        if trained_on := self._of(row, "trained_on"):
            return "same" if trained_on == row["corpus"] else "other"
        if self._of(row, "adapter"):
            return "unknown"
        name = str(self._of(row, "model") or "").partition(" (")[0]
        return relation(name, row["corpus"])

    def are_ours(self, rows: Sequence[Row]) -> bool:
        return all(self._of(row, "trained_on") for row in rows)

    def family(self, row: Row) -> str:
        return str(self._of(row, "family") or "")

    def place(self, row: Row) -> tuple[bool, str, int]:
        """Return a key that sorts models by family and size; models without a family come last."""
        return not self.family(row), self.family(row).lower(), self.n_parameters(row) or 0

    def n_parameters(self, row: Row) -> int | None:
        n: int | None = self._of(row, "n_parameters")
        return n

    def families(self, rows: Sequence[Row]) -> dict[str, Rows]:
        """Group rows by model family, sorted by name. The last key, "", is for unknown families."""
        names = dict.fromkeys(map(self.family, sorted(rows, key=self.place)))
        return {name: Rows(row for row in rows if self.family(row) == name) for name in names}
