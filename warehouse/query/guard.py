"""Typed queries: they may read the warehouse and make tables in memory, but use no other file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.storage.opening import OpenWarehouse
from plumbline.warehouse.text.escape import is_unicode

if TYPE_CHECKING:
    import pyarrow as pa


class UnknownName(UsageProblem):
    """A query uses a name that doesn't exist."""


@contextmanager
def one_line() -> Iterator[None]:
    """Turn DuckDB's errors, except lack of memory, into ``UsageProblem`` with their message."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise
    except OverflowError as e:
        problem = "a value is beyond what Python can hold"
        raise UsageProblem("SQL", problem, "cast that column to VARCHAR") from e
    except duckdb.Error as e:
        kind = UnknownName if isinstance(e, duckdb.CatalogException) else UsageProblem
        message = " ".join(str(e).split("\n\nLINE ")[0].split())
        fix = "names and columns: docs/tables.md, docs/sql.md"
        if isinstance(e, duckdb.PermissionException):
            fix = "a query reads and writes other files than the warehouse's only with --write"
        raise kind("SQL", message, fix) from None


def read_only(
    source: str | Path | OpenWarehouse, text: str, params: Mapping[str, object] | None = None
) -> pa.Table:
    """Rows of a query that a person typed, with its ``$params``.

    Raises as ``one_line``, and ``UsageProblem`` for a statement without rows.

    >>> import tempfile
    >>> store = OpenWarehouse.open(tempfile.mkdtemp() + "/w")
    >>> read_only(store, "SELECT $n + 1 AS n", {"n": 1}).to_pylist()
    [{'n': 2}]
    """
    try:
        return _rows(source, text, text, params or {})
    except UnknownName:  # with all views made, DuckDB suggests the nearest of all names
        return _rows(source, None, text, params or {})


def _rows(
    source: str | Path | OpenWarehouse, needed: str | None, text: str, params: Mapping[str, object]
) -> pa.Table:
    with connect(source, needed) as connection, one_line():
        lock(connection)
        last = last_statement(connection, text, params)
        result = connection.sql(last, params=_params_of(last, params))
        if result is None:
            raise UsageProblem("SQL", "the statement gives no rows")
        return result.to_arrow_table()


def lock(connection: duckdb.DuckDBPyConnection, *, write: bool = False) -> None:
    """Keep a connection's queries from Python variables and, unless ``write``, from other files.

    Of files, they can then only read those of the warehouse. Settings can't be changed any more;
    ``SET VARIABLE`` still works.
    """
    off = ["python_enable_replacements", "allow_persistent_secrets"]
    for setting in off if write else [*off, "enable_external_access"]:
        connection.execute(f"SET {setting} = false")
    connection.execute("SET lock_configuration = true")


def last_statement(
    connection: duckdb.DuckDBPyConnection, text: str, params: Mapping[str, object] | None = None
) -> duckdb.Statement:
    """Run all statements of a text except the last; return the last, for the caller to run.

    Raises ``UsageProblem`` for a text that isn't Unicode or has no statement, ``duckdb.Error`` for
    invalid SQL.
    """
    if not is_unicode(text):
        raise UsageProblem("SQL", "is not Unicode", "type it in UTF-8")
    if "use_tmp_file" in text.lower():  # without its temporary file, COPY may replace what is read
        raise UsageProblem("USE_TMP_FILE", "could damage the warehouse", "leave it out")
    statements = connection.extract_statements(text)
    if not statements:
        raise UsageProblem("SQL", "there is no statement in it")
    for statement in statements[:-1]:
        connection.execute(statement, _params_of(statement, params or {})).fetchall()
    return statements[-1]


def _params_of(statement: duckdb.Statement, params: Mapping[str, object]) -> dict[str, object]:
    return {name: params[name] for name in statement.named_parameters if name in params}
