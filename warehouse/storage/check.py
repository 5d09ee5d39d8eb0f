"""Check of a warehouse: log, files, hashes, schemas, runs, partitions, keys, leftovers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
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
from plumbline.warehouse.storage.format import MARKER
from plumbline.warehouse.storage.log import File, Snapshot, columns_id
from plumbline.warehouse.storage.opening import GO_BACK, README, reading, utc_time
from plumbline.warehouse.storage.place import Damaged, Look, command, hashed_at
from plumbline.warehouse.storage.run_records import others_running
from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True)
class WarehouseProblem:
    """A file or directory that is damaged or could not be checked, and the advice to repair it."""

    path: Path
    problem: str
    fix: str


def check(
    store: Store,
    *,
    since: float = math.inf,
    update: Callable[[int, int], None] = lambda *_: None,
) -> list[WarehouseProblem]:
    """All problems of a warehouse, sorted by path; writes nothing to it.

    Reads the data files of all kept versions, from the object store if the warehouse is in one, and
    compares them with their hashes. Also checks the rows of the newest version. Leftovers are not
    reported if they may be another run's unfinished work.

    Args:
        since: leave out data files that were hashed at this Unix time or later, by this user and
            since the machine was started. Keys are then compared only among the files read.
        update: called with the number of files read so far, and the number of all files to read.

    Raises ``Interrupted`` if an object store can't be reached, or fails.

    >>> import tempfile
    >>> check(Store.open(tempfile.mkdtemp() + "/w"))
    []
    """
    snapshot = store.snapshot()
    files = _Files()
    faults = [*_foreign_files(store, snapshot), *_logged(store, snapshot, files)]
    good: dict[str, list[tuple[File, Path]]] = {name: [] for name in snapshot.declared}
    data_files = [files.by_path[path] for path in sorted(files.by_path)]
    todo = [f for f in data_files if hashed_at(store.root / f.file.path, f.file.sha256) < since]
    for done, data_file in enumerate(todo):
        update(done, len(todo))
        file, where = data_file.file, store.root / data_file.file.path
        try:
            with reading(store.place, where):
                path = store.place.local(file.path, file.n_bytes, file.sha256, Look.STORED)
            if not data_file.is_newest or data_file.table not in good:
                continue
            problems = _rows_problems(TABLES[data_file.table], file, path)
        except BadInput as e:
            faults += _unread(store, data_file, e)
        except MemoryError:
            problem = "its rows were not checked: memory ran out"
            fix = "don't read it unless you know who wrote it"
            faults.append(WarehouseProblem(where, problem, fix))
        else:
            faults += [WarehouseProblem(where, problem, GO_BACK) for problem in problems]
            good[data_file.table] += [] if problems else [(file, path)]
    update(len(todo), len(todo))
    for name, whole in good.items():
        faults += _repeated_keys(store, TABLES[name], [path for _, path in whole])
        if name not in files.unread:
            faults += _delta_problems(store, snapshot.manifest(name))
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


def moment(text: str) -> float:
    """The Unix time that a text gives: ``7d`` (7 days ago), or ISO 8601, by default in UTC.

    Raises ``UsageProblem`` for any other text.

    >>> moment("1970-01-02")
    86400.0
    """
    days = text.removesuffix("d")
    if text != days and days.isdecimal() and len(days) < 8:
        return time.time() - 86_400 * int(days)
    try:
        return utc_time(text).timestamp()
    except ValueError as e:
        raise UsageProblem(f"time {text!r}", "is not valid", "give 7d, or 2026-05-01") from e


@dataclass(frozen=True)
class _DataFile:
    """A data file, and the newest manifest that names it."""

    table: str
    file: File
    manifest: str
    is_newest: bool


class _Files:
    """The data files of all versions, each once."""

    def __init__(self) -> None:
        self.by_path: dict[str, _DataFile] = {}
        self._manifests: set[str] = set()
        self._reported: set[Path] = set()
        #: Tables of the newest version whose manifest can't be read.
        self.unread: set[str] = set()

    def add(self, store: Store, state: Snapshot, is_newest: bool) -> Iterator[WarehouseProblem]:
        """Add the files of a version, and yield a problem for each manifest that can't be read.

        The newest version is to be added first.
        """
        for table, manifest in state.tables.items():
            if manifest in self._manifests:
                continue
            self._manifests.add(manifest)
            try:
                for file in state.files(table):
                    if file.path not in self.by_path:
                        self.by_path[file.path] = _DataFile(table, file, manifest, is_newest)
            except UsageProblem:
                continue  # `compact` has dropped this version
            except BadInput as e:
                if is_newest:
                    self.unread.add(table)
                path = store.root / log.MANIFESTS / _unreadable(store, table, manifest)
                if path in self._reported:
                    continue
                self._reported.add(path)
                fix = _restore_fix(store, state, table) if is_newest else drop_earlier(store)
                yield WarehouseProblem(path, e.args[1], fix if _is_lost(e) else e.args[2])


def _unreadable(store: Store, table: str, manifest: str) -> str:
    """Name of the manifest that can't be read: ``manifest``, or one in its chain of bases."""
    names: list[str] = []
    with suppress(BadInput, FileNotFoundError):
        names.extend(log.chain(store.place, table, manifest))
    return names[-1]


