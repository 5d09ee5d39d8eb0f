"""`plumbline sql`: one query, printed or written to a file, or a small shell."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from pydantic import Field
from pydantic.dataclasses import dataclass
from rich.console import Console

from plumbline.pipelines.command.base import WARNING, Command, Context, Done, On
from plumbline.pipelines.command.fields import OutputFile
from plumbline.pipelines.sql.result_output import write_result
from plumbline.pipelines.sql.shell import (
    answer,
    complete_with_tab,
    remember_lines,
    say_unfilled,
    shell,
)
from plumbline.warehouse.errors import UsageProblem, disk_problems
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.paths import replacing
from plumbline.warehouse.query.connection import connect, init_sql, tables_of
from plumbline.warehouse.query.guard import UnknownName, last_statement, lock, one_line
from plumbline.warehouse.storage.opening import OpenWarehouse, version_of
from plumbline.warehouse.storage.out_of_date import table_of, to_make_again
from plumbline.warehouse.text.escape import say, sql_text

if TYPE_CHECKING:
    import duckdb

_Form = Literal["table", "csv", "json", "jsonl", "parquet"]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Sql(Command):
    """Ask the warehouse in SQL: one query, or a shell with all tables, views and examples.

    Queries only read the warehouse, unless --write lets them use other files; never the network.

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
        Field(description="Write a file for `duckdb -init`, or a .duckdb to attach, instead."),
    ] = None
    relative: Annotated[bool, Field(description="With --init: paths relative to its file.")] = False
    at: Annotated[
        str | None, Field(description="As of a version, the start of a run's id, or a time.")
    ] = None
    write: Annotated[
        bool, Field(description="Let queries use other files: read_csv, COPY, ATTACH.")
    ] = False

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
            fix = "use csv, json, jsonl or parquet"
            raise UsageProblem("format table", "is for the terminal", fix)
        for option, file in (("--out", self.out), ("--init", self.init)):
            if file is not None and self.warehouse.resolve() in file.resolve().parents:
                fix = f"choose another {option}"
                raise UsageProblem(f"file {file}", "lies in the warehouse", fix)
        if self.relative and self.init is not None and self.init.suffix == ".duckdb":
            problem, fix = "has absolute paths", "leave out --relative, or write a .sql"
            raise UsageProblem(f"database {self.init}", problem, fix)
        if name != "table" and not self.query:
            raise UsageProblem("the shell", "prints tables", f"give a query with --format {name}")

    def run(self, context: Context) -> Done:
        """Answer the query, open the shell, or write the file of ``init``."""
        store = OpenWarehouse.open(self.warehouse, create=False)
        if self.at is not None:
            store = store.pinned(version_of(store, self.at))
        if self.init is not None:
            return self._write_init(store, self.init)
        text = None if self.write else self.query or None
        try:
            return self._asked(store, text)
        except UnknownName:  # DuckDB suggests the nearest names if all views exist
            if text is None:
                raise
            return self._asked(store, None)

    def _asked(self, store: OpenWarehouse, text: str | None) -> Done:
        """Answer the query, or open the shell, on the views that ``text`` names (None: all)."""
        connection, console = connect(store, text), Console(highlight=False)
        lock(connection, write=self.write)
        if self.query:
            names = {table.name for table in tables_of(self.query)}
            stale = {k: n for k, n in store.snapshot().out_of_date.items() if table_of(k) in names}
            for line in to_make_again(stale):
                say(f"{WARNING}{line}", err=True)
        for line in store.snapshot().kept if text is None else ():
            say(line, err=True)
        if self.form() != "table":
            return self._written(connection)
        if self.query:
            answer(connection, console, self.query)
            return Done()
        if isinstance(sys.stdin, TextIOWrapper):  # input that isn't UTF-8 fails one query only
            sys.stdin.reconfigure(errors="surrogateescape")
        remember_lines()
        complete_with_tab(connection)
        shell(connection, console)
        return Done()

    def _written(self, connection: duckdb.DuckDBPyConnection) -> Done:
        with one_line():
            last = last_statement(connection, self.query)
            n_rows = write_result(connection, last, self.form(), self.out, sys.stdout)
        if not n_rows:
            say_unfilled(connection, self.query)
        if self.out is None:
            return Done()
        rows = f"{n_rows:,} row{'' if n_rows == 1 else 's'}"
        return Done(said=[rows], files=[str(self.out)])

    def _write_init(self, store: OpenWarehouse, file: Path) -> Done:
        text = init_sql(store, file.parent if self.relative else None)
        with disk_problems(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            if file.suffix == ".duckdb":
                return self._write_database(file, text)
            file.write_text(text, encoding="utf-8")
        start = f"duckdb -init {file}"
        if self.relative:
            start = f"cd {file.parent} && duckdb -init {file.name}"
        return Done(files=[str(file)], next=start)

    def _write_database(self, file: Path, text: str) -> Done:
        """A database of views over the Parquet files, as they are now."""
        import duckdb

        with replacing(file) as temporary, duckdb.connect(str(temporary)) as connection:
            connection.execute(text)
        attach = f"ATTACH {sql_text(str(file))} AS plumbline (READ_ONLY)"
        return Done(files=[str(file)], next=f"in DuckDB: {attach}")
