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

_COMPACT = "plumbline warehouse compact"
_MIGRATE = "plumbline warehouse migrate"


@dataclass(frozen=True)
class Problem:
    """What is wrong with a file or directory, and a command that fixes it."""

    path: Path
    problem: str
    fix: str


def check(store: Store) -> list[Problem]:
    """All problems of a warehouse, in the order of their paths; nothing is written.

    Every file is read to its end. While a run may be writing, leftovers of commands are not looked
    for: they may be that run's.

    >>> import tempfile
    >>> check(Store.open(tempfile.mkdtemp() + "/w"))
    []
    """
    runs = _runs(store)
    found = list(_foreign(store.root))
    whole_files: list[Path] = []
    for table in TABLES.values():
        whole = []
        for path in sorted((store.root / table.name).rglob("*")):
            if path.is_file() and not path.name.endswith(".tmp"):
                problems = list(_file(store, table, path))
                found += problems
                whole += [] if problems else [path]
        found += _repeated_keys(store.root / table.name, table, whole)
        whole_files += whole
    if not any(may_be_running(row) for row in runs):
        found += _leftover_problems(store)
    # Read again: files that a running command wrote meanwhile have their run there by now.
    found += _without_run(whole_files, {row["run_id"] for row in _runs(store)})
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
            yield Problem(path, f"its run {run_id or '(none)'} is not in `run`", _away(path))


def _foreign(root: Path) -> Iterator[Problem]:
    for path in root.iterdir():
        if path.name not in {*TABLES, MARKER, "_staging", "_work"} and path.suffix != ".tmp":
            yield Problem(path, "belongs to no table", _away(path))


def _away(path: Path) -> str:
    return f"mv {shlex.quote(str(path))} elsewhere"


def _leftover_problems(store: Store) -> Iterator[Problem]:
    for leftover in leftovers(store):
        yield Problem(leftover.path, leftover.why, _COMPACT)
    for path in (store.root / "_staging").glob("*"):
        destination = lost_partition(store.root, path)
        if destination is not None:
            move = shlex.join(["mv", str(path), str(destination)])
            fix = f"{shlex.join(['mkdir', '-p', str(destination.parent)])} && {move}"
            yield Problem(path, "a partition whose replacement was not finished", fix)


def _file(store: Store, table: Table, path: Path) -> Iterator[Problem]:
    """Problems of one file; those of its content only when it can be read as the table's."""
    if path.suffix != ".parquet":
        yield Problem(path, "is not a Parquet file", _away(path))
        return
    try:
        file = pq.ParquetFile(path)
        rows = file.read()
        units_of(path)
    except FileNotFoundError:  # replaced meanwhile
        return
    except (pa.ArrowException, OSError, ValueError) as e:
        problem = f"can't be read: {str(e).splitlines()[0]}"
        yield Problem(path, problem, f"{_away(path)}, then run again what wrote it")
        return
    shape = list(_shape(store, table, path, rows.schema))
    yield from shape
    if shape:
        return
    metadata = rows.schema.metadata or {}
    named = metadata.get(b"plumbline.table", b"").decode()
    if named != table.name:
        yield Problem(path, f"belongs to table {named or 'unknown'}", _away(path))
    yield from _content(store, table, path, rows)


def _shape(store: Store, table: Table, path: Path, schema: pa.Schema) -> Iterator[Problem]:
    again = f"{_away(path)}, then run again what wrote it"
    for field in table.arrow:
        if field.name in schema.names:
            found = schema.field(field.name).type
            if found != field.type:
                yield Problem(path, f"{field.name} is {found}, not {field.type}", again)
        elif not field.nullable:
            yield Problem(path, f"has no column {field.name}", again)
        elif table.name not in older_tables(store.root):
            yield Problem(path, f"has no column {field.name}", _MIGRATE)
    for name in schema.names:
        if name not in table.arrow.names:
            yield Problem(path, f"has the unknown column {name}", again)


def _content(store: Store, table: Table, path: Path, rows: pa.Table) -> Iterator[Problem]:
    again = f"{_away(path)}, then run again what wrote it"
    for field in table.arrow:
        if not field.nullable and rows[field.name].null_count:
            yield Problem(path, f"{field.name} holds NULL, which is not allowed", again)
    values = {name: pc.unique(rows[name]).to_pylist() for name in table.partitions}
    expected = [f"{name}={quote(str(v[0]), safe='')}" for name, v in values.items() if len(v) == 1]
    if list(path.parent.relative_to(store.root / table.name).parts) != expected:
        several = ", ".join(f"{name}: {len(v)}" for name, v in values.items() if len(v) != 1)
        problem = f"its rows belong to {'/'.join(expected) or 'no partition'}"
        yield Problem(path, problem + (f" and several ({several})" if several else ""), again)


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
        yield Problem(
            directory,
            problem,
            "run again the command that wrote it, see `plumbline runs list`",
        )
