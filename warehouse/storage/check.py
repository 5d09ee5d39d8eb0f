"""Check of a warehouse: log, files, hashes, schemas, runs, partitions, keys, leftovers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import Table
from plumbline.warehouse.storage import delta, log
from plumbline.warehouse.storage.compaction import ALL_DAYS, drop_earlier, leftovers
from plumbline.warehouse.storage.listing import MARKER, File, Listing, columns_id
from plumbline.warehouse.storage.log import Snapshot
from plumbline.warehouse.storage.opening import GO_BACK, README, reading
from plumbline.warehouse.storage.place import Damaged, command
from plumbline.warehouse.storage.run_records import others_running
from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True)
class WarehouseProblem:
    """A file or directory that is damaged or could not be checked, and the advice to repair it."""

    path: Path
    problem: str
    fix: str


def check(
    store: Store, *, update: Callable[[int, int], None] = lambda *_: None
) -> list[WarehouseProblem]:
    """All problems of a warehouse, sorted by path; writes nothing to it.

    Reads the data files of all kept versions, from the object store if the warehouse is in one, and
    compares them with their hashes. Also checks the rows of the newest version. Leftovers are not
    reported if they may be another run's unfinished work.

    ``update`` is called with the number of files read so far, and the number of all files to read.
    Raises ``Interrupted`` if an object store can't be reached, or fails.

    >>> import tempfile
    >>> check(Store.open(tempfile.mkdtemp() + "/w"))
    []
    """
    newest = store.snapshot()
    files: dict[str, _DataFile] = {}
    faults = [*_foreign_files(store, newest), *_logged(store, newest, files)]
    good: dict[str, list[tuple[File, Path]]] = {name: [] for name in newest.declared}
    for done, (name, data_file) in enumerate(sorted(files.items())):
        update(done, len(files))
        file, where = data_file.file, store.root / name
        try:
            with reading(store.place, where):
                path = store.place.local(name, file.n_bytes, file.sha256, stored=True)
            if data_file.version < newest.version or data_file.table not in good:
                continue
            problems = _rows_problems(TABLES[data_file.table], file, path)
        except BadInput as e:
            faults += _unread(store, newest, data_file, e)
        except MemoryError:
            problem = "its rows were not checked: memory ran out"
            fix = "don't read it unless you know who wrote it"
            faults.append(WarehouseProblem(where, problem, fix))
        else:
            faults += [WarehouseProblem(where, problem, GO_BACK) for problem in problems]
            good[data_file.table] += [] if problems else [(file, path)]
    update(len(files), len(files))
    for name, whole in good.items():
        faults += _repeated_keys(store, TABLES[name], [path for _, path in whole])
        faults += _delta_problems(store, name, newest.tables[name])
    try:
        for leftover in leftovers(store, ALL_DAYS):
            path = store.place.scratch() / leftover.path
            faults.append(WarehouseProblem(path, leftover.why, command(store.place, "compact")))
    except BadInput as e:
        path = _path_of(store, e)
        if not any(problem.path.is_relative_to(path) for problem in faults):
            faults.append(WarehouseProblem(path, *e.args[1:]))
    faults += _without_run(store, [file for whole in good.values() for file, _ in whole])
    return sorted(faults, key=lambda problem: problem.path)


@dataclass(frozen=True)
class _DataFile:
    """A data file, its table, and the newest version that has it."""

    table: str
    file: File
    version: int


def _foreign_files(store: Store, newest: Snapshot) -> Iterator[WarehouseProblem]:
    expected, tables = {"_log", MARKER, README}, {*TABLES, *newest.tables}
    for name in store.place.walk():
        top, _, rest = name.partition("/")
        is_of_table = rest.startswith("_delta_log/") or rest.endswith(".parquet")
        if top not in expected and not (top in tables and is_of_table):
            fix = "move it out of the warehouse"
            yield WarehouseProblem(store.root / name, "belongs to no table", fix)


def _logged(
    store: Store, newest: Snapshot, files: dict[str, _DataFile]
) -> Iterator[WarehouseProblem]:
    """Add the files of all versions to ``files``; report the commits that can't be read."""
    for version in range(newest.version, newest.oldest - 1, -1):
        try:
            state = log.snapshot(store.place, version)
        except UsageProblem:  # compacted meanwhile, or lost: then `leftovers` raises an error
            continue
        except BadInput as e:
            fix = drop_earlier(store.place) if e.args[2] == log.GET_COPY else e.args[2]
            yield WarehouseProblem(store.root / log.commit_name(version), e.args[1], fix)
            continue
        for table, listing in state.tables.items():
            for file in listing.files:
                files.setdefault(file.path, _DataFile(table, file, version))


