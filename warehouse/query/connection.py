"""A DuckDB connection on a warehouse: a view of each table, and those of ``sql/views``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

import duckdb
import pyarrow as pa

from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import Table
from plumbline.warehouse.storage.format import older_tables
from plumbline.warehouse.storage.paths import parquet_files
from plumbline.warehouse.storage.store import Store, retry_missing
from plumbline.warehouse.text.escape import sql_text

_SQL_TYPES = {
    pa.string(): "VARCHAR",
    pa.bool_(): "BOOLEAN",
    pa.int64(): "BIGINT",
    pa.int32(): "INTEGER",
    pa.float64(): "DOUBLE",
    pa.float32(): "FLOAT",
    pa.timestamp("us", tz="UTC"): "TIMESTAMPTZ",
}


def connect(root: str | Path) -> duckdb.DuckDBPyConnection:
    """Open an in-memory DuckDB with a view for each table over the Parquet files.

    A table without files is an empty view with the right columns. Nothing is written to the
    warehouse, and DuckDB neither loads nor fetches extensions. Raises ``BadInput`` when ``root``
    is not a warehouse of this version, or a table's file is damaged or has other columns.

    >>> import tempfile
    >>> connection = connect(Store.open(tempfile.mkdtemp() + "/w").root)
    >>> connection.execute("SELECT count(*) FROM pair_score").fetchone()
    (0,)
    """
    store = Store.open(root, create=False)
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )
    connection.execute("SET TimeZone = 'UTC'")
    # A view is bound to what it reads when it is made: to empty tables here, to files below.
    connection.execute(_derived_views())
    for table in TABLES.values():
        _make_view(connection, store, table)
    return connection


def _make_view(connection: duckdb.DuckDBPyConnection, store: Store, table: Table) -> None:
    try:
        retry_missing(lambda: connection.execute(table_view(store, table)))
    except duckdb.Error as e:
        problem = f"a file of {table.name} can't be read: {str(e).splitlines()[0]}"
        fix = f"move {store.root / table.name} away and write it again"
        raise BadInput(f"warehouse {store.root}", problem, fix) from e


@cache
def _derived_views() -> str:
    """Statements that make the views of ``sql/views`` on empty tables and drop these again."""
    tables = []
    for table in TABLES.values():
        columns = ", ".join(f'"{c.name}" {_SQL_TYPES[c.type]}' for c in table.columns)
        tables.append(f'CREATE TABLE "{table.name}" ({columns})')
    views = [sql(name) for name in sql_names("views")]
    drops = [f'DROP TABLE "{name}"' for name in TABLES]
    return ";\n".join([*tables, *views, *drops])


def table_view(store: Store, table: Table, place: Path | None = None) -> str:
    """The statement that makes a table's view over its Parquet files; empty without any.

    ``place`` is what the statement calls the warehouse's directory, its absolute path otherwise.
    """
    create = f'CREATE OR REPLACE VIEW "{table.name}" AS SELECT'
    columns = ", ".join(f'"{c.name}"' for c in table.columns)
    directory = store.root / table.name
    if next(directory.glob("**/*.parquet"), None) is None and not parquet_files(directory):
        nulls = ", ".join(f'NULL::{_SQL_TYPES[c.type]} AS "{c.name}"' for c in table.columns)
        return f"{create} {nulls} WHERE false"
    files = (place or store.root.resolve()) / table.name / "**" / "*.parquet"
    pattern = sql_text(str(files))
    source = f"read_parquet({pattern}, hive_partitioning = false)"
    if not table.partitions or table.name in older_tables(store.root):
        source = _with_new_columns(table, pattern)
    return f"{create} {columns} FROM {source}"


def _with_new_columns(table: Table, pattern: str) -> str:
    """Files of which some may be from before their table gained a column: NULL there."""
    nulls = [f'NULL::{_SQL_TYPES[c.type]} AS "{c.name}"' for c in table.columns if c.nullable]
    files = f"read_parquet({pattern}, hive_partitioning = false, union_by_name = true)"
    return f"(SELECT {', '.join(nulls)} WHERE false UNION ALL BY NAME FROM {files})"


def init_sql(root: str | Path, relative_to: Path | None = None) -> str:
    """SQL that makes a view for each table of the warehouse at ``root``, and all views and macros.

    Args:
        relative_to: the Parquet files are named by their path from this directory, in which DuckDB
            then has to be started; without it by their absolute path.

    A table that has no files yet is an empty view: make the file again once it has. Raises
    ``BadInput`` when ``root`` is not a warehouse of this version.

    >>> import tempfile
    >>> init_sql(Store.open(tempfile.mkdtemp() + "/w").root).count('CREATE OR REPLACE VIEW "run"')
    1
    """
    store = Store.open(root, create=False)
    place = store.root.resolve()
    where = "anywhere"
    if relative_to is not None:
        place = Path(os.path.relpath(place, relative_to.resolve()))
        where = "in this file's directory"
    parts = [
        "-- A Plumbline warehouse: a view for each table, then the views and functions on them.\n"
        f"-- Start DuckDB {where}: duckdb -init FILE\n"
        "SET TimeZone = 'UTC';"
    ]
    parts += [f"{table_view(store, table, place)};" for table in TABLES.values()]
    parts += [sql(name).strip() for name in sql_names("views")]
    return "\n\n".join(parts) + "\n"


def model_labels(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """What to call each scoring identity where names are shown, by model key (`model_label`)."""
    rows = connection.execute("SELECT model_key, label FROM model_label").fetchall()
    return {str(key): str(label) for key, label in rows}


def sql_names(folder: str) -> list[str]:
    """Names of the SQL files of ``warehouse/sql/<folder>``, sorted: ``metrics/us`` for `us.sql`."""
    files = (resources.files("plumbline.warehouse.sql") / folder).iterdir()
    return sorted(f"{folder}/{f.name[:-4]}" for f in files if f.name.endswith(".sql"))


def sql(name: str) -> str:
    """Text of ``warehouse/sql/<name>.sql``, such as ``metrics/us``.

    Raises ``UsageProblem`` where there is no such file.
    """
    file = resources.files("plumbline.warehouse.sql") / f"{name}.sql"
    if not file.is_file():
        raise UsageProblem(f"SQL {name!r}", f"there is no file warehouse/sql/{name}.sql")
    return file.read_text(encoding="utf-8")


def query(
    connection: duckdb.DuckDBPyConnection, name: str, params: Mapping[str, object] | None = None
) -> pa.Table:
    """Run ``warehouse/sql/<name>.sql`` with those of ``params`` that it names as ``$name``."""
    text = sql(name)
    named = {p for s in connection.extract_statements(text) for p in s.named_parameters}
    given = {key: value for key, value in (params or {}).items() if key in named}
    return retry_missing(lambda: connection.sql(text, params=given).to_arrow_table())
