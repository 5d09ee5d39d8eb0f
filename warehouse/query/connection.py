"""A DuckDB connection on a warehouse, with one view a table and the derived views of ``sql/``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from importlib import resources
from pathlib import Path

import duckdb
import pyarrow as pa

from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import Table
from plumbline.warehouse.storage.form import tables_of_older_form
from plumbline.warehouse.storage.retry_reads import steadily
from plumbline.warehouse.storage.store import Store

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
    # A view is bound when it is made, with all that it reads: in place of files, empty tables.
    connection.execute(_derived_views())
    for table in TABLES.values():
        try:
            steadily(partial(_make_view, connection, store, table))
        except duckdb.Error as e:
            problem = f"a file of {table.name} can't be read: {str(e).splitlines()[0]}"
            fix = f"move {store.root / table.name} away and write it again"
            raise BadInput(f"warehouse {store.root}", problem, fix) from e
    return connection


@cache
def _derived_views() -> str:
    """Makes the views of ``sql/`` on tables that are gone again at the end."""
    tables = []
    for table in TABLES.values():
        columns = ", ".join(f'"{c.name}" {_SQL_TYPES[c.type]}' for c in table.columns)
        tables.append(f'CREATE TABLE "{table.name}" ({columns})')
    views = [sql(name) for name in sql_names("views")]
    gone = [f'DROP TABLE "{name}"' for name in TABLES]
    return ";\n".join([*tables, *views, *gone])


def _make_view(connection: duckdb.DuckDBPyConnection, store: Store, table: Table) -> None:
    connection.execute(table_view(store, table))


def table_view(store: Store, table: Table, place: Path | None = None) -> str:
    """The statement that makes a table's view over its Parquet files; empty without any.

    ``place`` is what the statement calls the warehouse's directory, its absolute path otherwise.
    """
    create = f'CREATE OR REPLACE VIEW "{table.name}" AS SELECT'
    columns = ", ".join(f'"{c.name}"' for c in table.columns)
    if next((store.root / table.name).glob("**/*.parquet"), None) is None:
        nulls = ", ".join(f'NULL::{_SQL_TYPES[c.type]} AS "{c.name}"' for c in table.columns)
        return f"{create} {nulls} WHERE false"
    files = (place or store.root.resolve()) / table.name / "**" / "*.parquet"
    pattern = str(files).replace("'", "''")
    source = f"read_parquet('{pattern}', hive_partitioning = false)"
    if not table.partitions or table.name in tables_of_older_form(store.root):
        source = _with_new_columns(table, pattern)
    return f"{create} {columns} FROM {source}"


def _with_new_columns(table: Table, pattern: str) -> str:
    """Files of which some may be from before their table gained a column: NULL there."""
    nulls = [f'NULL::{_SQL_TYPES[c.type]} AS "{c.name}"' for c in table.columns if c.nullable]
    files = f"read_parquet('{pattern}', hive_partitioning = false, union_by_name = true)"
    return f"(SELECT {', '.join(nulls)} WHERE false UNION ALL BY NAME FROM {files})"


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
    return steadily(lambda: connection.sql(text, params=given).to_arrow_table())
