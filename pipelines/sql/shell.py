"""A single query, and the shell of `plumbline sql`."""

from __future__ import annotations

import atexit
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from plumbline.pipelines.sql.result_output import show
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import unfilled
from plumbline.warehouse.query.guard import last_statement, one_line
from plumbline.warehouse.query.reference import WorkedQuestion, questions
from plumbline.warehouse.text.escape import say

if TYPE_CHECKING:
    import duckdb

_HISTORY = Path.home() / ".plumbline_sql_history"
_HELP = (
    ".tables  .schema NAME  .examples [NUMBER]  .quit  Tab completes names\n"
    "A query ends with ; or an empty line."
)


def run_query(
    connection: duckdb.DuckDBPyConnection, text: str, *, write: bool = False
) -> tuple[list[str], list[Any]]:
    """Column names and rows of a query; ``([], [])`` for a statement without a result.

    Raises ``UsageProblem`` with DuckDB's own explanation, in one line, for a bad query and, unless
    ``write``, for a query that may write files.

    >>> import duckdb
    >>> run_query(duckdb.connect(), "SELECT 1 AS one")
    (['one'], [(1,)])
    """
    with one_line():
        cursor = connection.execute(last_statement(connection, text, write=write))
        if not cursor.description:
            return [], []
        return [column[0] for column in cursor.description], cursor.fetchall()


def tables(connection: duckdb.DuckDBPyConnection) -> tuple[list[str], list[Any]]:
    """Names, row counts and number of columns of all tables and views. Raises as ``run_query``."""
    rows = []
    with one_line():
        for (name,) in connection.execute("SHOW TABLES").fetchall():
            relation = connection.table(name)
            rows.append((name, len(relation), len(relation.columns)))
    return ["table or view", "rows", "columns"], rows


def shell(
    connection: duckdb.DuckDBPyConnection,
    console: Console,
    read: Callable[[str], str] = input,
    *,
    write: bool = False,
) -> None:
    """Read queries and dot commands until ``.quit`` or the end of the input.

    A bad query prints its error in one line and the shell stays open; Ctrl-C drops the input. An
    unfinished query runs at the end of the input, and raises ``UsageProblem`` if it is bad.
    """
    console.print(Text(_HELP, style="dim"))
    for question in questions():
        listed = Text(f"  .examples {question.number:<3} {question.question}")
        console.print(listed, soft_wrap=True)
    typed: list[str] = []
    while True:
        try:
            line = read("  ...> " if typed else "plumbline> ")
            if not typed and line.strip().startswith("."):
                if not _dot_command(connection, console, line.split()):
                    return
                continue
            typed += [line] if line.strip() else []
            if typed and (not line.strip() or line.rstrip().endswith(";")):
                query, typed = "\n".join(typed), []
                answer(connection, console, query, write=write)
        except UsageProblem as e:
            console.print(Text(str(e), style="red"), soft_wrap=True)
        except KeyboardInterrupt:
            typed = []
            console.print()
        except EOFError:
            if typed:
                answer(connection, console, "\n".join(typed), write=write)
            return


def answer(
    connection: duckdb.DuckDBPyConnection, console: Console, text: str, *, write: bool
) -> None:
    """Print the rows of a query, or which commands fill the tables that it found empty."""
    names, rows = run_query(connection, text, write=write)
    show(console, names, rows)
    if names and not rows:
        say_unfilled(connection, text)


