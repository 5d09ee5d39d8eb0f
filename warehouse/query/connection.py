"""Query a warehouse with DuckDB, which gets a view of each table and the views in ``sql/views``.

A user's query can read the warehouse and make tables in memory. It can't use other files.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import Table
from plumbline.warehouse.storage.log import Snapshot
from plumbline.warehouse.storage.opening import OpenWarehouse
from plumbline.warehouse.storage.place import File
from plumbline.warehouse.text.escape import is_unicode, sql_text

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

#: Settings that stop queries from using files, except the files that ``connect`` allows. Later,
#: queries can't change any settings, but ``SET VARIABLE`` still works.
READ_ONLY = """SET allow_persistent_secrets = false;
SET enable_external_access = false;
SET lock_configuration = true;"""
#: Matches DuckDB's error for an unknown table. DuckDB's own suggestion would miss many tables.
_UNKNOWN = re.compile(r"(Catalog Error: Table (?:Function )?with name (\w+) does not exist)!.*")
_CREATED = re.compile(r"CREATE OR REPLACE (?:VIEW|MACRO) (\w+)")
#: Words in queries that list tables, views or columns; such queries need all views.
_LISTS = re.compile(r"(?i)\b(show|describe|pragma|information_schema|sqlite_\w+|(duckdb|pg)_\w+)\b")
_WORD = re.compile(r"\w+")
#: Matches the name after FROM or JOIN, outside comments.
_READ = re.compile(r'--.*|\b(?:from|join)\s+"?(?:main\.)?(\w+)')
#: Settings that keep DuckDB from finding, downloading and loading extensions.
_NO_EXTENSIONS: dict[str, Any] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "extension_directory": os.devnull,
}
#: ``unfilled`` names at most this many tables.
_UNFILLED = 3
#: Tables that may be empty. The views that read them have rows all the same.
_OPTIONAL = ("word_evidence",)


def connect(
    source: str | Path | OpenWarehouse, text: str | None = None
) -> duckdb.DuckDBPyConnection:
    """Open an in-memory DuckDB that has a view of each table in a warehouse.

    The views read the Parquet files of one commit: the newest, or the pinned one. ``text`` is the
    SQL to run. If it is given, only the views that it uses are made. Otherwise all views are made,
    which takes 0.7 s. DuckDB neither loads nor downloads extensions. Raises ``BadInput`` if
    ``source`` isn't a warehouse in this format, or if a table's file is unreadable or damaged.
    """
    import duckdb

    store = opened(source)
    snapshot = store.snapshot()
    connection = duckdb.connect(config=_NO_EXTENSIONS)
    connection.execute("SET TimeZone = 'UTC'")
    views, tables = _needed(text)
    # First make the views on empty tables. Otherwise DuckDB would read the files for each view.
    for table in tables:
        connection.execute(_view(table, [], []))
    for name, view in views:
        with package_views().one_line(name, "expected a query over tables and views"):
            connection.execute(view)
    for statement in _over_files(store, snapshot, tables):
        connection.execute(statement)
    return connection


def opened(source: str | Path | OpenWarehouse) -> OpenWarehouse:
    """Open an existing warehouse. Return an already open warehouse unchanged."""
    if isinstance(source, OpenWarehouse):
        return source
    return OpenWarehouse.open(source, create=False)


def _needed(
    text: str | None, name: re.Pattern[str] = _WORD
) -> tuple[list[tuple[str, str]], list[Table]]:
    """Return the views (name and SQL) and tables that a query uses. Without ``text``, return all.

    The pattern ``name`` finds the words of the query that may be names of views or tables. By
    default, it finds every word. Raises ``UsageProblem`` if another package's table has the name
    of one of Plumbline's views.
    """
    views: list[tuple[str, str]] = []
    names = None if text is None or _LISTS.search(text) else set(name.findall(text.lower()))
    own = [(_CREATED.findall(view), view) for view in own_views()]
    added = [([view], "") for view in package_views().added]
    for made, view in reversed([*own, *added]):  # a view uses only earlier views
        if names is None or names.intersection(made):
            views.append((made[0], view or package_views().text(made[0]).strip()))
            if names:
                names |= set(name.findall(views[-1][1].lower()))
    tables = [TABLES[key] for key in TABLES if names is None or key in names]
    for table in tables:
        if table.name not in TABLES.data and table.name in package_views().made:
            what = f"table {table.name!r} of {TABLES.parts.source(table.name)}"
            raise UsageProblem(what, "plumbline has a view of this name", "rename or uninstall it")
    return views[::-1], tables


@cache
def own_views() -> list[str]:
    """Return the SQL texts of ``sql/views``. Each makes one or more views or functions."""
    return [sql(name).strip() for name in sql_names("views")]


def tables_of(text: str) -> list[Table]:
    """Return the tables that a query reads, directly or through views."""
    return _needed(text, _READ)[1]


@cache
def package_views() -> Registry:
    """Return the registry of other packages' views. A view can't reuse a name of Plumbline."""
    ours = (*TABLES.data, *_CREATED.findall("\n".join(own_views())))
    return Registry("view", suffix=".sql", group="plumbline.views", made=ours)


def unfilled(connection: duckdb.DuckDBPyConnection, text: str) -> str:
    """Name a query's empty tables and the commands that fill them. Return "" if all have rows."""
    if _LISTS.search(text):
        return ""
    empty = [
        f"{table.name}: {table.how_filled}"
        for table in tables_of(text)
        if (table.name not in _OPTIONAL or table.name in text)
        and connection.execute(f'SELECT 1 FROM "{table.name}" LIMIT 1').fetchone() is None
    ]
    return f"No rows yet in {'; '.join(empty[:_UNFILLED])}" if empty else ""


