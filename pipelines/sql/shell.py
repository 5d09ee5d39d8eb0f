"""A single query, and the shell of `plumbline sql`."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from plumbline.pipelines.sql.result_output import show
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import init_sql, unfilled
from plumbline.warehouse.query.guard import READ_ONLY, last_statement, one_line
from plumbline.warehouse.storage.opening import OpenWarehouse
from plumbline.warehouse.text.escape import say

if TYPE_CHECKING:
    import duckdb

_HELP = (
    "SHOW TABLES; lists tables and views, DESCRIBE name; the columns of one. Ctrl-D ends.\n"
    "End a query with ; or an empty line. Questions with their queries: docs/sql.md"
)


def run_query(connection: duckdb.DuckDBPyConnection, text: str) -> tuple[list[str], list[Any]]:
    """Column names and rows of a query; ``([], [])`` for a statement without a result.

    Raises ``UsageProblem`` for a bad query, with DuckDB's message in one line.
    """
    with one_line():
        cursor = connection.execute(last_statement(connection, text))
        if not cursor.description:
            return [], []
        return [column[0] for column in cursor.description], cursor.fetchall()


def duckdb_shell(store: OpenWarehouse) -> bool:
    """Run DuckDB's own shell on a warehouse; false if the program ``duckdb`` isn't installed.

    While the shell runs, only the shell handles Ctrl-C: it drops the typed query or stops a query.
    """
    program = shutil.which("duckdb")
    if program is None:
        return False
    with TemporaryDirectory() as directory:
        file = Path(directory) / "views.sql"
        file.write_text(f"{init_sql(store)}\n{READ_ONLY}\n", encoding="utf-8")
        with subprocess.Popen([program, "-init", str(file)]) as running:
            handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
            try:
                running.wait()
            finally:
                signal.signal(signal.SIGINT, handler)
    return True


def shell(
    connection: duckdb.DuckDBPyConnection, console: Console, read: Callable[[str], str] = input
) -> None:
    """Read queries until the end of the input, and print their answers.

    A bad query prints its error in one line, and the shell continues. Ctrl-C drops the typed query.
    At the end of the input, an unfinished query runs and raises ``UsageProblem`` if it is bad.
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
