"""Migration of an older warehouse to the newest version, in one commit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plumbline.warehouse.errors import BadInput, disk_problems
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage import log
from plumbline.warehouse.storage.format import changes_since, newest_version
from plumbline.warehouse.storage.log import Draft, File, columns_id
from plumbline.warehouse.storage.opening import migratable, place_of
from plumbline.warehouse.storage.place import command
from plumbline.warehouse.storage.store import Store, cast


@dataclass(frozen=True)
class Migrated:
    """The versions before and after, and the paths of outdated files."""

    before: int
    after: int
    files: tuple[Path, ...]


def migrate(root: Path, *, dry_run: bool = False) -> Migrated:
    """Bring every file to the newest version, and fill in columns that were added.

    Only outdated files are rewritten; the old files stay until ``compact`` removes them. All tables
    change in one commit: an interrupted call changes nothing, and can be repeated. With ``dry_run``
    no file is rewritten. Raises ``BadInput``, and changes nothing, for a warehouse that is newer or
    too old, and for a file that can't be read or whose rows don't fit
    their table's columns.
    """
    store = Store(place_of(root))

    def change(draft: Draft) -> None:
        draft.format = newest_version()
        for name, file in outdated:
            if file in draft.files(name):  # else another writer has replaced it
                draft.swap(name, [file], [_rewritten(store, name, file, now.format)])

    with disk_problems(root):
        now = migratable(store.place)
        outdated: list[tuple[str, File]] = [
            (name, file)
            for name in now.tables
            for file in now.files(name)
            if changes_since(now.format, name) or file.columns != columns_id(TABLES[name])
        ]
        if not dry_run:
            log.commit(store.place, change, "", "migrate")
    paths = tuple(store.root / file.path for _, file in outdated)
    return Migrated(now.format, newest_version(), paths)


def _rewritten(store: Store, name: str, file: File, version: int) -> File:
    path = store.path(file)
    rows = store.rows(path)
    for change in changes_since(version, name):
        rows = change(rows)
    try:
        made = cast(TABLES[name], TABLES[name].with_new_names(rows))
        partition = store.partition_of(name, made)
    except BadInput as e:
        forget = command(store.place, "forget", str(path))
        fix = f"no migration leads to the current format: {forget}, then run again what wrote it"
        raise BadInput(str(path), str(e), fix) from e
    return store.write(name, partition, made, file.units, path.stat().st_mtime_ns // 1_000_000)
