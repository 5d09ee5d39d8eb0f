"""Typed queries: they may read the warehouse and make tables in memory, but use no other file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import connect, relation_names
from plumbline.warehouse.storage.opening import OpenWarehouse
from plumbline.warehouse.text.escape import is_unicode

if TYPE_CHECKING:
    import pyarrow as pa

#: Settings that keep queries from all files but those that ``connect`` allowed. They can't be
#: changed any more; ``SET VARIABLE`` still works.
READ_ONLY = """SET allow_persistent_secrets = false;
SET enable_external_access = false;
SET lock_configuration = true;"""

#: DuckDB's error for an unknown table, up to its suggestion: it knows only the views of the query.
_UNKNOWN = re.compile(r"(Catalog Error: Table (?:Function )?with name (\w+) does not exist)!.*")


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
        message = " ".join(str(e).split("\n\nLINE ")[0].split())
        if unknown := _UNKNOWN.match(message):
            similar = " or ".join(get_close_matches(unknown[2], relation_names(), 3))
            message = unknown[1] + (f", did you mean {similar}?" if similar else "")
        fix = "names and columns: docs/tables.md, docs/sql.md"
        if isinstance(e, duckdb.PermissionException):
            fix = "a query uses no file but the warehouse's: see `plumbline sql --init`"
        raise UsageProblem("SQL", message, fix) from None


def read_only(
    source: str | Path | OpenWarehouse, text: str, params: Mapping[str, object] | None = None
) -> pa.Table:
    """Rows of a query that a person typed, with its ``$params``.

    Raises as ``one_line``, and ``UsageProblem`` for a statement without rows.
    """
    with connect(source, text) as connection, one_line():
        lock(connection)
        last = last_statement(connection, text, params)
        result = connection.sql(last, params=_params_of(last, params or {}))
        if result is None:
            raise UsageProblem("SQL", "the statement gives no rows")
        return result.to_arrow_table()


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Keep a connection's queries from Python variables and from other files."""
    connection.execute(f"SET python_enable_replacements = false; {READ_ONLY}")


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
