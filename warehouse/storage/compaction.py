"""Compaction: merge small files, drop old versions, remove leftovers of stopped commands."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from plumbline.warehouse.errors import BadInput, UsageProblem, disk_problems
from plumbline.warehouse.paths import json_object
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage import delta, log
from plumbline.warehouse.storage.listing import File
from plumbline.warehouse.storage.log import Draft, Snapshot
from plumbline.warehouse.storage.place import STAGING, Place, command
from plumbline.warehouse.storage.run_records import others_running
from plumbline.warehouse.storage.store import Store

#: Files of fewer bytes than this are merged.
SMALL_BYTES = 16 << 20
#: Days for which old versions are kept by default.
KEEP_DAYS = 7.0
#: More days than the age of any warehouse: every version is kept.
ALL_DAYS = 1e6
#: Kind of unfinished work -> its table, and the columns whose values name its directories.
_PUBLISHED_IN = {
    "score": ("pair_score", ("model_key", "benchmark")),
    "sample": ("continuation", ("model_key", "probe_set", "sampling_key")),
    "probe": ("pronoun_probability", ("probe_set", "model_key", "word_list", "instruction_key")),
}


@dataclass(frozen=True)
class Merge:
    """Small files of one partition that become one file."""

    table: str
    partition: tuple[str, ...]
    files: tuple[File, ...]


@dataclass(frozen=True)
class Leftover:
    """A file or directory to remove: its path in the warehouse, and the reason."""

    path: str
    why: str


@dataclass(frozen=True)
class CompactionPlan:
    """The files to merge and the files to remove."""

    merges: tuple[Merge, ...]
    leftovers: tuple[Leftover, ...]


def plan(store: Store, keep_days: float = KEEP_DAYS) -> CompactionPlan:
    """The plan of ``compact``; writes nothing."""
    return CompactionPlan(tuple(_merges(store, "")), tuple(leftovers(store, keep_days)))


def compact(store: Store, run_id: str, keep_days: float = KEEP_DAYS) -> CompactionPlan:
    """Merge and remove the files of ``plan``. Other processes may read and write meanwhile.

    A merged file is read back and compared with the rows of its parts. It replaces the parts only
    if nobody has replaced one of them meanwhile. Versions older than ``keep_days`` are removed with
    the files that only they name. Raises ``BadInput`` for a file that can't be read.
    """
    merges = tuple(_merges(store, run_id))
    with disk_problems(store.root):
        for merge in merges:
            with store.place.writing():
                _merge(store, merge, run_id)
        drop = partial(_drop_old, keep_days=keep_days)  # first: then nobody restores such a version
        log.commit(store.place, drop, run_id, "drop old versions")
        with store.place.writing():
            for table, listing in store.snapshot().declared.items():
                delta.renew(store.place, table, listing)
        gone = leftovers(store, keep_days)
        for leftover in gone:
            _remove(store, leftover.path)
    return CompactionPlan(merges, tuple(gone))


def _drop_old(draft: Draft, keep_days: float) -> None:
    """Drop all versions but those to keep; without ``keep_days``, all before this commit."""
    base, now = draft.base, datetime.now(timezone.utc)
    if not keep_days and base.oldest < base.version:
        draft.oldest = base.version + 1
    for version in log.versions(base.place) if keep_days else ():
        draft.oldest = version
        if now - log.snapshot(base.place, version).time <= timedelta(days=keep_days):
            return


def _merges(store: Store, run_id: str) -> Iterator[Merge]:
    now = store.snapshot()
    for table in now.declared:
        small = defaultdict(list)
        for file in now.files(table):
            # The row of this run is written again at its end.
            is_own_row = table == "run" and run_id in (unit.name for unit in file.units)
            if file.n_bytes < SMALL_BYTES and not is_own_row:
                small[file.partition].append(file)
        for partition, files in small.items():
            if len(files) > 1:
                yield Merge(table, partition, tuple(files))


def _merge(store: Store, merge: Merge, run_id: str) -> None:
    table = TABLES[merge.table]
    rows = pa.concat_tables([store.rows_of(table.name, f) for f in merge.files])
    partition = dict(zip(table.partitions, merge.partition, strict=True))
    units = [unit for file in merge.files for unit in file.units]
    written_ms = max(file.written_ms for file in merge.files)
    merged = store.write(merge.table, partition, rows, units, written_ms)
    if not _same(store.rows_of(table.name, merged), rows):
        problem = "does not hold the rows of its parts"
        raise BadInput(str(store.path(merged)), problem, "nothing was changed")

    def change(draft: Draft) -> None:
        if set(merge.files) <= set(draft.files(merge.table)):
            draft.swap(merge.table, merge.files, [], [merged])

    log.commit(store.place, change, run_id, f"compact {merge.table}")


def _same(one: pa.Table, other: pa.Table) -> bool:
    """True if two tables hold the same rows in order; NaN equals NaN."""
    return bool(_bits(one).equals(_bits(other)))


def _bits(table: pa.Table) -> pa.Table:
    """A table with the bits of its floating-point numbers as integers."""
    columns, kinds = [], {pa.float32(): pa.int32(), pa.float64(): pa.int64()}
    for column in table.columns:
        kind = kinds.get(column.type, column.type)
        columns.append(pa.chunked_array([c.view(kind) for c in column.chunks], kind))
    return pa.table(columns, table.column_names)


def leftovers(store: Store, keep_days: float = KEEP_DAYS) -> list[Leftover]:
    """Files to remove, sorted by path: of old versions, unfinished, or published since.

    Files in ``_work`` are listed only if no other run may be writing; other files only if the place
    ``is_quiet`` or, if that can't be known, no other run may be writing. Results that save later
    work are not leftovers: counts of shards, paid replies, unpublished chunks of scores, samples
    and probabilities.
    """
    # In this order, to keep files written meanwhile: a listed file was begun before the listing. If
    # nobody writes after the listing, the file is committed by now or never will be.
    names = set(store.place.walk())
    staged = list((store.place.scratch() / STAGING).glob("*"))
    work = [*_old_chunks(store), *_unfinished_counts(store)]
    is_busy, is_quiet = bool(others_running(store)), store.place.is_quiet()
    removable = [] if is_busy else work
    if is_quiet or (is_quiet is None and not is_busy):
        kept = list(_versions_to_keep(store.place, keep_days))
        to_keep = {log.commit_name(state.version) for state in kept}
        for state in kept:
            to_keep.update(f.path for listing in state.tables.values() for f in listing.files)
        # While somebody may be writing, commits stay: a slow writer may still try to create one of
        # these names, which must be taken.
        commits = f"{log.COMMITS}/"
        gone = {n for n in names - to_keep if _is_data(n) or (is_quiet and n.startswith(commits))}
        removable += [
            Leftover(_named(store, p), "a file or partition that was not finished") for p in staged
        ]
        removable += [Leftover(n, "a file that no version to keep names") for n in gone]
    return sorted(removable, key=lambda leftover: leftover.path)


def _versions_to_keep(place: Place, keep_days: float) -> Iterator[Snapshot]:
    """The newest version and those of the last ``keep_days``, newest first.

    Raises ``BadInput`` if the commit of such a version is damaged or gone.
    """
    state = newest = log.snapshot(place)
    yield newest
    for version in range(newest.version - 1, newest.oldest - 1, -1) if keep_days else ():
        try:
            state = log.snapshot(place, version)
        except UsageProblem as e:
            problem = f"version {version} is not there"
            raise BadInput(f"warehouse {place}", problem, drop_earlier(place)) from e
        if datetime.now(timezone.utc) - state.time > timedelta(days=keep_days):
            return
        yield state


def drop_earlier(place: Place) -> str:
    """What to tell the user when a missing file is needed only by earlier versions."""
    drop = command(place, "compact", "--keep-days", "0")
    return f"get it from a copy, or drop all earlier versions: {drop}"


def _is_data(name: str) -> bool:
    table, _, rest = name.partition("/")
    return table in TABLES and rest.endswith(".parquet") and not rest.startswith("_delta_log/")


def _remove(store: Store, name: str) -> None:
    path = store.place.scratch() / name
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    elif name.split("/")[0] in (STAGING, "_work"):
        path.unlink(missing_ok=True)
    else:
        store.place.remove(name)


def _named(store: Store, path: Path) -> str:
    return path.relative_to(store.place.scratch()).as_posix()


def _old_chunks(store: Store) -> Iterator[Leftover]:
    """Directories of chunks that are empty or were published, and locks of ended commands."""
    now = store.snapshot()
    for kind, (table, names) in _PUBLISHED_IN.items():
        work = store.work_directory(kind, create=False)
        for path in work.glob("/".join("*" * len(names))):
            if path.suffix == ".claim":
                yield Leftover(_named(store, path), "the lock of a command that has ended")
                continue
            values = dict(zip(names, map(unquote, path.relative_to(work).parts), strict=True))
            ordered = {p: values[p] for p in TABLES[table].partitions if p in values}
            published = max((f.written_ms for f in now.files(table, ordered)), default=None)
            times = [chunk.stat().st_mtime_ns // 1_000_000 for chunk in path.rglob("*.parquet")]
            if not times or (published is not None and published >= max(times)):
                why = f"published in {table} since" if times else "an empty directory"
                yield Leftover(_named(store, path), why)


def _unfinished_counts(store: Store) -> Iterator[Leftover]:
    """Files of counts that no shard's ledger names: their attempts were not finished."""
    for directory in store.work_directory("count", create=False).glob("*"):
        named: set[str] = set()
        for ledger in directory.glob("*.json"):
            named |= _files_of(ledger)
        for path in directory.glob("*.parquet"):
            if path.name not in named:
                yield Leftover(_named(store, path), "counts of a shard that were not finished")


def _files_of(ledger: Path) -> set[str]:
    try:
        return set(map(str, json_object(ledger)["files"]))
    except (OSError, ValueError, KeyError, TypeError) as e:
        fix = f"remove {ledger} to count its shard again"
        raise BadInput(str(ledger), "is not the ledger of a shard", fix) from e