def _view(table: Table, files: Sequence[File], paths: Sequence[str]) -> str:
    """Return the SQL that makes a view of a table's files. Without files, the view has no rows."""
    create = f'CREATE OR REPLACE VIEW "{table.name}" AS SELECT'
    nulls = [f'NULL::{c.sql_type} AS "{c.name}"' for c in table.columns]
    if not files:
        return f"{create} {', '.join(nulls)} WHERE false"
    columns = ", ".join(f't."{c.name}"::{c.sql_type} AS "{c.name}"' for c in table.columns)
    listed = f"[{', '.join(map(sql_text, paths))}], hive_partitioning = false"
    source = f"read_parquet({listed})"
    if {file.columns for file in files} != {table.columns_id}:
        # Read NULL for a column that was added after a file was written.
        added = ", ".join(f'NULL::{c.sql_type} AS "{c.name}"' for c in table.columns if c.nullable)
        union = f"FROM read_parquet({listed}, union_by_name = true)"
        source = f"(SELECT {added} WHERE false UNION ALL BY NAME {union})"
    return f"{create} {columns} FROM {source} AS t"


def init_sql(source: str | Path | OpenWarehouse) -> str:
    """Return SQL that makes a view of each table of a warehouse, and all views and macros on them.

    The views don't show later commits. To see later commits, make the SQL again.
    """
    store = opened(source)
    snapshot = store.snapshot()
    parts = [
        f"-- A Plumbline warehouse as of version {snapshot.version}, {snapshot.time:%Y-%m-%d %H:%M}"
        " UTC:\n-- a view for each table, then the views and functions on them.\n"
        "-- Start DuckDB: duckdb -init FILE\n"
        "SET TimeZone = 'UTC';"
    ]
    views, tables = _needed(None)
    parts += [f"{statement};" for statement in _over_files(store, snapshot, tables)]
    return "\n\n".join([*parts, *(view for _, view in views)]) + "\n"


def _over_files(store: OpenWarehouse, snapshot: Snapshot, tables: Sequence[Table]) -> Iterator[str]:
    """Yield the SQL statements that make a view of each table's files.

    The last statement allows queries under ``READ_ONLY`` to read these files, and no others.
    """
    allowed: list[str] = []
    for table in tables:
        files = snapshot.files(table.name)
        paths = [str(store.path(file).resolve()) for file in files]
        allowed += paths
        yield _view(table, files, paths)
    yield f"SET allowed_paths = [{', '.join(map(sql_text, allowed))}]"


def rows_of(
    source: str | Path | OpenWarehouse, text: str, params: Mapping[str, object] | None = None
) -> list[dict[str, Any]]:
    """Return the rows of one query on a warehouse. ``params`` has a value for each ``$name``.

    Raises the errors of ``connect``, and DuckDB's errors for an invalid query.
    """
    with connect(source, text) as connection:
        rows = arrow_rows(connection, text, params)
    return list(rows.to_pylist())


