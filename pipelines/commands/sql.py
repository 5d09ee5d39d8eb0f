"""`plumbline sql`: run one SQL query on the warehouse, or open a shell."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from rich.console import Console
from rich.text import Text

from plumbline.pipelines.command.base import Command, Context, Done, On
from plumbline.pipelines.report.model import unique
from plumbline.pipelines.result_output import print_csv, print_json, show
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import MOST
from plumbline.warehouse.query.connection import (
    READ_ONLY,
    connect,
    init_sql,
    last_statement,
    lock,
    one_line,
    unfilled,
)
from plumbline.warehouse.storage.opening import OpenWarehouse
from plumbline.warehouse.text.escape import say

if TYPE_CHECKING:
    import duckdb

_HELP = (
    "`SHOW TABLES;` lists tables and views, `DESCRIBE name;` lists the columns of one.\n"
    "End a query with ; or an empty line, the shell with Ctrl-D. Example queries: docs/sql.md"
)


class Sql(Command):
    """Query the warehouse in SQL: one query, or a shell with all tables and views.

    Queries can only read the warehouse. They can't write, open other files or use the network. If
    the program ``duckdb`` is installed, its shell is used.

    Example: plumbline sql "SELECT word, lean_bound_nats FROM word_lean ORDER BY 2" --format csv
    """

    opens_warehouse = False  # ``run`` opens the warehouse read-only
    records = False

    query: Annotated[
        str, Field(description="Query to run; default: open a shell."), On(positional=True)
    ] = ""
    format: Annotated[
        Literal["table", "json", "csv"], Field(description="Format of the result.")
    ] = "table"
    at: Annotated[
        int | None, Field(ge=0, le=MOST, description="Version to query; default: the newest.")
    ] = None

    def __post_init__(self) -> None:
        if self.format != "table" and not self.query:
            fix = f"give a query with --format {self.format}"
            raise UsageProblem("the shell", "prints tables", fix)

    def run(self, context: Context) -> Done:
        store = OpenWarehouse.open(self.warehouse, create=False)
        if self.at is not None:
            store = store.pinned(self.at)
        for line in store.snapshot().kept:
            say(line, err=True)
        if not self.query and sys.stdin.isatty() and duckdb_shell(store):
            return Done()
        connection = connect(store, self.query or None)
        lock(connection)
        console = Console(highlight=False)
        if self.query:
            answer(connection, console, self.query, self.format)
            return Done()
        if isinstance(sys.stdin, TextIOWrapper):  # so bad UTF-8 fails one query, not the shell
            sys.stdin.reconfigure(errors="surrogateescape")
        shell(connection, console)
        return Done()


def duckdb_shell(store: OpenWarehouse) -> bool:
    """Run DuckDB's own shell on a warehouse. Return False if ``duckdb`` isn't installed.

    While the shell runs, Plumbline ignores Ctrl-C. The shell uses it to drop or stop a query.
    """
    program = shutil.which("duckdb")
    if program is None:
        return False
    with TemporaryDirectory() as directory:
        file = Path(directory) / "views.sql"
        file.write_text(f"{init_sql(store)}\n{READ_ONLY}\n", encoding="utf-8")
        with subprocess.Popen([program, "-init", str(file)]) as running:
            handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
            running.wait()
            signal.signal(signal.SIGINT, handler)
    return True


def shell(
    connection: duckdb.DuckDBPyConnection, console: Console, read: Callable[[str], str] = input
) -> None:
    """Read queries until the end of the input, and print their results.

    For a bad query, prints the error in one line and continues. Ctrl-C drops the typed query.
    """
    with suppress(ImportError):
        import readline  # noqa: F401  (lets ``input`` edit lines)
    console.print(Text(_HELP, style="dim"))
    typed: list[str] = []
    while True:
        try:
            line = read("  ...> " if typed else "plumbline> ")
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
            break
    if typed:
        answer(connection, console, "\n".join(typed))


def run_query(connection: duckdb.DuckDBPyConnection, text: str) -> tuple[list[str], list[Any]]:
    """Return a query's column names and rows. Both are empty if the statement has no result.

    Column names are made unique: a second ``a`` becomes ``a_2``. Raises ``UsageProblem`` for a bad
    query, with DuckDB's message in one line.
    """
    with one_line():
        cursor = connection.execute(last_statement(connection, text))
        names = unique([column[0] for column in cursor.description or ()])
        return names, cursor.fetchall() if names else []


def answer(
    connection: duckdb.DuckDBPyConnection, console: Console, text: str, form: str = "table"
) -> None:
    """Print a query's rows. If there are none, say which commands fill the tables that it reads."""
    names, rows = run_query(connection, text)
    if form == "json":
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    elif form == "csv":
        print_csv(names, rows)
    else:
        show(console, names, rows)
    if names and not rows and (line := unfilled(connection, text)):
        say(line, err=True)
