"""Every query that a page shows, run on its warehouse and compared with what stands above it."""

import csv
import io
import math
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb

from plumbline.pipelines.commands.sql import run_query
from plumbline.warehouse.query.connection import model_labels
from plumbline.warehouse.text.escape import as_csv, terminal


@dataclass
class Shown:
    """A table or plot as the page has it: rows of (text, figures), or the CSV of a plot."""

    name: str
    is_plot: bool
    sql: str = ""
    data: str = ""
    rows: list[list[tuple[str, list[float]]]] = field(default_factory=list)


class Reader(HTMLParser):
    """What a page shows, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.shown: list[Shown] = []
        self._into, self._summary = "", ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "details":
            self._into = {"sql": "sql", "data": "data"}.get(values.get("class", ""), "")
        elif tag == "summary":
            self._summary = ""
        elif tag == "figure":
            self.shown.append(Shown(values["id"], True))
        elif tag == "table":
            self.shown.append(Shown(self._summary.strip(), False))
        elif tag == "tr":
            self.shown[-1].rows.append([])
        elif tag == "td" or values.get("scope") == "row":
            names = ("data-value", "data-low", "data-high")
            figures = [float(values[name]) for name in names if name in values]
            self.shown[-1].rows[-1].append(("", figures))

    def handle_endtag(self, tag: str) -> None:
        if tag == "details":
            self._into = ""

    def handle_data(self, data: str) -> None:
        inside = self.get_starttag_text() or ""
        if inside == "<summary>":
            self._summary += data
        elif self._into and inside.startswith(("<code", "<pre")) and data.strip():
            had = getattr(self.shown[-1], self._into)
            setattr(self.shown[-1], self._into, had + data)
        elif data.strip() and (inside.startswith("<td") or 'scope="row"' in inside):
            text, figures = self.shown[-1].rows[-1][-1]
            self.shown[-1].rows[-1][-1] = (text + data, figures)


def check_page(path: Path, connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Hold every table and plot of a page against its query; their names."""
    labels = model_labels(connection)
    shown = Reader(path.read_text(encoding="utf-8")).shown
    for one in shown:
        assert one.sql, one.name
        names, rows = run_query(connection, one.sql)
        found = [_labelled(dict(zip(names, row, strict=True)), labels) for row in rows]
        if one.is_plot:
            _check_plot(one, found)
        else:
            _check_table(one, found)
    return [one.name for one in shown]


def _labelled(row: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    """Models go by their labels on a page."""
    label = labels.get(row.get("model_key", ""))
    return {**row, "model": label} if label and "model" in row else row


def _check_plot(one: Shown, found: list[dict[str, Any]]) -> None:
    drawn = list(csv.reader(io.StringIO(one.data)))
    columns = drawn[0]
    assert found and set(columns) <= set(found[0]), one.name
    given = list(csv.reader(io.StringIO(as_csv([{c: r[c] for c in columns} for r in found]))))
    assert sorted(map(_digits, given[1:])) == sorted(map(_digits, drawn[1:])), one.name


def _digits(row: list[str]) -> list[str]:
    return [str(_nine(float(v))) if _is_number(v) else v for v in row]


def _nine(figure: float) -> float:
    """Nine digits: sums over several threads differ in their last from run to run."""
    return float(f"{figure:.9g}")


def _is_number(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False


def _numbers(row: dict[str, Any]) -> set[float]:
    """Its numbers, and as percentages."""
    found = {float(v) for v in row.values() if isinstance(v, int | float)}
    return set(map(_nine, found | {100 * v for v in found}))


def _check_table(one: Shown, found: list[dict[str, Any]]) -> None:
    rows = [row for row in one.rows if row]
    assert rows and found, one.name
    if len(rows) == len(found):
        for row, given in zip(rows, found, strict=True):
            figures = _figures([row])
            assert figures <= _numbers(given), (one.name, row, given)
            values = [terminal(str(v)) for v in given.values() if v not in (None, "")]
            name = row[0][0]
            assert row[0][1] or any(v in name or name in v for v in values), (one.name, row, given)
    else:
        figures = _figures(rows)
        assert figures <= set().union(*map(_numbers, found)), one.name
        texts = {text for row in rows for text, _ in row}
        for given in found:
            told = _numbers(given) & figures or {terminal(str(v)) for v in given.values()} & texts
            assert told, (one.name, given)


def _figures(rows: list[list[tuple[str, list[float]]]]) -> set[float]:
    """What rows of a page show, but for their places."""
    return {_nine(f) for row in rows for _, values in row for f in values if f != _place(row)}


def _place(row: list[tuple[str, list[float]]]) -> float | None:
    """The number that a row begins with, its place in the list."""
    return row[0][1][0] if row[0][1] else None
