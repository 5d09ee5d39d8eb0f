"""Every table once: columns with types and units, key, partitions and description.

This is the only place that knows a table's shape; the tables are in the files beside it, one per
subject. The store casts to them, ``query/connection.py`` makes a DuckDB view of each, and the
table section of docs/tables.md is generated from them:
``python -m plumbline.warehouse.schema.catalog docs/tables.md``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from plumbline.warehouse.schema import corpora, disclosure, fairpair, pairs, sampling, scores
from plumbline.warehouse.schema.columns import Table

_SUBJECTS = (corpora, pairs, scores, sampling, fairpair, disclosure)

#: Name -> table, in the order data flows.
TABLES: dict[str, Table] = {table.name: table for subject in _SUBJECTS for table in subject.TABLES}


def markdown() -> str:
    """The section of docs/tables.md: a heading, description and column list for each table.

    >>> markdown().splitlines()[0]
    '### `run`'
    """
    lines: list[str] = []
    for table in TABLES.values():
        parts = ", ".join(f"`{p}`" for p in table.partitions) or "none"
        keys = ", ".join(f"`{k}`" for k in table.key)
        lines += [f"### `{table.name}`", "", table.description, ""]
        lines += [f"Key: {keys}. Partitions: {parts}.", "", "| column | type | unit | meaning |"]
        lines += ["|---|---|---|---|"]
        for c in table.columns:
            kind = f"{c.type}{', may be NULL' if c.nullable else ''}"
            meaning = c.description.replace("|", "\\|")
            lines.append(f"| `{c.name}` | {kind} | {c.unit} | {meaning} |")
        lines.append("")
    return "\n".join(lines)


def update_page(path: Path) -> None:
    """Put the table section of a page between its ``tables`` markers up to date."""
    begin, end = "<!-- tables: begin -->\n", "<!-- tables: end -->"
    before, rest = path.read_text(encoding="utf-8").split(begin)
    after = rest.split(end)[1]
    path.write_text(f"{before}{begin}\n{markdown()}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    update_page(Path(sys.argv[1]))
