"""Export of tables and views to files: Parquet, CSV, JSON lines, or one DuckDB database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from plumbline.warehouse.errors import BadInput, UsageProblem, disk_problems
from plumbline.warehouse.paths import replacing
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.query.reference import described, dictionary_markdown
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.text.escape import csv_cell_sql, sql_text

#: Values of ``--format``.
FORMATS = ("parquet", "csv", "jsonl", "duckdb")
_OPTIONS = {
    "parquet": "FORMAT parquet, COMPRESSION zstd",
    "csv": "FORMAT csv, HEADER",
    "jsonl": "FORMAT json",
}


@dataclass(frozen=True)
class ExportedTable:
    """An exported table or view: its name, rows and file."""

    name: str
    n_rows: int
    path: Path


def export(root: Path, names: Sequence[str], out: Path, kind: str) -> list[ExportedTable]:
    """Write tables and views into the directory ``out``, with ``dictionary.md`` and ``.json``.

    Each becomes ``NAME.<kind>``, or all become one ``warehouse.duckdb``. An existing file is
    replaced once the new file is complete. Without names, all tables with rows are exported. Text
    in CSV is escaped by ``csv_cell``. Raises ``UsageProblem`` for an unknown name or format, and a
    directory inside the warehouse; ``BadInput`` for a disk that can't be written.
    """
    if kind not in FORMATS:
        raise UsageProblem(f"format {kind!r}", f"use one of {', '.join(FORMATS)}")
    if root.resolve() in (out.resolve(), *out.resolve().parents):
        raise UsageProblem(f"directory {out}", "is inside the warehouse", "choose another --out")
    with connect(root) as connection, disk_problems(out):
        chosen = _chosen(connection, names)
        out.mkdir(parents=True, exist_ok=True)
        try:
            exported = _export(connection, chosen, out, kind)
        except duckdb.Error as e:
            raise BadInput(f"export to {out}", str(e).splitlines()[0]) from e
        columns = {
            name: [(row[0], row[1]) for row in connection.execute(f"DESCRIBE {name}").fetchall()]
            for name in chosen
        }
        dictionary = described(columns)
        as_json = json.dumps(dictionary, indent=2, ensure_ascii=False) + "\n"
        pages = {"dictionary.md": dictionary_markdown(dictionary), "dictionary.json": as_json}
        for name, text in pages.items():
            with replacing(out / name) as temporary:
                temporary.write_text(text, encoding="utf-8")
    return exported


def _chosen(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> list[str]:
    """The tables and views to export. Refuses an unknown name, which could be a path."""
    existing = [name for (name,) in connection.execute("SHOW TABLES").fetchall()]
    for name in names:
        if name not in existing:
            raise UsageProblem(f"table {name!r}", f"use one of {', '.join(existing)}")
    if names:
        return list(dict.fromkeys(names))
    rows = {n: connection.execute(f"SELECT count(*) FROM {n}").fetchall()[0][0] for n in TABLES}
    return [name for name, n_rows in rows.items() if n_rows]


def _export(
    connection: duckdb.DuckDBPyConnection, names: Sequence[str], out: Path, kind: str
) -> list[ExportedTable]:
    if kind == "duckdb":
        with replacing(out / "warehouse.duckdb") as temporary:
            rows = _database(connection, names, temporary)
        return [
            ExportedTable(name, n_rows, out / "warehouse.duckdb") for name, n_rows in rows.items()
        ]
    exported = []
    for name in names:
        path = out / f"{name}.{kind}"
        source = f"({_without_formulas(connection, name)})" if kind == "csv" else name
        with replacing(path) as temporary:
            copy = f"COPY {source} TO {sql_text(str(temporary))} ({_OPTIONS[kind]})"
            n_rows = connection.execute(copy).fetchall()[0][0]
        exported.append(ExportedTable(name, n_rows, path))
    return exported


def _without_formulas(connection: duckdb.DuckDBPyConnection, name: str) -> str:
    """A query for the rows of a table or view, with text escaped like by ``csv_cell``."""
    columns = []
    for column, kind, *_ in connection.execute(f"DESCRIBE {name}").fetchall():
        quoted = f'"{column}"'
        columns.append(f"{csv_cell_sql(quoted)} AS {quoted}" if kind == "VARCHAR" else quoted)
    return f"SELECT {', '.join(columns)} FROM {name}"


def _database(
    connection: duckdb.DuckDBPyConnection, names: Sequence[str], path: Path
) -> dict[str, int]:
    rows = {}
    try:
        connection.execute(f"ATTACH {sql_text(str(path))} AS exported")
        for name in names:
            connection.execute(f"CREATE TABLE exported.{name} AS FROM {name}")
            counted = connection.execute(f"SELECT count(*) FROM exported.{name}").fetchall()
            rows[name] = counted[0][0]
            if name in TABLES:
                _comment(connection, name)
        connection.execute("DETACH exported")
    finally:
        path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
    return rows


def _comment(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    table = TABLES[name]
    comments = {f"TABLE exported.{name}": table.description}
    for column in table.columns:
        unit = f" [{column.unit}]" if column.unit else ""
        comments[f'COLUMN exported.{name}."{column.name}"'] = f"{column.description}{unit}"
    for what, comment in comments.items():
        connection.execute(f"COMMENT ON {what} IS {sql_text(comment)}")
