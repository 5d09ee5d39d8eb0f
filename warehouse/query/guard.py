"""Guard for typed queries: they may read, and make tables in memory, but not write files."""

from __future__ import annotations

import re
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

#: Kinds of statements that read, or only change tables and settings in memory.
_READING = frozenset(
    {"SELECT", "CREATE", "INSERT", "UPDATE", "DELETE", "MERGE_INTO", "ALTER", "DROP", "SET"}
    | {"VARIABLE_SET", "TRANSACTION", "ANALYZE", "VACUUM", "RELATION"}
)
#: Kinds that may write files, or contain another statement of any kind.
_WRITING = frozenset(
    {"COPY", "EXPORT", "COPY_DATABASE", "ATTACH", "DETACH", "PREPARE", "EXECUTE", "PRAGMA"}
    | {"CALL", "MULTI", "EXPLAIN"}
)
#: Kinds whose plan shows whether they write, run JSON as SQL, or only read.
_PLANNED = frozenset(
    {"SELECT", "CREATE", "INSERT", "UPDATE", "DELETE", "MERGE_INTO", "MULTI", "RELATION"}
    | {"EXPLAIN"}
)
#: Nodes of a plan that may write: a COPY can be the body of a WITH, and SQL can come as JSON.
_WRITING_NODE = re.compile(r'"name": *"([^"]*COPY[^"]*|JSON_EXECUTE_SERIALIZED_SQL)"')
#: First words of `MULTI` statements that only read: DuckDB splits a pivot into several.
_PIVOTING = frozenset({"pivot", "unpivot", "from", "with", "select", "create", "insert"})


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
        raise kind("SQL", message, "names and columns: docs/tables.md, docs/sql.md") from None


def read_only(
    source: str | Path | OpenWarehouse, text: str, params: Mapping[str, object] | None = None
) -> pa.Table:
    """Rows of a query that a person typed, with its ``$params``.

    Raises as ``check`` and ``one_line``, and ``UsageProblem`` for a statement without rows.

    >>> import tempfile
    >>> store = OpenWarehouse.open(tempfile.mkdtemp() + "/w")
    >>> read_only(store, "SELECT $n + 1 AS n", {"n": 1}).to_pylist()
    [{'n': 2}]
    """
    try:
        return _rows(source, text, text, params)
    except UnknownName:  # with all views made, DuckDB suggests the nearest of all names
        return _rows(source, None, text, params)