def say_unfilled(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """Name the commands that fill the tables that a query found empty, on standard error."""
    if line := unfilled(connection, text):
        say(line, err=True)


def _dot_command(
    connection: duckdb.DuckDBPyConnection, console: Console, words: Sequence[str]
) -> bool:
    """Run a dot command; false when the shell is to end."""
    name, rest = words[0], words[1:]
    if name in (".quit", ".exit"):
        return False
    if name == ".tables":
        show(console, *tables(connection))
    elif name == ".schema" and len(rest) == 1:
        quoted = '"' + rest[0].replace('"', '""') + '"'
        query = f"SELECT column_name, column_type FROM (DESCRIBE {quoted})"
        show(console, *run_query(connection, query))
    elif name == ".examples":
        _examples(connection, console, rest)
    else:
        console.print(Text(_HELP))
    return True


def _examples(
    connection: duckdb.DuckDBPyConnection, console: Console, numbers: Sequence[str]
) -> None:
    """Show the worked questions of these numbers, with answers; of no numbers, all questions."""
    worked = {str(question.number): question for question in questions()}
    for number in numbers:
        if number not in worked:
            raise UsageProblem(f"example {number}", f"there are 1 to {len(worked)}", "`.examples`")
        _example(console, worked[number])
        show(console, *run_query(connection, worked[number].query))
    if not numbers:
        for question in worked.values():
            _example(console, question)


def _example(console: Console, example: WorkedQuestion) -> None:
    from rich.syntax import Syntax

    console.print(Text(f"\nexample {example.number}: {example.question}", style="bold"))
    console.print(Text(example.meaning))
    look: Any = {"theme": "ansi_dark", "background_color": "default", "word_wrap": True}
    console.print(Syntax(example.query, "sql", **look))
    console.print()


def remember_lines() -> None:
    """With readline, let ``input`` edit lines and keep their history in a file; else do nothing."""
    try:
        import readline
    except ImportError:
        return
    with suppress(OSError):
        readline.read_history_file(_HISTORY)

    def save() -> None:
        with suppress(OSError):
            readline.set_history_length(1000)
            readline.write_history_file(_HISTORY)

    atexit.register(save)


#: Commands of the shell itself; ``.schema`` ends with a space, since a name follows.
DOT_COMMANDS = (".examples", ".exit", ".quit", ".schema ", ".tables")
#: Characters that separate words; a dot is part of a word (`.tables`, `p.word`).
DELIMITERS = " \t\n()[]{},;:=<>!+-*/%|&^~'\"`"
_WORD = re.compile(f"[^{re.escape(DELIMITERS)}]*$")
_NAMES = "SELECT view_name FROM duckdb_views() WHERE NOT internal"
_COLUMNS = "SELECT DISTINCT column_name FROM duckdb_columns() WHERE NOT internal"
_MACROS = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal"


def completions(connection: duckdb.DuckDBPyConnection, text: str) -> list[str]:
    """Completions of the last word of ``text``, sorted; empty when nothing fits.

    A dot that begins the line is completed to dot commands; ``.schema`` is followed by views (a
    warehouse's tables are views too); FROM, JOIN, DESCRIBE and SUMMARIZE by views and table macros;
    ``p.`` by all columns, each as ``p.column``. Elsewhere views, columns and macros fit. A macro
    ends with its opening bracket. Case does not matter. Text in single quotes isn't completed.

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
        names = list(DOT_COMMANDS)
    elif before == ".schema":
        names = _first(connection, _NAMES)
    elif re.search(r"\b(from|join|describe|summarize)$", before, re.IGNORECASE):
        names = _first(connection, _NAMES)
        names += _macros(connection, "table_macro")
    elif "." in word:
        table = word.rsplit(".", 1)[0]
        names = [f"{table}.{column}" for column in _first(connection, _COLUMNS)]
    else:
        names = _first(connection, _NAMES) + _first(connection, _COLUMNS)
        names += _macros(connection, "macro") + _macros(connection, "table_macro")
    return sorted(
        {name for name in names if name.isprintable() and name.lower().startswith(word.lower())}
    )


def _first(connection: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    return [row[0] for row in connection.execute(query).fetchall()]


def _macros(connection: duckdb.DuckDBPyConnection, kind: str) -> list[str]:
    return [f"{name}(" for name in _first(connection, f"{_MACROS} AND function_type = '{kind}'")]


def completer(
    connection: duckdb.DuckDBPyConnection, line: Callable[[], str]
) -> Callable[[str, int], str | None]:
    """A function for readline, which asks for ``completions`` by number from 0 until it gets None.

    ``line`` returns the text up to the cursor.
    """
    matches: list[str] = []

    def complete(word: str, state: int) -> str | None:
        if state == 0:
            matches[:] = completions(connection, line())
        return matches[state] if state < len(matches) else None

    return complete


def complete_with_tab(connection: duckdb.DuckDBPyConnection) -> None:
    """Let Tab complete in ``input``; without readline, do nothing."""
    try:
        import readline
    except ImportError:
        return

    def typed() -> str:
        return readline.get_line_buffer()[: readline.get_endidx()]

    readline.set_completer_delims(DELIMITERS)
    readline.set_completer(completer(connection, typed))
    # On macOS the module readline may be libedit, whose settings are written otherwise.
    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
