"""Generate the reference in docs/tables.md and docs/sql.md from the schema and SQL files.

``python -m plumbline.warehouse.query.reference docs/tables.md docs/sql.md``
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from plumbline.warehouse.query.connection import own_views, sql, sql_names
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import Table
from plumbline.warehouse.text.escape import markdown_row

_GRAIN = "-- grain: "
_COLUMN_HEADER = [markdown_row("column", "type", "unit", "meaning"), "|---|---|---|---|"]
_CREATE = re.compile(
    r"^CREATE OR REPLACE (VIEW|MACRO) (\w+)(\(.*?\))? AS( TABLE\b)?", re.MULTILINE | re.DOTALL
)

#: Matches a generated part of a page. The groups are the first comment, the kind, the last comment.
_MARKED = re.compile(
    r"(<!-- (graph|tables|reference|questions): begin -->).*?(<!-- \2: end -->)", re.DOTALL
)


class Entry(NamedTuple):
    """A view, table macro or function. ``grain`` says what one row is. Functions have no grain."""

    signature: str
    kind: str
    grain: str
    description: str


def questions() -> list[tuple[str, str, str]]:
    """Return each example question with an explanation of its answer, and with its query."""
    comments = (_comment(sql(name)) for name in sql_names("examples"))
    # In each query's comment, the first line says what a row is. The second line is the question.
    return [(about[1], " ".join(about[2:]), query) for about, query in comments]


def entries() -> list[Entry]:
    """Read each view and macro of ``sql/views``, with the first paragraph of its comment."""
    listed = []
    for text in own_views():
        grain = text.split("\n", 1)[0].removeprefix(_GRAIN)
        for paragraph in text.split("\n\n"):
            comment, code = _comment(paragraph)
            own = [line.removeprefix("grain: ") for line in comment if line.startswith("grain: ")]
            about = comment[: comment.index("")] if "" in comment else comment
            description = " ".join(line for line in about if not line.startswith("grain: "))
            for what, named, parameters, is_table in _CREATE.findall(code):
                kind = "view" if what == "VIEW" else "table macro" if is_table else "function"
                signature = named + " ".join(parameters.split()).replace("( ", "(")
                row_grain = "" if kind == "function" else (own or [grain])[0]
                listed.append(Entry(signature.replace(" )", ")"), kind, row_grain, description))
    return listed


def _comment(text: str) -> tuple[list[str], str]:
    """Split SQL into its first comment lines (without dashes) and the rest."""
    lines = text.strip().splitlines()
    n = next((i for i, line in enumerate(lines) if not line.startswith("--")), len(lines))
    return [line[2:].strip() for line in lines[:n]], "\n".join(lines[n:])


def _made_from(table: Table) -> str:
    origins = [
        f"`{o.table}`{f' ({names(o.columns)})' if o.columns else ''} by {names(o.by)}"
        for o in table.made_from
    ]
    return f" Made from {' and '.join(origins)}." if origins else ""


def names(columns: Iterable[str]) -> str:
    return ", ".join(f"`{column}`" for column in columns)


def _graph_markdown() -> str:
    made: dict[str, list[str]] = {}
    for table in TABLES.values():
        for origin in table.made_from:
            made.setdefault(origin.table, []).append(table.name)
    return "\n".join(f"- `{name}` -> {names(tables)}" for name, tables in made.items())


def _tables_markdown() -> str:
    lines: list[str] = []
    for table in TABLES.data.values():
        parts, keys = names(table.partitions) or "none", names(table.key)
        about = f"Key: {keys}. Partitions: {parts}. Written by {table.how_filled}."
        about = f"{table.description} {about}{_made_from(table)}"
        lines += [f"## `{table.name}`", "", about, "", *_COLUMN_HEADER]
        for c in table.columns:
            kind = f"{c.type}{', may be NULL' if c.nullable else ''}"
            lines.append(markdown_row(f"`{c.name}`", kind, c.unit, c.description))
        lines.append("")
    return "\n".join(lines).rstrip()


def _reference_markdown() -> str:
    titles = {"view": "Views", "table macro": "Table macros", "function": "Functions"}
    parts = []
    for kind, title in titles.items():
        lines = [f"### {title}", ""]
        last = ""
        for entry in (e for e in entries() if e.kind == kind):
            grain = f" One row per {entry.grain}." if entry.grain else ""
            # Functions in one paragraph of SQL share a comment. Print it only once.
            about = "" if entry.description == last else f" {entry.description}"
            last = entry.description
            lines.append(f"- `{entry.signature}`{':' if grain or about else ''}{grain}{about}")
        parts += ["\n".join(lines)] if lines[2:] else []
    return "\n\n".join(parts)


def _questions_markdown() -> str:
    return "\n\n".join(
        f"### {number}. {question}\n\n{meaning}\n\n```sql\n{query}\n```"
        for number, (question, meaning, query) in enumerate(questions(), 1)
    )


def filled(document: str) -> str:
    """Return a Markdown page after generating each marked part again (see ``_MARKED``)."""
    generators = {
        "graph": _graph_markdown,
        "tables": _tables_markdown,
        "reference": _reference_markdown,
        "questions": _questions_markdown,
    }

    return _MARKED.sub(lambda mark: f"{mark[1]}\n\n{generators[mark[2]]()}\n\n{mark[3]}", document)


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
