"""Merge the small files of a partition into one, and remove what stopped commands left."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plumbline.warehouse.errors import BadInput, disk_problems
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.activity import refuse_beside_runs
from plumbline.warehouse.storage.leftovers import Leftover, leftovers
from plumbline.warehouse.storage.merged import PREFIX, Unit, units_metadata, units_of
from plumbline.warehouse.storage.migrations import newest_version
from plumbline.warehouse.storage.store import Store, cast
from plumbline.warehouse.storage.swap import put

#: Files of fewer bytes than this are merged.
SMALL_BYTES = 16 << 20


@dataclass(frozen=True)
class Merge:
    """Small files of one partition's directory that are to become one."""

    table: str
    directory: Path
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Plan:
    """What there is to compact."""

    merges: tuple[Merge, ...]
    leftovers: tuple[Leftover, ...]


def plan(store: Store) -> Plan:
    """What ``compact`` would do; nothing is written.

    A directory with anything but published files in it is left alone (``check`` names that).
    """
    merges = []
    for table in TABLES:
        for directory, files in _directories(store.root / table):
            small = tuple(f for f in files if f.stat().st_size < SMALL_BYTES)
            if len(small) > 1:
                merges.append(Merge(table, directory, small))
    return Plan(tuple(merges), tuple(leftovers(store)))


def _directories(top: Path) -> Iterator[tuple[Path, list[Path]]]:
    for directory in [top, *sorted(p for p in top.rglob("*") if p.is_dir())]:
        inside = sorted(directory.iterdir()) if directory.exists() else []
        if inside and all(p.suffix == ".parquet" and p.is_file() for p in inside):
            yield directory, inside


def compact(store: Store, run_id: str, *, force: bool = False) -> Plan:
    """Do what ``plan`` says, and return it.

    A merged file is read back and held against the rows of its parts before it takes their place;
    it keeps the names of their units and runs. The place is taken by renaming the directory, as
    with every partition that the store replaces. Raises ``UsageProblem`` while a run may be
    writing, unless ``force``; ``BadInput`` for a file that can't be read.
    """
    if not force:
        refuse_beside_runs(store, "compact")
    todo = plan(store)
    with disk_problems(store.root):
        for leftover in todo.leftovers:
            _remove(leftover.path)
        for merge in todo.merges:
            _merge(store, merge, run_id)
    return todo


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _merge(store: Store, merge: Merge, run_id: str) -> None:
    # The row of this very run is written again at its end.
    files = [path for path in merge.files if path.stem != run_id]
    if len(files) < 2:
        return
    staged = store.root / "_staging" / uuid.uuid4().hex
    staged.mkdir(parents=True)
    made = staged / f"{PREFIX}{uuid.uuid4().hex[:12]}.parquet"
    _write(merge.table, files, made, run_id)
    _verify(merge.table, files, made)
    # Whether work is younger than what was published is told by the time.
    newest = max(path.stat().st_mtime_ns for path in files)
    os.utime(made, ns=(newest, newest))
    for path in merge.directory.iterdir():
        if path not in files:
            try:
                os.link(path, staged / path.name)
            except OSError:  # no hard links on this file system
                shutil.copy2(path, staged / path.name)
    put(staged, merge.directory)


def _write(table: str, files: Sequence[Path], made: Path, run_id: str) -> None:
    units: list[Unit] = [unit for path in files for unit in units_of(path)]
    values = {"table": table, "run_id": run_id, "warehouse_version": str(newest_version())}
    metadata = {f"plumbline.{key}".encode(): value.encode() for key, value in values.items()}
    schema = TABLES[table].arrow.with_metadata(metadata | units_metadata(units))
    with pq.ParquetWriter(made, schema, compression="zstd") as writer:
        for path in files:
            writer.write_table(_rows(table, path))


def _rows(table: str, path: Path) -> pa.Table:
    try:
        return cast(TABLES[table], pq.ParquetFile(path).read())
    except (pa.ArrowInvalid, OSError) as e:
        raise BadInput(str(path), "can't be read", "run `plumbline warehouse check`") from e


def _same(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables of one schema hold the same rows; NaN is like NaN."""
    if one.num_rows != other.num_rows:
        return False
    for a, b in zip(one.columns, other.columns, strict=True):
        if pa.types.is_floating(a.type):
            if not pc.is_nan(a).equals(pc.is_nan(b)):
                return False
            a, b = (pc.if_else(pc.is_nan(c), pa.scalar(0, c.type), c) for c in (a, b))
        if not a.equals(b):
            return False
    return True


def _verify(table: str, files: Sequence[Path], made: Path) -> None:
    """Raises ``BadInput`` unless the new file holds exactly the rows of the old ones, in order."""
    whole, start = pq.ParquetFile(made).read().replace_schema_metadata(None), 0
    for path in files:
        rows = _rows(table, path)
        if not _same(whole.slice(start, rows.num_rows), rows):
            raise BadInput(str(made), f"does not hold the rows of {path}", "nothing was changed")
        start += rows.num_rows
    if start != whole.num_rows:
        raise BadInput(str(made), "holds more rows than its parts", "nothing was changed")
