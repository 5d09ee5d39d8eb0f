"""Tables and views as files for others: Parquet, CSV, JSON lines, or one DuckDB database."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from plumbline.warehouse.errors import BadInput, UsageProblem, disk_problems
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.query.dictionary import described, dictionary_markdown
from plumbline.warehouse.schema.catalog import TABLES

#: What ``--format`` takes.
FORMATS = ("parquet", "csv", "jsonl", "duckdb")
_OPTIONS = {
    "parquet": "FORMAT parquet, COMPRESSION zstd",
    "csv": "FORMAT csv, HEADER",
    "jsonl": "FORMAT json",
}


@dataclass(frozen=True)
class Exported:
    """A table or view that was written: its name, rows and file."""

    name: str
    n_rows: int
    path: Path


def export(root: Path, names: Sequence[str], out: Path, kind: str) -> list[Exported]:
    """Write tables and views into the directory ``out``, with ``dictionary.md`` and ``.json``.

    Each becomes ``NAME.<kind>``, or all one ``warehouse.duckdb``; files of those names are
    replaced, each once it is whole. No names: all tables that have rows. Text of CSV that a
    spreadsheet would compute gets a ``'`` in front. Raises ``UsageProblem`` for an unknown name or
    format and a directory inside the warehouse, ``BadInput`` for a disk that can't be written.
    """
    if kind not in FORMATS:
        raise UsageProblem(f"format {kind!r}", f"there is {', '.join(FORMATS)}")
    if root.resolve() in (out.resolve(), *out.resolve().parents):
        raise UsageProblem(f"directory {out}", "lies in the warehouse", "choose another --out")
    with connect(root) as connection, disk_problems(out):
        chosen = _chosen(connection, names)
        out.mkdir(parents=True, exist_ok=True)
        try:
            made = _export(connection, chosen, out, kind)
        except duckdb.Error as e:
            raise BadInput(f"export to {out}", str(e).splitlines()[0]) from e
        columns = {
            name: [(row[0], row[1]) for row in connection.execute(f"DESCRIBE {name}").fetchall()]
            for name in chosen
        }
        dictionary = described(columns)
        _text(out / "dictionary.md", dictionary_markdown(dictionary))
        _text(out / "dictionary.json", json.dumps(dictionary, indent=2, ensure_ascii=False) + "\n")
    return made


def _chosen(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> list[str]:
    """The views of these names, which are only ever ours: no name leads out of the directory."""
    known = [name for (name,) in connection.execute("SHOW TABLES").fetchall()]
    for name in names:
        if name not in known:
            raise UsageProblem(f"table {name!r}", f"there is {', '.join(known)}")
    if names:
        return list(dict.fromkeys(names))
    rows = {n: connection.execute(f"SELECT count(*) FROM {n}").fetchall()[0][0] for n in TABLES}
    return [name for name, n_rows in rows.items() if n_rows]


def _export(
    connection: duckdb.DuckDBPyConnection, names: Sequence[str], out: Path, kind: str
) -> list[Exported]:
    if kind == "duckdb":
        return _database(connection, names, out / "warehouse.duckdb")
    made = []
    for name in names:
        path = out / f"{name}.{kind}"
        temporary = _temporary(path)
        source = f"({_neutral(connection, name)})" if kind == "csv" else name
        try:
            copy = f"COPY {source} TO '{_quoted(temporary)}' ({_OPTIONS[kind]})"
            n_rows = connection.execute(copy).fetchall()[0][0]
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        made.append(Exported(name, n_rows, path))
    return made


def _neutral(connection: duckdb.DuckDBPyConnection, name: str) -> str:
    """A query of a view whose text no spreadsheet takes for a formula."""
    columns = []
    for column, kind, *_ in connection.execute(f"DESCRIBE {name}").fetchall():
        starts = f"\"{column}\"[1] IN ('=', '+', '-', '@', chr(9), chr(13))"
        neutral = f"""CASE WHEN {starts} THEN '''' || "{column}" ELSE "{column}" END"""
        columns.append(f'{neutral} AS "{column}"' if kind == "VARCHAR" else f'"{column}"')
    return f"SELECT {', '.join(columns)} FROM {name}"


def _database(
    connection: duckdb.DuckDBPyConnection, names: Sequence[str], path: Path
) -> list[Exported]:
    temporary, made = _temporary(path), []
    try:
        connection.execute(f"ATTACH '{_quoted(temporary)}' AS exported")
        for name in names:
            connection.execute(f"CREATE TABLE exported.{name} AS FROM {name}")
            counted = connection.execute(f"SELECT count(*) FROM exported.{name}").fetchall()
            made.append(Exported(name, counted[0][0], path))
            if name in TABLES:
                _comment(connection, name)
        connection.execute("DETACH exported")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
        temporary.with_name(f"{temporary.name}.wal").unlink(missing_ok=True)
    return made


def _comment(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    table = TABLES[name]
    told = {f"TABLE exported.{name}": table.description}
    for column in table.columns:
        unit = f" [{column.unit}]" if column.unit else ""
        told[f'COLUMN exported.{name}."{column.name}"'] = f"{column.description}{unit}"
    for what, text in told.items():
        quoted = text.replace("'", "''")
        connection.execute(f"COMMENT ON {what} IS '{quoted}'")


def _temporary(path: Path) -> Path:
    return path.with_name(f"_{uuid.uuid4().hex}.tmp")


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _text(path: Path, text: str) -> None:
    temporary = _temporary(path)
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
