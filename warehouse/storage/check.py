"""Check a warehouse for problems with its log, files, hashes, keys and leftover files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import TypeAlias

from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import Table
from plumbline.warehouse.storage import delta, log
from plumbline.warehouse.storage.compaction import leftovers
from plumbline.warehouse.storage.log import Snapshot
from plumbline.warehouse.storage.opening import reading
from plumbline.warehouse.storage.place import File, command
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress

#: Maps the path of a data file to its table, its ``File``, and the newest version that has it.
_Files: TypeAlias = dict[str, tuple[str, File, int]]


def check(store: Store) -> list[dict[str, str]]:
    """Find all problems of a warehouse, sorted by path, without writing to it.

    Each problem has the ``path`` that is damaged or can't be checked, the ``problem``, and how to
    ``fix`` it. The check reads the data files of all ``log.versions`` and checks their hashes. For
    this, it downloads the files of an object store. It also finds keys that occur twice in the
    newest version, and files that ``compact`` would remove.

    Raises ``Interrupted`` if an object store fails or can't be reached.
    """
    newest = store.snapshot()
    files: _Files = {}
    faults = list(_logged(store, newest, files))
    good: dict[str, list[Path]] = {name: [] for name in newest.declared}
    with progress("check", "files") as update:
        for done, (name, (table, file, version)) in enumerate(sorted(files.items()), 1):
            where = store.root / name
            try:
                with reading(store.place, where):
                    path = store.place.local(file, stored=True)
                if version == newest.version and table in good:
                    good[table].append(path)
            except BadInput as e:
                _, problem, fix = e.args
                earlier = "" if version == newest.version else "; only earlier versions have it"
                faults.append(_problem(where, f"{problem}{earlier}", fix))
            update(done, len(files))
    for name, paths in good.items():
        faults += _repeated_keys(store, TABLES[name], paths)
        if problem := delta.problem(store.place, name, newest.tables[name]):
            fix = f"{command(store.place, 'compact')} writes it again"
            faults.append(_problem(store.root / name / "_delta_log", problem, fix))
    with suppress(BadInput):  # a damaged or missing commit is already reported
        for name, why in leftovers(store).items():
            path = store.place.scratch() / name
            faults.append(_problem(path, why, command(store.place, "compact")))
    return sorted(faults, key=itemgetter("path"))


def _problem(path: Path, problem: str, fix: str) -> dict[str, str]:
    return {"path": str(path), "problem": problem, "fix": fix}


def _logged(store: Store, newest: Snapshot, files: _Files) -> Iterator[dict[str, str]]:
    """Fill ``files`` with all data files in the log. Yield a problem for each unreadable commit."""
    for version in range(newest.version, newest.oldest - 1, -1):
        where = store.root / log.commit_name(version)
        try:
            state = log.snapshot(store.place, version)
        except (BadInput, UsageProblem) as e:  # the commit is damaged, or missing
            is_damaged = isinstance(e, BadInput)
            yield _problem(where, *(e.args[1:] if is_damaged else ("is not there", log.GET_COPY)))
            continue
        for table, listing in state.tables.items():
            for file in listing.files:
                files.setdefault(file.path, (table, file, version))


def _repeated_keys(store: Store, table: Table, paths: list[Path]) -> Iterator[dict[str, str]]:
    import duckdb

    if not paths:
        return
    key = ", ".join(f'"{name}"' for name in table.key)
    source = "read_parquet($files, hive_partitioning = false, union_by_name = true)"
    query = (
        f"SELECT count(*) OVER (), {key} FROM {source} GROUP BY {key} HAVING count(*) > 1 LIMIT 1"
    )
    with duckdb.connect() as connection:
        row = connection.execute(query, {"files": list(map(str, paths))}).fetchone()
    if row is not None:
        first = ", ".join(f"{n} {v!r}" for n, v in zip(table.key, row[1:], strict=True))
        problem = f"{row[0]:,} keys occur more than once, such as {first}"
        fix = "run the command that wrote it again, see `plumbline runs`"
        yield _problem(store.root / table.name, problem, fix)
