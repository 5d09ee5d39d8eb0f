"""`plumbline sql`: one query, printed or written to a file, or a shell."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Annotated, Literal, get_args

from pydantic import Field
from pydantic.dataclasses import dataclass
from rich.console import Console

from plumbline.pipelines.command.base import WARNING, Command, Context, Done, On
from plumbline.pipelines.command.fields import OutputFile
from plumbline.pipelines.sql.result_output import write_result
from plumbline.pipelines.sql.shell import answer, duckdb_shell, say_unfilled, shell
from plumbline.warehouse.errors import UsageProblem, disk_problems
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.query.connection import connect, init_sql, tables_of
from plumbline.warehouse.query.guard import last_statement, lock, one_line
from plumbline.warehouse.storage.opening import OpenWarehouse, version_of
from plumbline.warehouse.storage.out_of_date import table_of, to_make_again
from plumbline.warehouse.text.escape import say

_Form = Literal["table", "csv", "json", "parquet"]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Sql(Command):
    """Ask the warehouse in SQL: one query, or a shell with all tables and views.

    Queries only read the warehouse, and use no other file and no network. The shell is DuckDB's own
    where the program `duckdb` is installed.

    Example: plumbline sql "SELECT word, lean_bound_nats FROM word_lean ORDER BY 2" --out words.csv
    """

    opens_warehouse = False  # ``run`` opens it, for reading only
    records = False

    query: Annotated[
        str, Field(description="One query; without it a shell opens."), On(positional=True)
    ] = ""
    format: Annotated[
        _Form | None,
        Field(description="Format of the result; default: the ending of --out, or a table."),
    ] = None
    out: Annotated[
        OutputFile | None,
        Field(description="File for the result; its extension is the format."),
    ] = None
    init: Annotated[
        OutputFile | None,
        Field(description="Write a file of views for `duckdb -init` instead."),
    ] = None
    at: Annotated[
        str | None, Field(description="As of a version, the start of a run's id, or a time.")
    ] = None

    def form(self) -> str:
        """The format of the result: ``format``, else the extension of ``out``, else a table."""
        return self.format or (self.out.suffix.removeprefix(".").lower() if self.out else "table")

    def __post_init__(self) -> None:
        name = self.form()
        if name not in get_args(_Form):
            problem = f"is not one of {', '.join(get_args(_Form))}"
            raise UsageProblem(f"format {name!r}", problem, "use --format")
        if name == "parquet" and self.out is None:
            raise UsageProblem("format parquet", "goes to a file", "add --out FILE")
        if name == "table" and self.out is not None:
            raise UsageProblem("format table", "is for the terminal", "use csv, json or parquet")
        for option, file in (("--out", self.out), ("--init", self.init)):
            if file is not None and self.warehouse.resolve() in file.resolve().parents:
                fix = f"choose another {option}"
                raise UsageProblem(f"file {file}", "lies in the warehouse", fix)
        if self.init is not None and self.init.suffix.lower() != ".sql":
            raise UsageProblem(f"--init {self.init}", "isn't named *.sql", "give a file of SQL")
        if name != "table" and not self.query:
            raise UsageProblem("the shell", "prints tables", f"give a query with --format {name}")

    def run(self, context: Context) -> Done:
        """Answer the query, open the shell, or write the file of ``init``."""
        store = OpenWarehouse.open(self.warehouse, create=False)
        if self.at is not None:
            store = store.pinned(version_of(store, self.at))
        if self.init is not None:
            with disk_problems(self.init):
                self.init.parent.mkdir(parents=True, exist_ok=True)
                self.init.write_text(init_sql(store), encoding="utf-8")
            return Done(files=[str(self.init)], next=f"duckdb -init {self.init}")
        for line in store.snapshot().kept:
            say(line, err=True)
        if self.query:
            return self._answered(store)
        if sys.stdin.isatty() and duckdb_shell(store):
            return Done()
        if isinstance(sys.stdin, TextIOWrapper):  # input that isn't UTF-8 fails one query only
            sys.stdin.reconfigure(errors="surrogateescape")
        connection = connect(store)
        lock(connection)
        shell(connection, Console(highlight=False))
        return Done()

    def _answered(self, store: OpenWarehouse) -> Done:
        """Print the rows of the query, or write them to a file."""
        connection = connect(store, self.query)
        lock(connection)
        names = {table.name for table in tables_of(self.query)}
        stale = {k: n for k, n in store.snapshot().out_of_date.items() if table_of(k) in names}
        for line in to_make_again(stale):
            say(f"{WARNING}{line}", err=True)
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
        rows = f"{n_rows:,} row{'' if n_rows == 1 else 's'}"
        return Done(said=[rows], files=[str(self.out)])