def arrow_rows(
    connection: duckdb.DuckDBPyConnection, text: str, params: Mapping[str, object] | None = None
) -> pa.Table:
    """Return the rows of one query. Unused ``params`` are ignored.

    Raises DuckDB's errors for an invalid query.
    """
    [statement] = connection.extract_statements(text)
    with warnings.catch_warnings():
        # Hide the warning that this method copies rows. Other methods would plan the query twice.
        warnings.filterwarnings("ignore", "Arrow output on a DB-API result")
        return connection.execute(statement, _params_of(statement, params or {})).to_arrow_table()


def model_labels(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    rows = connection.execute("SELECT model_key, label FROM model_label").fetchall()
    return {str(key): str(label) for key, label in rows}


@cache
def _files(folder: str) -> Registry:
    """Return the registry of a folder's SQL files. Other packages can add only to ``metrics``."""
    group = "plumbline.metrics" if folder == "metrics" else ""
    return Registry(f"SQL of {folder}", f"plumbline.warehouse.sql.{folder}", ".sql", group)


def sql_names(folder: str) -> list[str]:
    """Return the sorted names of SQL files in ``warehouse/sql/<folder>``, such as ``metrics/us``.

    Other packages can add metrics, as entry points in the group ``plumbline.metrics``.
    """
    return [f"{folder}/{name}" for name in _files(folder).names()]


def sql(name: str) -> str:
    """Read a SQL file, such as ``metrics/us``. Raises the errors of ``Registry.text``."""
    folder, _, file = name.partition("/")
    return _files(folder).text(file)


@contextmanager
def one_line() -> Iterator[None]:
    """Turn DuckDB's errors in the block into ``UsageProblem``, except out-of-memory errors."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException:
        raise
    except OverflowError as e:
        problem = "a value is too large for Python"
        raise UsageProblem("SQL", problem, "cast that column to VARCHAR") from e
    except duckdb.Error as e:
        message = " ".join(str(e).split("\n\nLINE ")[0].split())
        if unknown := _UNKNOWN.match(message):
            known = {*TABLES, *package_views().names()}
            similar = " or ".join(get_close_matches(unknown[2], sorted(known), 3))
            message = unknown[1] + (f", did you mean {similar}?" if similar else "")
        fix = "names and columns: docs/tables.md, docs/sql.md"
        if isinstance(e, duckdb.PermissionException):
            fix = "a query may use only the warehouse's files"
        raise UsageProblem("SQL", message, fix) from None


def read_only(
    source: str | Path | OpenWarehouse, text: str, params: Mapping[str, object] | None = None
) -> pa.Table:
    """Run a query that a user typed, and return its rows. The query can't write files.

    ``params`` has a value for each ``$name``. Raises the errors of ``one_line``, and
    ``UsageProblem`` for a statement that returns no rows.
    """
    with connect(source, text) as connection, one_line():
        lock(connection)
        last = last_statement(connection, text, params)
        result = connection.sql(last, params=_params_of(last, params or {}))
        if result is None:
            raise UsageProblem("SQL", "the statement returns no rows")
        return result.to_arrow_table()


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Stop queries from reading Python variables, and files outside the warehouse."""
    connection.execute(f"SET python_enable_replacements = false; {READ_ONLY}")


def last_statement(
    connection: duckdb.DuckDBPyConnection, text: str, params: Mapping[str, object] | None = None
) -> duckdb.Statement:
    """Run all statements of a SQL text except the last. Return the last for the caller to run.

    Raises ``UsageProblem`` for a text that isn't Unicode or has no statement, and ``duckdb.Error``
    for invalid SQL.
    """
    if not is_unicode(text):
        raise UsageProblem("SQL", "is not Unicode", "type it in UTF-8")
    # If USE_TMP_FILE is off, COPY could overwrite a file of the warehouse while reading it.
    if "use_tmp_file" in text.lower():
        raise UsageProblem("USE_TMP_FILE", "could damage the warehouse", "leave it out")
    statements = connection.extract_statements(text)
    if not statements:
        raise UsageProblem("SQL", "contains no statement")
    for statement in statements[:-1]:
        connection.execute(statement, _params_of(statement, params or {})).fetchall()
    return statements[-1]


def _params_of(statement: duckdb.Statement, params: Mapping[str, object]) -> dict[str, object]:
    return {name: params[name] for name in statement.named_parameters if name in params}
