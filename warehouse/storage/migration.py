"""Bring a warehouse of an older version to the newest one, in one commit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq

from plumbline.warehouse.errors import BadInput, disk_problems
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage import log
from plumbline.warehouse.storage.format import LOGGED, MARKER, changes_since, newest_version
from plumbline.warehouse.storage.log import Draft, File, Unit, columns_id
from plumbline.warehouse.storage.opening import marked_version, reading
from plumbline.warehouse.storage.place import Disk, sha256_of
from plumbline.warehouse.storage.store import Store, cast

_VERSION = b"plumbline.warehouse_version"
_UNITS = b"plumbline.units"
_RUN = b"plumbline.run_id"


@dataclass(frozen=True)
class Migrated:
    """The versions before and after, and the files that had to be rewritten."""

    before: int
    after: int
    files: tuple[Path, ...]


def migrate(root: Path, *, dry_run: bool = False) -> Migrated:
    """Bring every file to the newest version, and fill in columns that were added.

    Files that are as they should be stay where they are; of the others a new one is written, and
    the old one stays until ``compact`` removes it. All tables change in one commit: until then the
    warehouse is as it was, so after an interruption the same call begins again. With ``dry_run``
    nothing is written. Raises ``BadInput`` for a newer warehouse, and for a file that can't be read
    or does not fit; nothing is changed then.
    """
    store = Store(Disk(root))
    before = marked_version(store.place)
    with disk_problems(root):
        if before < LOGGED:
            return _begin_log(store, before, dry_run)
        return _rewrite_all(store, dry_run)


def _begin_log(store: Store, before: int, dry_run: bool) -> Migrated:
    """Make the commit log of a warehouse whose tables were the files of its directories."""
    root = store.root
    found: list[tuple[str, Path, int, tuple[Unit, ...]]] = []
    for name in TABLES:
        for path in sorted((root / name).glob("**/*.parquet")):
            with reading(store.place, path):
                metadata = pq.read_schema(path).metadata or {}
                found.append((name, path, *_described(path, metadata, before)))
    outdated = [f for f in found if _is_outdated(f[0], f[1], f[2])]
    if not dry_run:
        files: dict[str, list[File]] = {}
        for name, path, version, units in found:
            if (name, path, version, units) in outdated:
                made = _rewritten(store, name, path, version, units)
            else:
                made = _as_it_is(store, name, path, units)
            files.setdefault(name, []).append(made)
        log.begin(store.place, adopting=True)
        log.commit(store.place, lambda draft: _put(draft, files), "", "migrate")
        content = json.dumps({"warehouse_version": LOGGED})
        (root / MARKER).with_suffix(".new").write_text(content, encoding="utf-8")
        (root / MARKER).with_suffix(".new").replace(root / MARKER)
    return Migrated(before, newest_version(), tuple(f[1] for f in outdated))


def _described(
    path: Path, metadata: Mapping[bytes, bytes], before: int
) -> tuple[int, tuple[Unit, ...]]:
    """The version of a file without a log, and its units."""
    version = int(metadata.get(_VERSION, before))
    if _UNITS in metadata:
        try:
            listed = json.loads(metadata[_UNITS])
            return version, tuple(Unit(unquote(n), int(m), str(run)) for n, m, run in listed)
        except (TypeError, AttributeError, RecursionError) as e:
            raise ValueError(f"its {_UNITS.decode()} does not list units") from e
    n_rows = pq.read_metadata(path).num_rows
    return version, (Unit(unquote(path.stem), n_rows, metadata.get(_RUN, b"").decode()),)


def _is_outdated(name: str, path: Path, version: int) -> bool:
    names = pq.read_schema(path).names
    return names != TABLES[name].arrow.names or bool(changes_since(version, name))


def _as_it_is(store: Store, name: str, path: Path, units: tuple[Unit, ...]) -> File:
    table = TABLES[name]
    rows = store.rows(path).select(list(table.partitions))
    partition = tuple(store.partition_of(name, rows).values())
    where = path.relative_to(store.root).as_posix()
    about = path.stat()
    known = about.st_size, sha256_of(path), about.st_mtime_ns // 1_000_000, columns_id(table)
    return File(where, *known, partition, units)


def _rewritten(store: Store, name: str, path: Path, version: int, units: tuple[Unit, ...]) -> File:
    rows = store.rows(path)
    for change in changes_since(version, name):
        rows = change(rows)
    try:
        made = cast(TABLES[name], TABLES[name].with_new_names(rows))
        partition = store.partition_of(name, made)
    except BadInput as e:
        fix = "no migration leads to the current format: move it away and write it again"
        raise BadInput(str(path), str(e), fix) from e
    return store.write(name, partition, made, units, path.stat().st_mtime_ns // 1_000_000)


def _put(draft: Draft, files: Mapping[str, list[File]]) -> None:
    for name, made in files.items():
        draft.swap(name, draft.files(name), made)


def _rewrite_all(store: Store, dry_run: bool) -> Migrated:
    """Rewrite the files of a warehouse with a log that are of an older version."""
    now = log.snapshot(store.place)
    outdated: list[tuple[str, File]] = [
        (name, file)
        for name in now.tables
        for file in now.files(name)
        if changes_since(now.format, name) or file.columns != columns_id(TABLES[name])
    ]

    def change(draft: Draft) -> None:
        draft.format = newest_version()
        for name, file in outdated:
            if file not in draft.files(name):
                continue  # replaced meanwhile, by rows of the newest version or an older one
            made = _rewritten(store, name, store.path(file), now.format, file.units)
            draft.swap(name, [file], [made])

    if not dry_run:
        log.commit(store.place, change, "", "migrate")
    paths = tuple(store.root / file.path for _, file in outdated)
    return Migrated(now.format, newest_version(), paths)
