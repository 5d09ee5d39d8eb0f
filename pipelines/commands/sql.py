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
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import Field
from rich.console import Console
from rich.text import Text

from plumbline.pipelines.command.base import Command, Context, Done, On
from plumbline.pipelines.command.fields import OutputFile
from plumbline.pipelines.result_output import show, write_result
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
_Form = Literal["table", "csv", "json"]


class Sql(Command):
    """Query the warehouse in SQL: one query, or a shell with all tables and views.

    Queries can only read the warehouse. They can't write, open other files or use the network. If
    the program ``duckdb`` is installed, its shell is used.

    Example: plumbline sql "SELECT word, lean_bound_nats FROM word_lean ORDER BY 2" --out words.csv
    """

    opens_warehouse = False  # ``run`` opens the warehouse read-only
    records = False

    query: Annotated[
        str, Field(description="Query to run; default: open a shell."), On(positional=True)
    ] = ""
    format: Annotated[
        _Form | None,
        Field(description="Format of the result; default: the extension of --out, or table."),
    ] = None
    out: Annotated[
        OutputFile | None,
        Field(description="File to write the result to; its extension sets the format."),
    ] = None
    at: Annotated[
        int | None, Field(ge=0, le=MOST, description="Version to query; default: the newest.")
    ] = None

    def form(self) -> str:
        """Return --format. The default is the extension of --out, or ``table`` without --out."""
        return self.format or (self.out.suffix.removeprefix(".").lower() if self.out else "table")

    def __post_init__(self) -> None:
        name = self.form()
        if name not in get_args(_Form):
            problem = f"is not one of {', '.join(get_args(_Form))}"
            raise UsageProblem(f"format {name!r}", problem, "use --format")
        if name == "table" and self.out is not None:
            raise UsageProblem("format table", "is for the terminal", "use csv or json")
        if self.out is not None and self.warehouse.resolve() in self.out.resolve().parents:
            raise UsageProblem(f"file {self.out}", "lies in the warehouse", "choose another --out")
        if name != "table" and not self.query:
            raise UsageProblem("the shell", "prints tables", f"give a query with --format {name}")

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
        if self.query:
            return self._answered(connection)
        if isinstance(sys.stdin, TextIOWrapper):  # so bad UTF-8 fails one query, not the shell
            sys.stdin.reconfigure(errors="surrogateescape")
        shell(connection, Console(highlight=False))
        return Done()

    def _answered(self, connection: duckdb.DuckDBPyConnection) -> Done:
        if self.form() == "table":
            answer(connection, Console(highlight=False), self.query)
            return Done()
        with one_line():
            last = last_statement(connection, self.query)
            n_rows = write_result(connection, last, self.form(), self.out, sys.stdout)
        if not n_rows:
            say_unfilled(connection, self.query)
        if self.out is None:
            return Done()
        return Done(said=[f"{n_rows:,} row{'s' * (n_rows != 1)}"], files=[str(self.out)])


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

    Raises ``UsageProblem`` for a bad query, with DuckDB's message in one line.
    """
    with one_line():
        cursor = connection.execute(last_statement(connection, text))
        names = [column[0] for column in cursor.description or ()]
        return names, cursor.fetchall() if names else []


def answer(connection: duckdb.DuckDBPyConnection, console: Console, text: str) -> None:
    """Print a query's rows. If the query returns no rows, call ``say_unfilled``."""
    names, rows = run_query(connection, text)
    show(console, names, rows)
    if names and not rows:
        say_unfilled(connection, text)


def say_unfilled(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """Print to standard error which commands fill the empty tables that a query reads."""
    if line := unfilled(connection, text):
        say(line, err=True)