def _rows(
    source: str | Path | OpenWarehouse,
    needed: str | None,
    text: str,
    params: Mapping[str, object] | None,
) -> pa.Table:
    with connect(source, needed) as connection, one_line():
        lock(connection)
        last = last_statement(connection, text, params)
        result = connection.sql(last, params=_params_of(last, params))
        if result is None:
            raise UsageProblem("SQL", "the statement gives no rows")
        return result.to_arrow_table()


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Lock a connection's settings, and keep its queries from Python variables and stored secrets.

    Some settings name files that DuckDB writes, others let it fetch extensions. ``SET VARIABLE``
    still works.
    """
    for setting in ("python_enable_replacements", "allow_persistent_secrets"):
        connection.execute(f"SET {setting} = false")
    connection.execute("SET lock_configuration = true")


def last_statement(
    connection: duckdb.DuckDBPyConnection,
    text: str,
    params: Mapping[str, object] | None = None,
    *,
    write: bool = False,
) -> duckdb.Statement:
    """Run all statements of a text except the last; return the last, for the caller to run.

    Raises as ``check`` before it runs anything. Unless ``write``, raises ``UsageProblem`` for a
    statement whose plan writes files; a plan is known once the earlier statements have run.
    """
    check(connection, text, write=write)
    *before, last = connection.extract_statements(text)
    for statement in before:
        _refuse_writing_plan(connection, statement, params, write)
        connection.execute(statement, _params_of(statement, params))
    _refuse_writing_plan(connection, last, params, write)
    return last


def _params_of(
    statement: duckdb.Statement, params: Mapping[str, object] | None
) -> dict[str, object]:
    values = params or {}
    return {name: values[name] for name in statement.named_parameters if name in values}


def _refuse_writing_plan(
    connection: duckdb.DuckDBPyConnection,
    statement: duckdb.Statement,
    params: Mapping[str, object] | None,
    write: bool,
) -> None:
    if write or _kind(statement) not in _PLANNED:
        return
    text, words = statement.query, _tokens(statement.query)
    if words and words[0][1] == "explain":
        text = text[_after_explain(words) :]
    plan = connection.execute(f"EXPLAIN (FORMAT json) {text}", _params_of(statement, params))
    if node := _WRITING_NODE.search(str(plan.fetchall())):
        what = "COPY" if "COPY" in node[1] else "json_execute_serialized_sql"
        raise UsageProblem(what, "may write files, which a query may not", "use --write")


def check(connection: duckdb.DuckDBPyConnection, text: str, *, write: bool = False) -> None:
    """Refuse statements that load code and, unless ``write``, those that may write files.

    Nothing is run. Raises ``UsageProblem`` naming the kind; ``duckdb.Error`` for invalid SQL.

    >>> check(duckdb.connect(), "SELECT 1; CREATE TABLE t AS SELECT 2")
    >>> check(duckdb.connect(), "COPY (SELECT 1) TO 'x.csv'")
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.UsageProblem: COPY: may write files, which a query may not (use \
--write)
    """
    if not is_unicode(text):
        raise UsageProblem("SQL", "is not Unicode", "type it in UTF-8")
    statements = connection.extract_statements(text)
    if not statements:
        raise UsageProblem("SQL", "there is no statement in it")
    for statement in statements:
        kind = _kind(statement)
        if kind in _READING or (kind in _WRITING and (write or _only_reads(connection, statement))):
            continue
        if kind in _WRITING:
            first = (_tokens(statement.query) or [(0, kind)])[0][1].upper()
            raise UsageProblem(first, "may write files, which a query may not", "use --write")
        raise UsageProblem(kind, "loads or fetches extensions, which a query may not")


def _kind(statement: duckdb.Statement) -> str:
    try:
        return statement.type.name
    except ValueError:  # the Python module lacks a name for this kind
        return "statement"


def _only_reads(connection: duckdb.DuckDBPyConnection, statement: duckdb.Statement) -> bool:
    """True if an EXPLAIN or a `MULTI` statement only reads; false for other kinds."""
    kind, text = _kind(statement), statement.query
    words = _tokens(text)
    if kind == "MULTI" and words[0][1] in _PIVOTING:
        return True
    if not words or words[0][1] != "explain":
        return False
    try:
        check(connection, text[_after_explain(words) :])
    except (UsageProblem, duckdb.Error):
        return False
    return True


def _after_explain(words: list[tuple[int, str]]) -> int:
    """Offset of the statement that an EXPLAIN explains, after ANALYZE and options in brackets."""
    i = 1
    if words[i:] and words[i][1] == "analyze":
        i += 1
    if words[i + 1 :] and words[i][1] == "(" and words[i + 1][1] in ("analyze", "format"):
        while words[i:] and words[i][1] != ")":
            i += 1
        i += 1
    return words[i][0] if words[i:] else words[0][0]


def _tokens(text: str) -> list[tuple[int, str]]:
    """Each token that isn't a comment: its offset in characters and its lowercase text."""
    encoded = text.encode()  # DuckDB counts offsets in bytes
    tokens = duckdb.tokenize(text)
    ends = [start for start, _ in tokens[1:]] + [len(encoded)]
    return [
        (len(encoded[:start].decode()), encoded[start:end].decode().strip().lower())
        for (start, kind), end in zip(tokens, ends, strict=True)
        if kind != duckdb.token_type.comment
    ]