def _restore_fix(store: Store, state: Snapshot, table: str) -> str:
    """Advice for an unreadable table: restore the newest version in which it is readable."""
    for version in reversed(log.versions(store.place)):
        if version < state.version:
            with suppress(BadInput, UsageProblem, FileNotFoundError):
                log.snapshot(store.place, version).manifest(table)
                restore = command(store.place, "restore", str(version))
                return f"get it from a copy, or go back by {restore}"
    return log.GET_COPY


def _foreign_files(store: Store, newest: Snapshot) -> Iterator[WarehouseProblem]:
    expected, tables = {"_log", MARKER, README}, {*TABLES, *newest.tables}
    for name in store.place.walk():
        top, _, rest = name.partition("/")
        is_of_table = rest.startswith("_delta_log/") or rest.endswith(".parquet")
        if top not in expected and not (top in tables and is_of_table):
            fix = "move it out of the warehouse"
            yield WarehouseProblem(store.root / name, "belongs to no table", fix)


def _logged(store: Store, newest: Snapshot, files: _Files) -> Iterator[WarehouseProblem]:
    """Add the files of all versions; report the parts of the log that can't be read."""
    yield from files.add(store, newest, is_newest=True)
    for version in sorted(log.versions(store.place), reverse=True):
        if version >= newest.version:
            continue
        try:
            yield from files.add(store, log.snapshot(store.place, version), is_newest=False)
        except (FileNotFoundError, UsageProblem):  # compacted meanwhile
            continue
        except BadInput as e:
            path = store.root / log.COMMITS / f"{version:020}.json"
            fix = drop_earlier(store) if _is_lost(e) else e.args[2]
            yield WarehouseProblem(path, e.args[1], fix)


def _is_lost(error: BadInput) -> bool:
    """True if a part of the log is damaged or gone, false if a disk or server refused it."""
    of_content = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
    return isinstance(error.__cause__, (*of_content, FileNotFoundError))


def _path_of(store: Store, error: BadInput) -> Path:
    """The file that an error names; ``_log`` for a file of the log, or if it names no file."""
    name = str(error.args[0]).removeprefix(f"warehouse {store.place}").removeprefix(", ")
    path = store.root / (name.removeprefix(f"{store.root}/") or "_log")
    return store.root / "_log" if path.is_relative_to(store.root / "_log") else path


def _unread(store: Store, data_file: _DataFile, error: BadInput) -> Iterator[WarehouseProblem]:
    """The problem of an unreadable data file, if a kept version still names the file.

    The advice is to go back only for a damaged file of the newest version.
    """
    cause, (_, problem, fix) = error.__cause__, error.args
    if not data_file.is_newest:
        if data_file.manifest not in store.place.names(log.MANIFESTS):
            return  # compacted meanwhile
        problem = f"{problem}; only earlier versions hold it"
        fix = drop_earlier(store) if isinstance(cause, (Damaged, FileNotFoundError)) else fix
    elif isinstance(cause, Damaged):
        fix = GO_BACK
    yield WarehouseProblem(store.root / data_file.file.path, problem, fix)


def _delta_problems(store: Store, manifest: log.Manifest) -> Iterator[WarehouseProblem]:
    directory = f"{manifest.table}/_delta_log"
    where = store.root / directory
    compact = command(store.place, "compact")
    fix = f"remove {directory}, then {compact} writes it again"
    expected = [delta.log_name(manifest.table, v) for v in range(manifest.version + 1)]
    existing = {f"{directory}/{name}" for name in store.place.names(directory)}
    names = [name for name in expected if name in existing]
    if names != expected[: len(names)]:
        yield WarehouseProblem(where, "lacks versions", fix)
        return
    listed: dict[str, int] = {}
    for name in names:
        try:
            listed = log.stable(store.place, name, partial(delta.replay, files=listed))
        except ValueError as e:
            yield WarehouseProblem(store.root / name, f"is damaged: {e}", fix)
            return
    files = {delta.quoted(manifest.table, file.path): file.n_bytes for file in manifest.files}
    if names == expected and listed != files:
        yield WarehouseProblem(where, "does not list the files of the table", fix)
    elif names != expected and not others_running(store):
        yield WarehouseProblem(where, "ends before the newest state of the table", compact)


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
