"""The data dictionary: every table, view and column with its type, unit and meaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from plumbline.warehouse.query.reference import entries
from plumbline.warehouse.schema.catalog import TABLES


def described(columns: Mapping[str, Iterable[tuple[str, str]]]) -> list[dict[str, Any]]:
    """The dictionary of some tables and views, whose columns are given as names and types.

    A view's columns have no unit and description but those of the tables' columns of that name,
    where all tables that have one agree.

    >>> made = described({"word_count": [("word", "VARCHAR")]})[0]
    >>> made["columns"][0]["description"], made["key"]
    ('kept token, lowercase', ['corpus', 'word'])
    """
    views = {e.signature: e for e in entries() if e.kind == "view"}
    found = []
    for name, listed in columns.items():
        table = TABLES.get(name)
        about = table.description if table else views[name].description
        found.append(
            {
                "name": name,
                "kind": "table" if table else "view",
                "description": about,
                "key": list(table.key) if table else [],
                "columns": [_column(name, column, kind) for column, kind in listed],
            }
        )
    return found


def _column(name: str, column: str, kind: str) -> dict[str, Any]:
    tables = [TABLES[name]] if name in TABLES else TABLES.values()
    told = {(c.unit, c.description) for t in tables for c in t.columns if c.name == column}
    unit, description = told.pop() if len(told) == 1 else ("", "")
    return {"name": column, "type": kind, "unit": unit, "description": description}


def dictionary_markdown(dictionary: Iterable[Mapping[str, Any]]) -> str:
    """The dictionary as a page: a heading and a list of columns for each table and view."""
    lines = ["# Data dictionary", ""]
    for item in dictionary:
        lines += [f"## {item['name']} ({item['kind']})", "", item["description"], ""]
        lines += [f"Key: {', '.join(item['key'])}.", ""] if item["key"] else []
        lines += ["| column | type | unit | meaning |", "|---|---|---|---|"]
        for column in item["columns"]:
            cells = [column[key] for key in ("name", "type", "unit", "description")]
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
        lines.append("")
    return "\n".join(lines)
