"""Check of a warehouse: files, schemas, runs, partitions, keys, leftovers of stopped commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plumbline.warehouse.provenance.runs import may_be_running
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import Table
from plumbline.warehouse.storage.compaction import leftovers, lost_partition
from plumbline.warehouse.storage.format import MARKER, older_tables
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.storage.units import units_of


@dataclass(frozen=True)
class Problem:
    """What is wrong with a file or directory, and a command that fixes it."""

    path: Path
    problem: str
    fix: str


def check(store: Store) -> list[Problem]:
    """All problems of a warehouse, in the order of their paths; nothing is written.

    Every file is read to its end. While a run may be writing, leftovers are not reported, since
    they may be its unfinished work.

    >>> import tempfile
    >>> check(Store.open(tempfile.mkdtemp() + "/w"))
    []
    """
    runs = _runs(store)
    found = list(_foreign(store.root))
    good_files: list[Path] = []
    for table in TABLES.values():
        good = []
        for path in sorted((store.root / table.name).rglob("*")):
            if path.is_file() and not path.name.endswith(".tmp"):
                problems = list(_file_problems(store, table, path))
                found += problems
                good += [] if problems else [path]
        found += _repeated_keys(store.root / table.name, table, good)
        good_files += good
    if not any(may_be_running(row) for row in runs):
        found += _leftover_problems(store)
    # Read again: a command may have begun, and written files, since the first time.
    found += _without_run(good_files, {row["run_id"] for row in _runs(store)})
    return sorted(found, key=lambda problem: problem.path)


def _runs(store: Store) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = store.read("run").to_pylist()
    except (OSError, pa.ArrowInvalid):  # reported as problems of its files
        return []
    return rows


def _without_run(paths: Iterable[Path], runs: set[str]) -> Iterator[Problem]:
    for path in paths:
        try:
            run_ids = {unit.run_id for unit in units_of(path)}
        except FileNotFoundError:  # replaced meanwhile
            continue
        for run_id in sorted(run_ids - runs):
            yield Problem(path, f"its run {run_id or '(none)'} is not in `run`", _move_away(path))


def _foreign(root: Path) -> Iterator[Problem]:
    for path in root.iterdir():
        if path.name not in {*TABLES, MARKER, "_staging", "_work"} and path.suffix != ".tmp":
            yield Problem(path, "belongs to no table", _move_away(path))


def _move_away(path: Path) -> str:
    return f"mv {shlex.quote(str(path))} elsewhere"


def _write_again(path: Path) -> str:
    return f"{_move_away(path)}, then run again what wrote it"


def _leftover_problems(store: Store) -> Iterator[Problem]:
    for leftover in leftovers(store):
        yield Problem(leftover.path, leftover.why, "plumbline warehouse compact")
    for path in (store.root / "_staging").glob("*"):
        destination = lost_partition(store.root, path)
        if destination is not None:
            move = shlex.join(["mv", str(path), str(destination)])
            fix = f"{shlex.join(['mkdir', '-p', str(destination.parent)])} && {move}"
            yield Problem(path, "a partition whose replacement was not finished", fix)


def _file_problems(store: Store, table: Table, path: Path) -> Iterator[Problem]:
    """Problems of one file; its rows are checked only if it has the table's schema."""
    if path.suffix != ".parquet":
        yield Problem(path, "is not a Parquet file", _move_away(path))
        return
    try:
        file = pq.ParquetFile(path)
        rows = file.read()
        units_of(path)
    except FileNotFoundError:  # replaced meanwhile
        return
    except (pa.ArrowException, OSError, ValueError) as e:
        problem = f"can't be read: {str(e).splitlines()[0]}"
        yield Problem(path, problem, _write_again(path))
        return
    of_schema = list(_schema_problems(store, table, path, rows.schema))
    yield from of_schema
    if of_schema:
        return
    metadata = rows.schema.metadata or {}
    named = metadata.get(b"plumbline.table", b"").decode()
    if named != table.name:
        yield Problem(path, f"belongs to table {named or 'unknown'}", _move_away(path))
    yield from _row_problems(store, table, path, rows)


def _schema_problems(
    store: Store, table: Table, path: Path, schema: pa.Schema
) -> Iterator[Problem]:
    for field in table.arrow:
        if field.name in schema.names:
            found = schema.field(field.name).type
            if found != field.type:
                problem = f"{field.name} is {found}, not {field.type}"
                yield Problem(path, problem, _write_again(path))
        elif not field.nullable:
            yield Problem(path, f"has no column {field.name}", _write_again(path))
        elif table.name not in older_tables(store.root):
            problem = f"has no column {field.name}"
            yield Problem(path, problem, "plumbline warehouse migrate")
    for name in schema.names:
        if name not in table.arrow.names:
            yield Problem(path, f"has the unknown column {name}", _write_again(path))


def _row_problems(store: Store, table: Table, path: Path, rows: pa.Table) -> Iterator[Problem]:
    for field in table.arrow:
        if not field.nullable and rows[field.name].null_count:
            problem = f"{field.name} holds NULL, which is not allowed"
            yield Problem(path, problem, _write_again(path))
    values = {name: pc.unique(rows[name]).to_pylist() for name in table.partitions}
    expected = [f"{name}={quote(str(v[0]), safe='')}" for name, v in values.items() if len(v) == 1]
    if list(path.parent.relative_to(store.root / table.name).parts) != expected:
        several = ", ".join(f"{name}: {len(v)}" for name, v in values.items() if len(v) != 1)
        problem = f"its rows belong to {'/'.join(expected) or 'no partition'}"
        problem += f" and several ({several})" if several else ""
        yield Problem(path, problem, _write_again(path))


def _repeated_keys(directory: Path, table: Table, files: list[Path]) -> Iterator[Problem]:
    if not files:
        return
    key = ", ".join(f'"{name}"' for name in table.key)
    source = "read_parquet($files, hive_partitioning = false, union_by_name = true)"
    query = (
        f"SELECT count(*) OVER (), {key} FROM {source} GROUP BY {key} HAVING count(*) > 1 LIMIT 1"
    )
    with duckdb.connect() as connection:
        found = connection.execute(query, {"files": [str(path) for path in files]}).fetchone()
    if found is not None:
        first = ", ".join(f"{n} {v!r}" for n, v in zip(table.key, found[1:], strict=True))
        problem = f"{found[0]:,} keys more than once, such as {first}"
        fix = "run again the command that wrote it, see `plumbline runs list`"
        yield Problem(directory, problem, fix)
