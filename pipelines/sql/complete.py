"""Completion with Tab for the shell of ``plumbline sql``: names of the warehouse, dot commands."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

#: What the shell answers itself; a space follows the one that needs a name.
DOT_COMMANDS = (".examples", ".exit", ".quit", ".schema ", ".tables")
#: Where a word begins; a dot is part of it (`.tables`, `p.word`).
DELIMITERS = " \t\n()[]{},;:=<>!+-*/%|&^~'\"`"
_WORD = re.compile(f"[^{re.escape(DELIMITERS)}]*$")
_NAMES = "SELECT view_name FROM duckdb_views() WHERE NOT internal"
_COLUMNS = "SELECT DISTINCT column_name FROM duckdb_columns() WHERE NOT internal"
_MACROS = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal"


def completions(connection: duckdb.DuckDBPyConnection, text: str) -> list[str]:
    """Completions of the last word of ``text``, sorted; empty when nothing fits.

    After a dot at the line's start: dot commands; after FROM and JOIN: views (tables are views
    here) and table macros; after ``.schema``: views; elsewhere columns and functions as well.
    A macro comes with its opening bracket, a column after ``p.`` with that ``p.``. Case of the word
    does not matter. A word inside quotes is text and is left alone.

    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> _ = connection.execute("CREATE VIEW tea AS SELECT 1 AS temperature")
    >>> completions(connection, "SELECT te"), completions(connection, "SELECT 1 FROM te")
    (['tea', 'temperature'], ['tea'])
    """
    word = _WORD.search(text).group()  # type: ignore[union-attr]
    before = text[: len(text) - len(word)].rstrip()
    if before.count("'") % 2:
        return []
    if word.startswith(".") and not before:
        found = list(DOT_COMMANDS)
    elif before == ".schema":
        found = _first(connection, _NAMES)
    elif re.search(r"\b(from|join|describe|summarize)$", before, re.IGNORECASE):
        found = _first(connection, _NAMES)
        found += _macros(connection, "table_macro")
    elif "." in word:
        table = word.rsplit(".", 1)[0]
        found = [f"{table}.{column}" for column in _first(connection, _COLUMNS)]
    else:
        found = _first(connection, _NAMES) + _first(connection, _COLUMNS)
        found += _macros(connection, "macro") + _macros(connection, "table_macro")
    return sorted(
        {name for name in found if name.isprintable() and name.lower().startswith(word.lower())}
    )


def _first(connection: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    return [row[0] for row in connection.execute(query).fetchall()]


def _macros(connection: duckdb.DuckDBPyConnection, kind: str) -> list[str]:
    return [f"{name}(" for name in _first(connection, f"{_MACROS} AND function_type = '{kind}'")]


def completer(
    connection: duckdb.DuckDBPyConnection, line: Callable[[], str]
) -> Callable[[str, int], str | None]:
    """``completions`` as readline asks for them: one at a time, by number from 0, None at the end.

    ``line`` gives what was typed up to the cursor.
    """
    found: list[str] = []

    def complete(word: str, state: int) -> str | None:
        if state == 0:
            found[:] = completions(connection, line())
        return found[state] if state < len(found) else None

    return complete


def complete_with_tab(connection: duckdb.DuckDBPyConnection) -> None:
    """Let Tab complete in ``input``, where the platform has readline."""
    try:
        import readline
    except ImportError:
        return

    def typed() -> str:
        return readline.get_line_buffer()[: readline.get_endidx()]

    readline.set_completer_delims(DELIMITERS)
    readline.set_completer(completer(connection, typed))
    # macOS has libedit under the name of readline; it reads other settings.
    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
