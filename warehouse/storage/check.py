"""Check of a warehouse: log, files, hashes, schemas, runs, partitions, keys, leftovers.

A warehouse may come from somebody else, and a file that was made for it can crash Arrow, or make it
take all memory. So ``check`` can read each file in a child process with limited memory and time.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plumbline.warehouse import sandbox
from plumbline.warehouse.errors import BadInput, MissingComponent, PlumblineError
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import Table
from plumbline.warehouse.storage import log
from plumbline.warehouse.storage.compaction import leftovers
from plumbline.warehouse.storage.format import MARKER
from plumbline.warehouse.storage.log import File, Snapshot, columns_id
from plumbline.warehouse.storage.opening import README
from plumbline.warehouse.storage.place import sha256_of
from plumbline.warehouse.storage.store import Store

#: Processor time for one file, of the process that reads files apart.
_MOST_SECONDS = 120
#: More days than any warehouse has: what no version at all needs.
_ALL_DAYS = 1e6


@dataclass(frozen=True)
class Problem:
    """What is wrong with a file or directory, and a command that fixes it."""

    path: Path
    problem: str
    fix: str


def check(store: Store, *, apart: bool = False) -> list[Problem]:
    """All problems of a warehouse, in the order of their paths; nothing is written.

    Every file of the newest version is read to its end and compared with its hash. While a run may
    be writing, leftovers are not reported, since they may be its unfinished work.

    Args:
        apart: read files in a child process with at most 8 GiB of address space and two minutes of
            processor time a file; a file that ends it is a problem.

    >>> import tempfile
    >>> check(Store.open(tempfile.mkdtemp() + "/w"))
    []
    """
    snapshot = store.snapshot()
    reader = _Apart().problems if apart else _file_problems
    found = list(_foreign(store)) + list(_past(store, snapshot))
    good: list[tuple[str, File]] = []
    for name in snapshot.tables:
        try:
            files = snapshot.files(name)
        except PlumblineError as e:
            restore = "plumbline warehouse restore VERSION"
            found.append(Problem(store.root / name, str(e), f"{restore} of an earlier one"))
            continue
        whole = []
        for file in files:
            problems = reader(store, TABLES[name], file)
            found += problems
            whole += [] if problems else [file]
        found += _repeated_keys(store, TABLES[name], whole)
        good += [(name, file) for file in whole]
    for leftover in leftovers(store, _ALL_DAYS):
        path = store.place.scratch() / leftover.path
        found.append(Problem(path, leftover.why, "plumbline warehouse compact"))
    return sorted([*found, *_without_run(store, good)], key=lambda problem: problem.path)


def _foreign(store: Store) -> Iterator[Problem]:
    known = {"_log", MARKER, README}
    for name in store.place.walk():
        top, _, rest = name.partition("/")
        is_of_table = rest.startswith("_delta_log/") or rest.endswith(".parquet")
        if top not in known and not (top in TABLES and is_of_table):
            path = store.root / name
            fix = f"{shlex.join(['mv', str(path)])} elsewhere"
            yield Problem(path, "belongs to no table", fix)


def _past(store: Store, newest: Snapshot) -> Iterator[Problem]:
    """Versions that can't be read, other than the newest, which opening has read."""
    for version in log.versions(store.place):
        if version != newest.version:
            try:
                log.snapshot(store.place, version)
            except PlumblineError as e:
                path = store.root / log.COMMITS / f"{version:020}.json"
                yield Problem(path, str(e), f"{shlex.join(['mv', str(path)])} elsewhere")


def _without_run(store: Store, files: list[tuple[str, File]]) -> Iterator[Problem]:
    try:
        runs = set(store.read("run")["run_id"].to_pylist())
    except BadInput:  # reported as a problem of its file
        return
    for _, file in files:
        for run_id in sorted({unit.run_id for unit in file.units} - runs):
            problem = f"its run {run_id or '(none)'} is not in `run`"
            yield Problem(store.root / file.path, problem, _again(store, file))


def _again(store: Store, file: File) -> str:
    path = shlex.quote(str(store.root / file.path))
    return f"plumbline warehouse forget {path}, then run again what wrote it"


class _Apart:
    """Reads files in a child process, which is started anew when a file has ended it."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def problems(self, store: Store, table: Table, file: File) -> list[Problem]:
        """As ``_file_problems``."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, get_context("spawn"), _enter_sandbox)
        try:
            return self._pool.submit(_limited_problems, store, table, file).result()
        except (BrokenProcessPool, MemoryError):
            self._pool.shutdown()
            self._pool = None
            problem = "ends the process that reads it, or takes more memory or time than a file may"
            return [Problem(store.root / file.path, problem, _again(store, file))]


def _enter_sandbox() -> None:
    sandbox.limit()
    with suppress(MissingComponent):
        sandbox.close_network()


def _limited_problems(store: Store, table: Table, file: File) -> list[Problem]:
    sandbox.limit_time(_MOST_SECONDS)
    return _file_problems(store, table, file)


def _file_problems(store: Store, table: Table, file: File) -> list[Problem]:
    """Problems of one file; its rows are checked only if it has the table's schema."""
    where, fix = store.root / file.path, _again(store, file)
    try:
        path = store.path(file)
        if sha256_of(path) != file.sha256:
            problem = "is damaged: its hash is not that of what was published"
            return [Problem(where, problem, fix)]
        rows = pq.ParquetFile(path).read()
    except (PlumblineError, pa.ArrowException, OSError, ValueError) as e:
        return [Problem(where, str(e).splitlines()[0], fix)]
    of_schema = list(_schema_problems(table, file, rows.schema))
    return [Problem(where, p, fix) for p in of_schema or _row_problems(table, file, rows)]


def _schema_problems(table: Table, file: File, schema: pa.Schema) -> Iterator[str]:
    for field in table.arrow:
        if field.name in schema.names:
            found = schema.field(field.name).type
            if found != field.type:
                yield f"{field.name} is {found}, not {field.type}"
        elif not field.nullable or file.columns == columns_id(table):
            yield f"has no column {field.name}"
    for name in schema.names:
        if name not in table.arrow.names:
            yield f"has the unknown column {name}"


def _row_problems(table: Table, file: File, rows: pa.Table) -> Iterator[str]:
    if rows.num_rows != file.n_rows:
        yield f"holds {rows.num_rows:,} rows instead of {file.n_rows:,}"
    for field in table.arrow:
        if not field.nullable and rows[field.name].null_count:
            yield f"{field.name} holds NULL, which is not allowed"
    for name, expected in zip(table.partitions, file.partition, strict=True):
        values = pc.unique(rows[name]).to_pylist()
        if values != [expected]:
            yield f"its rows are of {name} {', '.join(map(str, values[:3]))}, not {expected}"


def _repeated_keys(store: Store, table: Table, files: list[File]) -> Iterator[Problem]:
    if not files:
        return
    key = ", ".join(f'"{name}"' for name in table.key)
    source = "read_parquet($files, hive_partitioning = false, union_by_name = true)"
    query = (
        f"SELECT count(*) OVER (), {key} FROM {source} GROUP BY {key} HAVING count(*) > 1 LIMIT 1"
    )
    with duckdb.connect() as connection:
        found = connection.execute(
            query, {"files": [str(store.path(file)) for file in files]}
        ).fetchone()
    if found is not None:
        first = ", ".join(f"{n} {v!r}" for n, v in zip(table.key, found[1:], strict=True))
        problem = f"{found[0]:,} keys more than once, such as {first}"
        fix = "run again the command that wrote it, see `plumbline runs list`"
        yield Problem(store.root / table.name, problem, fix)