def _path_of(store: Store, error: BadInput) -> Path:
    """The file that an error names; ``_log`` for a file of the log, or if it names no file."""
    name = str(error.args[0]).removeprefix(f"warehouse {store.place}").removeprefix(", ")
    path = store.root / (name.removeprefix(f"{store.root}/") or "_log")
    return store.root / "_log" if path.is_relative_to(store.root / "_log") else path


def _unread(
    store: Store, newest: Snapshot, data_file: _DataFile, error: BadInput
) -> Iterator[WarehouseProblem]:
    """The problem of an unreadable data file, if a kept version still names the file.

    The advice is to go back only for a damaged file of the newest version.
    """
    cause, (_, problem, fix) = error.__cause__, error.args
    if data_file.version < newest.version:
        if data_file.version not in log.versions(store.place):
            return  # compacted meanwhile
        problem = f"{problem}; only earlier versions hold it"
        if isinstance(cause, (Damaged, FileNotFoundError)):
            fix = drop_earlier(store.place)
    elif isinstance(cause, Damaged):
        fix = GO_BACK
    yield WarehouseProblem(store.root / data_file.file.path, problem, fix)


def _delta_problems(store: Store, table: str, listing: Listing) -> Iterator[WarehouseProblem]:
    found = delta.problem(store.place, table, listing)
    if found is None:
        return
    name, problem = found
    compact = command(store.place, "compact")
    fix = f"remove {table}/_delta_log, then {compact} writes it again"
    if problem == delta.ENDS_BEFORE:
        if others_running(store):
            return
        fix = compact
    yield WarehouseProblem(store.root / name, problem, fix)


def _without_run(store: Store, files: list[File]) -> Iterator[WarehouseProblem]:
    try:
        runs = set(store.read("run")["run_id"].to_pylist())
    except BadInput:  # reported as a problem of that file
        return
    for file in files:
        for run_id in sorted({unit.run_id for unit in file.units} - runs):
            problem = f"its run {run_id or '(none)'} is not in `run`"
            fix = "how its rows were made is not known: run again what wrote it"
            yield WarehouseProblem(store.root / file.path, problem, fix)


def _rows_problems(table: Table, file: File, path: Path) -> list[str]:
    """Problems of the rows of a file, whose bytes are as published."""
    try:
        rows = pq.ParquetFile(path).read()
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError) as e:
        return [f"does not hold a table: {str(e).splitlines()[0]}"]
    of_schema = list(_schema_problems(table, file, rows.schema))
    return of_schema or list(_row_problems(table, file, rows))


def _schema_problems(table: Table, file: File, schema: pa.Schema) -> Iterator[str]:
    for field in table.arrow:
        if field.name in schema.names:
            kind = schema.field(field.name).type
            if kind != field.type:
                yield f"{field.name} is {kind}, not {field.type}"
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
            yield f"its rows are of {name} {', '.join(map(str, values[:3]))}, expected {expected}"


def _repeated_keys(store: Store, table: Table, paths: list[Path]) -> Iterator[WarehouseProblem]:
    if not paths:
        return
    key = ", ".join(f'"{name}"' for name in table.key)
    source = "read_parquet($files, hive_partitioning = false, union_by_name = true)"
    # Key columns that may be NULL were added later: older files alone would lack them.
    later = [f'NULL AS "{c.name}"' for c in table.columns if c.nullable and c.name in table.key]
    if later:
        source = f"(FROM {source} UNION ALL BY NAME SELECT {', '.join(later)} WHERE false)"
    query = (
        f"SELECT count(*) OVER (), {key} FROM {source} GROUP BY {key} HAVING count(*) > 1 LIMIT 1"
    )
    with duckdb.connect() as connection:
        row = connection.execute(query, {"files": list(map(str, paths))}).fetchone()
    if row is not None:
        first = ", ".join(f"{n} {v!r}" for n, v in zip(table.key, row[1:], strict=True))
        problem = f"{row[0]:,} keys more than once, such as {first}"
        fix = "run again the command that wrote it, see `plumbline runs list`"
        yield WarehouseProblem(store.root / table.name, problem, fix)
