"""All views and macros of a warehouse as one SQL file, for people with a DuckDB of their own.

``duckdb -init FILE`` and Python's ``duckdb`` run it as it is; it needs nothing of Plumbline.
"""

from __future__ import annotations

import os
from pathlib import Path

from plumbline.warehouse.query.connection import sql, sql_names, table_view
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store


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
