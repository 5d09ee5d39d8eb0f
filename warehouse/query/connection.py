"""A DuckDB connection on a warehouse: a view of each table, and those of ``sql/views``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import Table
from plumbline.warehouse.storage.format import older_tables, open_warehouse
from plumbline.warehouse.storage.paths import parquet_files, retry_missing
from plumbline.warehouse.text.escape import sql_text

if TYPE_CHECKING:
    import pyarrow as pa

_CREATED = re.compile(r"CREATE OR REPLACE (?:VIEW|MACRO) (\w+)")
#: Queries that list tables, views or columns, so all of them must exist.
_LISTS = re.compile(r"(?i)\b(show|describe|pragma|information_schema|sqlite_\w+|(duckdb|pg)_\w+)\b")


def connect(root: str | Path, text: str | None = None) -> duckdb.DuckDBPyConnection:
    """Open an in-memory DuckDB with a view for each table over the Parquet files.

    A table without files is an empty view with the right columns. Nothing is written to the
    warehouse, and DuckDB neither loads nor fetches extensions.

    Args:
        text: the SQL that will be run, if known: views and tables that it doesn't use are not
            made, which saves half of the time.

    Raises:
        BadInput: ``root`` is not a warehouse of this version, or a table's file is damaged or has
            other columns.

    >>> import tempfile
    >>> connection = connect(open_warehouse(tempfile.mkdtemp() + "/w"))
    >>> connection.execute("SELECT count(*) FROM pair_score").fetchone()
    (0,)
    """
    root = open_warehouse(root, create=False)
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )
    connection.execute("SET TimeZone = 'UTC'")
    views, tables = _needed(text)
    # DuckDB binds a view to what it reads: first to empty tables, which views of files replace.
    connection.execute(_on_empty_tables(views, tables))
    for table in tables:
        _make_view(connection, root, table)
    return connection


def _needed(text: str | None) -> tuple[list[str], list[Table]]:
    """Texts of the ``sql/views`` that a query uses, and the tables they need; all for ``None``."""
    if text is None or _LISTS.search(text):
        return _views(), list(TABLES.values())
    found, named = [], _words(text)
    for view in reversed(_views()):  # a view uses only earlier ones
        if named.intersection(_CREATED.findall(view)):
            found.append(view)
            named |= _words(view)
    return found[::-1], [table for name, table in TABLES.items() if name in named]


@cache
def _views() -> list[str]:
    return [sql(name) for name in sql_names("views")]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _on_empty_tables(views: list[str], tables: list[Table]) -> str:
    """Statements that make views on empty tables, then drop the tables."""
    creates = []
    for table in tables:
        columns = ", ".join(f'"{c.name}" {c.sql_type}' for c in table.columns)
        creates.append(f'CREATE TABLE "{table.name}" ({columns})')
    drops = [f'DROP TABLE "{table.name}"' for table in tables]
    return ";\n".join([*creates, *views, *drops])


def _make_view(connection: duckdb.DuckDBPyConnection, root: Path, table: Table) -> None:
    try:
        retry_missing(lambda: connection.execute(table_view(root, table)))
    except duckdb.Error as e:
        problem = f"a file of {table.name} can't be read: {str(e).splitlines()[0]}"
        fix = f"move {root / table.name} away and write it again"
        raise BadInput(f"warehouse {root}", problem, fix) from e


def table_view(root: Path, table: Table, named_root: Path | None = None) -> str:
    """The statement that makes a table's view over its Parquet files; an empty view without files.

    ``named_root`` is how the statement names the directory, by default its absolute path.
    """
    create = f'CREATE OR REPLACE VIEW "{table.name}" AS SELECT'
    columns = ", ".join(f'"{c.name}"' for c in table.columns)
    directory = root / table.name
    if next(directory.glob("**/*.parquet"), None) is None and not parquet_files(directory):
        nulls = ", ".join(f'NULL::{c.sql_type} AS "{c.name}"' for c in table.columns)
        return f"{create} {nulls} WHERE false"
    files = (named_root or root.resolve()) / table.name / "**" / "*.parquet"
    pattern = sql_text(str(files))
    source = f"read_parquet({pattern}, hive_partitioning = false)"
    if not table.partitions or table.name in older_tables(root):
        source = _with_new_columns(table, pattern)
    return f"{create} {columns} FROM {source}"


def _with_new_columns(table: Table, pattern: str) -> str:
    """The source of files some of which lack columns added since, which are NULL there."""
    nulls = [f'NULL::{c.sql_type} AS "{c.name}"' for c in table.columns if c.nullable]
    files = f"read_parquet({pattern}, hive_partitioning = false, union_by_name = true)"
    return f"(SELECT {', '.join(nulls)} WHERE false UNION ALL BY NAME FROM {files})"


def init_sql(root: str | Path, relative_to: Path | None = None) -> str:
    """SQL that makes a view for each table of the warehouse at ``root``, and all views and macros.

    Args:
        relative_to: name the Parquet files by their path from this directory, in which DuckDB must
            then be started; by default by their absolute path.

    A table without files is an empty view: make the SQL again once it has some. Raises ``BadInput``
    when ``root`` is not a warehouse of this version.

    >>> import tempfile
    >>> init_sql(open_warehouse(tempfile.mkdtemp() + "/w")).count('CREATE OR REPLACE VIEW "run"')
    1
    """
    root = open_warehouse(root, create=False)
    named_root = root.resolve()
    where = "anywhere"
    if relative_to is not None:
        named_root = Path(os.path.relpath(named_root, relative_to.resolve()))
        where = "in this file's directory"
    parts = [
        "-- A Plumbline warehouse: a view for each table, then the views and functions on them.\n"
        f"-- Start DuckDB {where}: duckdb -init FILE\n"
        "SET TimeZone = 'UTC';"
    ]
    parts += [f"{table_view(root, table, named_root)};" for table in TABLES.values()]
    parts += [sql(name).strip() for name in sql_names("views")]
    return "\n\n".join(parts) + "\n"


def rows_of(
    root: str | Path, text: str, params: Mapping[str, object] | None = None
) -> list[dict[str, Any]]:
    """Rows of one query over the warehouse at ``root``, which may have ``$params``.

    Raises as ``connect``, and as DuckDB where the query is wrong.

    >>> import tempfile
    >>> root = open_warehouse(tempfile.mkdtemp() + "/w")
    >>> rows_of(root, "SELECT count(*) AS n FROM run WHERE status = $status", {"status": "ok"})
    [{'n': 0}]
    """
    with connect(root, text) as connection:
        rows: list[dict[str, Any]] = retry_missing(
            lambda: connection.sql(text, params=params).to_arrow_table()
        ).to_pylist()
    return rows


def model_labels(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The name to show for each scoring identity, by model key (`model_label`)."""
    rows = connection.execute("SELECT model_key, label FROM model_label").fetchall()
    return {str(key): str(label) for key, label in rows}


@cache
def _files(folder: str) -> Registry:
    """The SQL files of a folder; other packages can add metrics."""
    group = "plumbline.metrics" if folder == "metrics" else ""
    return Registry(f"SQL of {folder}", f"plumbline.warehouse.sql.{folder}", ".sql", group)


def sql_names(folder: str) -> list[str]:
    """Names of the SQL files of ``warehouse/sql/<folder>``, sorted: ``metrics/us`` for `us.sql`.

    Among the metrics are those of other packages, entry points of ``plumbline.metrics``.
    """
    return [f"{folder}/{name}" for name in _files(folder).names()]


def sql(name: str) -> str:
    """Text of the SQL file of a name, such as ``metrics/us``. Raises as ``Registry.text``."""
    folder, _, file = name.partition("/")
    return _files(folder).text(file)


def query(
    connection: duckdb.DuckDBPyConnection, name: str, params: Mapping[str, object] | None = None
) -> pa.Table:
    """Run the SQL file of a name; ``params`` that it does not use are ignored."""
    text = sql(name)
    named = {p for s in connection.extract_statements(text) for p in s.named_parameters}
    given = {key: value for key, value in (params or {}).items() if key in named}
    return retry_missing(lambda: connection.sql(text, params=given).to_arrow_table())
