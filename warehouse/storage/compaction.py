"""Compact a warehouse: merge small files, and remove old versions and unfinished files."""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from contextlib import suppress
from datetime import datetime, timedelta, timezone

from plumbline.warehouse.errors import BadInput, UsageProblem, disk_problems
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage import delta, log
from plumbline.warehouse.storage.log import Draft, Snapshot
from plumbline.warehouse.storage.place import STAGING, File
from plumbline.warehouse.storage.store import Store

#: Files smaller than this, in bytes, are merged.
SMALL_BYTES = 16 << 20
#: Number of days that old versions are kept by default.
KEEP_DAYS = 7.0
#: A file that no version names may belong to a running command if it's younger than this.
UNFINISHED = timedelta(days=1)


def compact(store: Store, run_id: str, keep_days: float = KEEP_DAYS) -> tuple[int, dict[str, str]]:
    """Merge small files, and remove old versions and leftovers.

    Returns the number of partitions whose files were merged. Also returns the removed files and
    directories, each with the reason why it was removed (see ``leftovers``).

    Other processes can read and write at the same time. A merged file replaces the small files only
    if none of them was replaced in the meantime. Versions older than ``keep_days`` are removed,
    together with the files that only they use. Raises ``BadInput`` for a file that can't be read.
    """

    def drop(draft: Draft) -> None:
        draft.oldest = _oldest_to_keep(draft.base, keep_days)

    small = _small_files(store, run_id)
    with disk_problems(store.root):
        for (table, partition), files in small.items():
            _merge(store, table, partition, files, run_id)
        # Drop versions before their files. Otherwise someone could restore a version without files.
        log.commit(store.place, drop, run_id, "drop old versions")
        for table, listing in store.snapshot().declared.items():
            delta.renew(store.place, table, listing)
        gone = leftovers(store)
        for name in gone:
            _remove(store, name)
    return len(small), gone


def _oldest_to_keep(now: Snapshot, keep_days: float) -> int:
    limit = datetime.now(timezone.utc) - timedelta(days=keep_days)
    for version in log.versions(now.place) if keep_days else ():
        if log.snapshot(now.place, version).time >= limit:
            return version
    return now.version


def _small_files(store: Store, run_id: str) -> dict[tuple[str, tuple[str, ...]], list[File]]:
    now, small = store.snapshot(), defaultdict(list)
    for table in now.declared:
        for file in now.files(table):
            is_own_row = table == "run" and run_id in (unit.name for unit in file.units)
            if file.n_bytes < SMALL_BYTES and not is_own_row:
                small[table, file.partition].append(file)
    return {of: files for of, files in small.items() if len(files) > 1}


def _merge(
    store: Store, table: str, values: tuple[str, ...], files: list[File], run_id: str
) -> None:
    import pyarrow as pa

    rows = pa.concat_tables([store.rows_of(table, file) for file in files])
    partition = dict(zip(TABLES[table].partitions, values, strict=True))
    merged = store.write(table, partition, rows, [unit for file in files for unit in file.units])

    def change(draft: Draft) -> None:
        if set(files) <= set(draft.files(table)):
            draft.swap(table, files, [], [merged])

    log.commit(store.place, change, run_id, f"compact {table}")


def leftovers(store: Store) -> dict[str, str]:
    """Find unfinished files and directories, and files that no version since ``oldest`` uses.

    Return them sorted, each with the reason to remove it. Skip files younger than a day, because a
    running command may still commit them. Raises ``BadInput`` if a commit is damaged or missing.
    """
    limit = time.time() - UNFINISHED.total_seconds()
    newest, named = log.snapshot(store.place), set()
    for version in range(newest.oldest, newest.version + 1):
        try:
            state = log.snapshot(store.place, version) if version < newest.version else newest
        except UsageProblem as e:
            problem = f"version {version} is not there"
            raise BadInput(f"warehouse {store.place}", problem, log.GET_COPY) from e
        named.add(log.commit_name(version))
        named.update(f.path for listing in state.tables.values() for f in listing.files)
    found = {
        name: "a file that no kept version names"
        for name, written in store.place.walk()
        if written < limit and name not in named and _can_be_named(name)
    }
    for path in (store.place.scratch() / STAGING).glob("*"):
        with suppress(FileNotFoundError):  # another command has just moved the file
            if max(p.lstat().st_mtime for p in (path, *path.rglob("*"))) < limit:
                found[f"{STAGING}/{path.name}"] = "a file or partition that was not finished"
    return dict(sorted(found.items()))


def _can_be_named(name: str) -> bool:
    table, _, rest = name.partition("/")
    is_data = table in TABLES and rest.endswith(".parquet") and not rest.startswith("_delta_log/")
    return is_data or name.startswith(f"{log.COMMITS}/")


def _remove(store: Store, name: str) -> None:
    path = store.place.scratch() / name
    if not name.startswith(f"{STAGING}/"):
        store.place.remove(name)
    elif path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
