"""``plumbline sql``: one query printed as a table, or a small shell on the same connection."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipelines.sql_complete import complete_with_tab
from warehouse.connect import connect
from warehouse.errors import UsageProblem
from warehouse.sql_reference import Question, questions

if TYPE_CHECKING:
    import duckdb

#: Rows printed of a result; the rest is counted.
MAX_ROWS = 1000
_HISTORY = Path.home() / ".plumbline_sql_history"
_HELP = (
    ".tables  .schema NAME  .examples [NUMBER]  .quit  Tab completes names\n"
    "A query ends with ; or an empty line."
)


def run_query(connection: duckdb.DuckDBPyConnection, text: str) -> tuple[list[str], list[Any]]:
    """Column names and rows of a query; ``([], [])`` for a statement without a result.

    Raises ``UsageProblem`` with DuckDB's own explanation, in one line, for a bad query.

    >>> import duckdb
    >>> run_query(duckdb.connect(), "SELECT 1 AS one")
    (['one'], [(1,)])
    """
    import duckdb

    try:
        cursor = connection.execute(text)
        if not cursor.description:
            return [], []
        return [column[0] for column in cursor.description], cursor.fetchall()
    except duckdb.Error as e:
        message = str(e).split("\n\nLINE ")[0]
        raise UsageProblem("SQL", " ".join(message.split()), "`.tables` lists what there is") from e


def printable(value: object) -> str:
    """A value as one line of text that cannot steer a terminal; NULL is empty.

    >>> printable(0.30000000000000004), printable("a\\x1b[31mb"), printable(None)
    ('0.3', 'a\\\\x1b[31mb', '')
    """
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def show(console: Console, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a result with every column readable.

    As a table where it fits; on a terminal too narrow for it, as one block a row. Output that is
    not a terminal is as wide as it needs to be.
    """
    if not names:
        return
    shown = rows[:MAX_ROWS]
    cells = [[printable(v) for v in row] for row in shown]
    widths = [max([len(name), *(len(row[i]) for row in cells)]) + 3 for i, name in enumerate(names)]
    if console.is_terminal and sum(widths) > console.width and len(names) > 1:
        _show_blocks(console, names, cells)
    else:
        numbers = [_is_number(row[i] for row in shown) for i in range(len(names))]
        _show_table(console, names, cells, numbers, sum(widths) + 1)
    more = f", the first {MAX_ROWS:,} shown" if len(rows) > MAX_ROWS else ""
    console.print(Text(f"{len(rows):,} row{'' if len(rows) == 1 else 's'}{more}", style="dim"))


def _is_number(values: Iterable[object]) -> bool:
    return all(isinstance(v, int | float) or v is None for v in values)


def _show_table(
    console: Console,
    names: Sequence[str],
    cells: Sequence[Sequence[str]],
    numbers: Sequence[bool],
    width: int,
) -> None:
    table = Table(show_edge=False)
    for name, is_number in zip(names, numbers, strict=True):
        # A single column wider than the terminal is folded rather than cut.
        table.add_column(Text(name), justify="right" if is_number else "left", overflow="fold")
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    if not console.is_terminal:
        console.width = max(width, console.width)
    console.print(table)


def _show_blocks(console: Console, names: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    longest = max(map(len, names))
    for number, row in enumerate(cells, 1):
        console.print(Text(f"row {number}", style="bold"))
        for name, cell in zip(names, row, strict=True):
            console.print(Text(f"  {name:<{longest}}  ", style="dim") + Text(cell))


def tables(connection: duckdb.DuckDBPyConnection) -> tuple[list[str], list[Any]]:
    """Names, row counts and number of columns of all tables and views."""
    names = [row[0] for row in connection.execute("SHOW TABLES").fetchall()]
    rows = []
    for name in names:
        relation = connection.table(name)
        count = relation.count("*").fetchall()[0][0]
        rows.append((name, count, len(relation.columns)))
    return ["table or view", "rows", "columns"], rows


def shell(
    connection: duckdb.DuckDBPyConnection, console: Console, read: Callable[[str], str] = input
) -> None:
    """Read queries and dot commands until ``.quit`` or the end of the input.

    A bad query prints its line and the shell goes on; Ctrl-C drops what was typed.
    """
    console.print(Text(_HELP, style="dim"))
    for question in questions():
        asked = Text(f"  .examples {question.number:<3} {question.question}")
        console.print(asked, soft_wrap=True)
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
                show(console, *run_query(connection, query))
        except UsageProblem as e:
            console.print(Text(str(e), style="red"), soft_wrap=True)
        except KeyboardInterrupt:
            typed = []
            console.print()
        except EOFError:
            if typed:
                show(console, *run_query(connection, "\n".join(typed)))
            return


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
        found = run_query(connection, f"SELECT column_name, column_type FROM (DESCRIBE {quoted})")
        show(console, *found)
    elif name == ".examples":
        _examples(connection, console, rest)
    else:
        console.print(Text(_HELP))
    return True


def _examples(
    connection: duckdb.DuckDBPyConnection, console: Console, numbers: Sequence[str]
) -> None:
    """Show the worked questions; those asked for by number also with their answer."""
    known = {str(question.number): question for question in questions()}
    for number in numbers:
        if number not in known:
            raise UsageProblem(f"example {number}", f"there are 1 to {len(known)}", "`.examples`")
        _example(console, known[number])
        show(console, *run_query(connection, known[number].query))
    if not numbers:
        for question in known.values():
            _example(console, question)


def _example(console: Console, example: Question) -> None:
    from rich.syntax import Syntax

    console.print(Text(f"\nexample {example.number}: {example.question}", style="bold"))
    console.print(Text(example.meaning))
    theme = "ansi_dark"
    console.print(
        Syntax(example.query, "sql", theme=theme, background_color="default", word_wrap=True)
    )
    console.print()


def _remember_lines() -> None:
    """Give ``input`` editing and a history that outlives the shell, where the platform can."""
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


def command(
    query: Annotated[str, typer.Argument(help="One query; without it a shell opens.")] = "",
    warehouse: Annotated[
        Path, typer.Option(help="Warehouse directory.", envvar="PLUMBLINE_WAREHOUSE")
    ] = Path("out/warehouse"),
) -> None:
    """Ask the warehouse in SQL: one query, or a shell with all tables, views and examples.

    Example: plumbline sql "SELECT word, delta_nats FROM word_delta ORDER BY 2 LIMIT 10"
    """
    connection = connect(warehouse)
    console = Console(highlight=False)
    if query:
        show(console, *run_query(connection, query))
        return
    _remember_lines()
    complete_with_tab(connection)
    shell(connection, console)
