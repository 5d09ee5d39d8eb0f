"""``plumbline sql``: one query, printed or written to a file, or a small shell."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from plumbline.pipelines.cli.options import Warehouse
from plumbline.pipelines.cli.sql_complete import complete_with_tab
from plumbline.pipelines.cli.sql_output import format_of, write_result
from plumbline.pipelines.requests import DEFAULT_WAREHOUSE
from plumbline.warehouse.errors import UsageProblem, disk_problems
from plumbline.warehouse.files import check_output
from plumbline.warehouse.query.connection import connect, init_sql, unfilled
from plumbline.warehouse.query.guard import UnknownName, check, lock, one_line
from plumbline.warehouse.query.reference import Question, questions
from plumbline.warehouse.storage.opening import OpenWarehouse, version_of
from plumbline.warehouse.text.escape import terminal
from plumbline.warehouse.text.output import say

if TYPE_CHECKING:
    import duckdb

#: Rows printed of a result; the rest is counted.
MAX_ROWS = 1000
_HISTORY = Path.home() / ".plumbline_sql_history"
_HELP = (
    ".tables  .schema NAME  .examples [NUMBER]  .quit  Tab completes names\n"
    "A query ends with ; or an empty line."
)


def run_query(
    connection: duckdb.DuckDBPyConnection, text: str, *, write: bool = False
) -> tuple[list[str], list[Any]]:
    """Column names and rows of a query; ``([], [])`` for a statement without a result.

    Raises ``UsageProblem`` with DuckDB's own explanation, in one line, for a bad query, and for one
    that may write files, unless ``write``.

    >>> import duckdb
    >>> run_query(duckdb.connect(), "SELECT 1 AS one")
    (['one'], [(1,)])
    """
    with one_line():
        check(connection, text, write=write)
        cursor = connection.execute(text)
        if not cursor.description:
            return [], []
        return [column[0] for column in cursor.description], cursor.fetchall()


def show(console: Console, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a result with every column readable.

    As a table where it fits; on a terminal too narrow for it, as one block a row. Output that is
    not a terminal is as wide as it needs to be.
    """
    if not names:
        return
    names, shown = [terminal(name) for name in names], rows[:MAX_ROWS]
    cells = [[_cell(v) for v in row] for row in shown]
    widths = [max([len(name), *(len(row[i]) for row in cells)]) + 3 for i, name in enumerate(names)]
    if console.is_terminal and sum(widths) > console.width and len(names) > 1:
        _show_blocks(console, names, cells)
    else:
        numbers = [_is_number(row[i] for row in shown) for i in range(len(names))]
        _show_table(console, names, cells, numbers, sum(widths) + 1)
    more = f", the first {MAX_ROWS:,} shown" if len(rows) > MAX_ROWS else ""
    console.print(Text(f"{len(rows):,} row{'' if len(rows) == 1 else 's'}{more}", style="dim"))


def _cell(value: object) -> str:
    """A value as one line of text; NULL is empty, floats have six digits."""
    if value is None:
        return ""
    return terminal(f"{value:.6g}" if isinstance(value, float) else str(value))


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
    connection: duckdb.DuckDBPyConnection,
    console: Console,
    read: Callable[[str], str] = input,
    *,
    write: bool = False,
) -> None:
    """Read queries and dot commands until ``.quit`` or the end of the input.

    A bad query prints its line and the shell stays open; Ctrl-C drops what was typed.
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
                _answer(connection, console, query, write=write)
        except UsageProblem as e:
            console.print(Text(str(e), style="red"), soft_wrap=True)
        except KeyboardInterrupt:
            typed = []
            console.print()
        except EOFError:
            if typed:
                _answer(connection, console, "\n".join(typed), write=write)
            return


def _answer(
    connection: duckdb.DuckDBPyConnection, console: Console, text: str, *, write: bool
) -> None:
    names, rows = run_query(connection, text, write=write)
    show(console, names, rows)
    if names and not rows:
        _say_unfilled(connection, text)


def _say_unfilled(connection: duckdb.DuckDBPyConnection, text: str) -> None:
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
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    kind: Annotated[str, typer.Option("--format", help="table, csv, json, jsonl or parquet.")] = "",
    out: Annotated[
        Path | None, typer.Option(help="File for the result; its extension is the format.")
    ] = None,
    init: Annotated[
        Path | None, typer.Option(help="Write a file for `duckdb -init` instead.")
    ] = None,
    relative: Annotated[
        bool, typer.Option("--relative", help="In that file, paths from its own directory.")
    ] = False,
    at: Annotated[
        str | None, typer.Option(help="As of a version, the start of a run's id, or a time.")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Let queries write files: COPY, EXPORT, ATTACH.")
    ] = False,
) -> None:
    """Ask the warehouse in SQL: one query, or a shell with all tables, views and examples.

    A query reads; it changes nothing in the warehouse unless --write says so, and never goes to the
    network.

    Example: plumbline sql "SELECT word, lean_bound_nats FROM word_lean ORDER BY 2" --out words.csv
    """
    console = Console(highlight=False)
    if init is not None:
        _write_init(warehouse, init, relative, console)
        return
    chosen = format_of(kind, out)
    if out is not None:
        check_output(out)
    if out is not None and warehouse.resolve() in out.resolve().parents:
        raise UsageProblem(f"file {out}", "lies in the warehouse", "choose another --out")
    if chosen != "table" and not query:
        raise UsageProblem("the shell", "prints tables", f"give a query with --format {chosen}")

    store = OpenWarehouse.open(warehouse, create=False).looking()
    if at is not None:
        store = store.pinned(version_of(store, at))

    def run(text: str | None) -> None:
        connection = connect(store, text)
        lock(connection)
        if chosen != "table":
            _write_query(connection, query, chosen, out, write)
        elif query:
            _answer(connection, console, query, write=write)
        else:
            if isinstance(sys.stdin, TextIOWrapper):  # what isn't UTF-8 is one bad query
                sys.stdin.reconfigure(errors="surrogateescape")
            _remember_lines()
            complete_with_tab(connection)
            shell(connection, console, write=write)

    try:
        run(None if write else query or None)
    except UnknownName:  # of all names DuckDB then suggests the nearest
        run(None)


def _write_query(
    connection: duckdb.DuckDBPyConnection, query: str, kind: str, out: Path | None, write: bool
) -> None:
    with one_line():
        check(connection, query, write=write)
        n_rows = write_result(connection, query, kind, out, sys.stdout)
    if not n_rows:
        _say_unfilled(connection, query)
    if out is not None:
        rows = f"{n_rows:,} row{'' if n_rows == 1 else 's'}"
        Console(highlight=False).print(Text(f"wrote {rows} to {out}"), soft_wrap=True)


def _write_init(warehouse: Path, file: Path, relative: bool, console: Console) -> None:
    text = init_sql(warehouse, file.parent if relative else None)
    check_output(file)
    with disk_problems(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    start = f"cd {file.parent} && duckdb -init {file.name}" if relative else f"duckdb -init {file}"
    console.print(Text(f"wrote {file}; next: {start}"), soft_wrap=True)
