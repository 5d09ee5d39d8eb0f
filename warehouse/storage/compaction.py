"""Compaction: merge the small files of each partition, and remove what stopped commands left."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plumbline.warehouse.errors import BadInput, disk_problems
from plumbline.warehouse.provenance.runs import refuse_beside_runs
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.paths import replace_directory
from plumbline.warehouse.storage.store import Store, cast, file_metadata, write_file
from plumbline.warehouse.storage.units import PREFIX, units_metadata, units_of

#: Files of fewer bytes than this are merged.
SMALL_BYTES = 16 << 20
#: Kind of unfinished work -> the table it is published in, and the columns its directories name.
_PUBLISHED_IN = {
    "score": ("pair_score", ("model_key", "benchmark")),
    "sample": ("continuation", ("model_key", "probe_set", "sampling_key")),
    "probe": ("pronoun_probability", ("probe_set", "model_key", "word_list", "instruction_key")),
    "perplexity": ("perplexity", ("text_set", "model_key", "window_tokens")),
}


@dataclass(frozen=True)
class Merge:
    """Small files of one partition's directory that become one."""

    table: str
    directory: Path
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Leftover:
    """A file or directory that can go, and why."""

    path: Path
    why: str


@dataclass(frozen=True)
class Plan:
    """What to compact."""

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

    A merged file is read back and compared with the rows of its parts before it replaces them; it
    records their units and runs. The whole directory is replaced, as the store does. Raises
    ``UsageProblem`` while a run may be writing, unless ``force``; ``BadInput`` for a file that
    can't be read.
    """
    if not force:
        refuse_beside_runs(store, "compact")
    todo = plan(store)
    with disk_problems(store.root):
        for leftover in todo.leftovers:
            if leftover.path.is_dir():
                shutil.rmtree(leftover.path)
            else:
                leftover.path.unlink(missing_ok=True)
        for merge in todo.merges:
            _merge(store, merge, run_id)
    return todo


def _merge(store: Store, merge: Merge, run_id: str) -> None:
    # This run's own row is written again when it ends.
    files = [path for path in merge.files if path.stem != run_id]
    if len(files) < 2:
        return
    staged = store.root / "_staging" / uuid.uuid4().hex
    staged.mkdir(parents=True)
    made = staged / f"{PREFIX}{uuid.uuid4().hex[:12]}.parquet"
    rows = pa.concat_tables([_rows(merge.table, path) for path in files])
    units = units_metadata(unit for path in files for unit in units_of(path))
    write_file(made, rows.replace_schema_metadata(file_metadata(merge.table, run_id) | units))
    if not _same(pq.ParquetFile(made).read(), rows):
        raise BadInput(str(made), "does not hold the rows of its parts", "nothing was changed")
    # `_chunks` compares file times to see which unfinished work has been published since.
    newest = max(path.stat().st_mtime_ns for path in files)
    os.utime(made, ns=(newest, newest))
    for path in merge.directory.iterdir():
        if path not in files:
            try:
                os.link(path, staged / path.name)
            except OSError:  # no hard links on this file system
                shutil.copy2(path, staged / path.name)
    replace_directory(staged, merge.directory)


def _rows(table: str, path: Path) -> pa.Table:
    try:
        return cast(TABLES[table], pq.ParquetFile(path).read())
    except (pa.ArrowInvalid, OSError) as e:
        raise BadInput(str(path), "can't be read", "run `plumbline warehouse check`") from e


def _same(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables of one schema hold the same rows; NaN equals NaN."""
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


def leftovers(store: Store) -> list[Leftover]:
    """Everything that may be removed while no run is writing; paths in order.

    Results that save work later are not leftovers: counts of shards, paid replies, unpublished
    chunks of scores, samples and probabilities.
    """
    found = [*_temporary(store.root), *_staged(store.root), *_chunks(store), *_partials(store.root)]
    return sorted(found, key=lambda leftover: leftover.path)


def _temporary(root: Path) -> Iterator[Leftover]:
    for path in root.rglob("_*.tmp"):
        if "_staging" not in path.relative_to(root).parts:
            yield Leftover(path, "a file that was not finished")


def _staged(root: Path) -> Iterator[Leftover]:
    for path in (root / "_staging").glob("*"):
        if lost_partition(root, path) is None:
            yield Leftover(path, "a partition that was not finished, or has been replaced")


def lost_partition(root: Path, staged: Path) -> Path | None:
    """Where a retired partition belongs if its replacement is missing, otherwise ``None``.

    A command killed between the two renames that replace a partition leaves it like this.
    """
    part = next(staged.glob("*.parquet"), None)
    if not staged.name.endswith("-retired") or part is None:
        return None
    try:
        name = (pq.read_schema(part).metadata or {})[b"plumbline.table"].decode()
        table = TABLES[name]
        first = pq.ParquetFile(part).read_row_group(0, columns=list(table.partitions)).to_pylist()
    except (OSError, ValueError, KeyError):
        return None
    destination = Store(root).directory(name, first[0] if table.partitions else {})
    return None if destination.exists() else destination


def _chunks(store: Store) -> Iterator[Leftover]:
    for kind, (table, names) in _PUBLISHED_IN.items():
        work = store.root / "_work" / kind
        for path in work.glob("/".join("*" * len(names))):
            if path.suffix == ".claim":
                yield Leftover(path, "the lock of a command that has ended")
                continue
            values = dict(zip(names, map(unquote, path.relative_to(work).parts), strict=True))
            ordered = {p: values[p] for p in TABLES[table].partitions if p in values}
            published = _newest(store.directory(table, ordered))
            inside = _newest(path)
            if inside is None or (published is not None and published > inside):
                why = f"published in {table} since" if inside else "an empty directory"
                yield Leftover(path, why)


def _newest(directory: Path) -> int | None:
    times = [path.stat().st_mtime_ns for path in directory.rglob("*.parquet")]
    return max(times, default=None)


def _partials(root: Path) -> Iterator[Leftover]:
    """Files of attempts at a shard that no ledger names."""
    for directory in (root / "_work" / "count").glob("*"):
        named: set[str] = set()
        for ledger in directory.glob("*.json"):
            named |= set(json.loads(ledger.read_text("utf-8"))["files"])
        for path in directory.glob("*.parquet"):
            if path.name not in named:
                yield Leftover(path, "counts of a shard that were not finished")
