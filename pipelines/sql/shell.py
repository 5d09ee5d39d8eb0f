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
from plumbline.warehouse.query.connection import package_of, unfilled
from plumbline.warehouse.query.guard import last_statement, one_line
from plumbline.warehouse.query.reference import WorkedQuestion, questions
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.text.escape import say

if TYPE_CHECKING:
    import duckdb

_HISTORY = Path.home() / ".plumbline_sql_history"
_HELP = (
    ".tables  .schema NAME  .examples [NUMBER...]  .quit  Tab completes names\n"
    "A query ends with ; or an empty line."
)


def run_query(connection: duckdb.DuckDBPyConnection, text: str) -> tuple[list[str], list[Any]]:
    """Column names and rows of a query; ``([], [])`` for a statement without a result.

    Raises ``UsageProblem`` for a bad query, with DuckDB's message in one line.

    >>> import duckdb
    >>> run_query(duckdb.connect(), "SELECT 1 AS one")
    (['one'], [(1,)])
    """
    with one_line():
        cursor = connection.execute(last_statement(connection, text))
        if not cursor.description:
            return [], []
        return [column[0] for column in cursor.description], cursor.fetchall()


def tables(connection: duckdb.DuckDBPyConnection) -> tuple[list[str], list[Any]]:
    """Headings and rows: name, number of rows, number of columns of each table and view.

    If other packages add some, a further column names their package.
    """
    rows = []
    with one_line():
        for (name,) in connection.execute("SHOW TABLES").fetchall():
            relation = connection.table(name)
            rows.append((name, len(relation), len(relation.columns), package_of(name)))
    names = ["table or view", "rows", "columns", "package"]
    n_columns = len(names) if any(row[-1] for row in rows) else len(names) - 1
    return names[:n_columns], [row[:n_columns] for row in rows]


def shell(
    connection: duckdb.DuckDBPyConnection, console: Console, read: Callable[[str], str] = input
) -> None:
    """Read queries and dot commands until ``.quit`` or the end of the input.

    A bad query prints its error in one line, and the shell continues. Ctrl-C drops the typed query.
    At the end of the input, an unfinished query runs and raises ``UsageProblem`` if it is bad.
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
                answer(connection, console, query)
        except UsageProblem as e:
            console.print(Text(str(e), style="red"), soft_wrap=True)
        except KeyboardInterrupt:
            typed = []
            console.print()
        except EOFError:
            if typed:
                answer(connection, console, "\n".join(typed))
            return


def answer(connection: duckdb.DuckDBPyConnection, console: Console, text: str) -> None:
    """Print the rows of a query; without rows, also print which commands fill its empty tables."""
    names, rows = run_query(connection, text)
    show(console, names, rows)
    if names and not rows:
        say_unfilled(connection, text)


def say_unfilled(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """Print on standard error which commands fill the empty tables that a query reads."""
    if line := unfilled(connection, text):
        say(line, err=True)


def _dot_command(
    connection: duckdb.DuckDBPyConnection, console: Console, words: Sequence[str]
) -> bool:
    """Run a dot command; returns False to end the shell."""
    name, rest = words[0], words[1:]
    if name in (".quit", ".exit"):
        return False
    if name == ".tables":
        show(console, *tables(connection))
    elif name == ".schema" and len(rest) == 1:
        _schema(connection, console, rest[0])
    elif name == ".examples":
        _examples(connection, console, rest)
    else:
        console.print(Text(_HELP))
    return True


def _schema(connection: duckdb.DuckDBPyConnection, console: Console, name: str) -> None:
    """Show the columns of a table as it is declared, or of a view."""
    if name in TABLES:
        table, package = TABLES[name], package_of(name)
        about = f"{table.description} Written by {table.how_filled}{package and f' of {package}'}."
        console.print(Text(about), soft_wrap=True)
        rows = [(c.name, c.sql_type, c.unit, c.description) for c in table.columns]
        show(console, ["column", "type", "unit", "meaning"], rows)
    else:
        quoted = '"' + name.replace('"', '""') + '"'
        query = f"SELECT column_name, column_type FROM (DESCRIBE {quoted})"
        show(console, *run_query(connection, query))


def _examples(
    connection: duckdb.DuckDBPyConnection, console: Console, numbers: Sequence[str]
) -> None:
    """Show worked questions by number, with answers; without numbers, all questions alone."""
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
    """Let ``input`` edit lines and save their history in a file; without readline, do nothing."""
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
    """Completions of the last word of ``text``, sorted; empty if nothing matches.

    A dot at the start is completed to dot commands. Views, among them a warehouse's tables, follow
    ``.schema``; views and table macros follow FROM, JOIN, DESCRIBE and SUMMARIZE; all columns, as
    ``p.column``, follow ``p.``; views, columns and macros complete other words. A macro ends with
    its opening bracket. Case does not matter. Text in single quotes isn't completed.

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
    """A function that returns completion number ``state`` to readline, and None after the last one.

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
    # On macOS the module readline may be libedit, whose settings have another syntax.
    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
