"""Rewrite every file of an older warehouse in the current format."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.warehouse.errors import BadInput, disk_problems
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage import format as formats
from plumbline.warehouse.storage.format import Change, newest_version, write_format
from plumbline.warehouse.storage.store import Store, cast, write_file

_VERSION = b"plumbline.warehouse_version"


@dataclass(frozen=True)
class Migrated:
    """The versions before and after, and the files that had to be rewritten."""

    before: int
    after: int
    files: tuple[Path, ...]


def migrate(root: Path, *, dry_run: bool = False) -> Migrated:
    """Apply to each file the migrations that are newer than it, and fill in added columns.

    The new file is complete, and its rows counted, before the old one is removed. After an
    interruption the same call resumes; until it is done, other commands refuse the warehouse. With
    ``dry_run`` nothing is written. Raises ``BadInput`` for a newer warehouse, and for a file that
    can't be read or does not fit; nothing is lost then.
    """
    content = formats.read_format(root)
    formats.refuse_newer(root, content)
    before, after = content.get("migrating_from", content["warehouse_version"]), newest_version()
    files = [(name, path) for name in TABLES for path in _outdated(root, name, before)]
    if not dry_run:
        with disk_problems(root):
            if files:
                write_format(
                    root, {**content, "warehouse_version": after, "migrating_from": before}
                )
            for name, path in files:
                _rewrite(Store(root), name, path, before)
            write_format(root, formats.current_format())
    return Migrated(before, after, tuple(path for _, path in files))


def _outdated(root: Path, name: str, before: int) -> list[Path]:
    """Files that lack columns, or are older than a migration of their table."""
    found = []
    for path in sorted((root / name).glob("**/*.parquet")):
        try:
            schema = pq.read_schema(path)
        except (pa.ArrowInvalid, OSError) as e:
            fix = "`plumbline warehouse check` names all damaged files"
            raise BadInput(str(path), "can't be read", fix) from e
        if schema.names != TABLES[name].arrow.names or _changes(name, schema, before):
            found.append(path)
    return found


def _changes(name: str, schema: pa.Schema, before: int) -> list[Change]:
    version = int((schema.metadata or {}).get(_VERSION, before))
    newer = formats.MIGRATIONS[version - 1 :]
    return [m.changes[name] for m in newer if name in m.changes]


def _rewrite(store: Store, name: str, path: Path, before: int) -> None:
    rows = pq.ParquetFile(path).read()
    metadata = dict(rows.schema.metadata or {})
    n_rows, changed = rows.num_rows, path.stat().st_mtime_ns
    for change in _changes(name, rows.schema, before):
        rows = change(rows)
    try:
        made = cast(TABLES[name], rows)
        destination = store.directory(name, store.partition_of(name, made)) / path.name
    except BadInput as e:
        fix = "no migration leads to the current format: move it away and write it again"
        raise BadInput(str(path), str(e), fix) from e
    metadata[_VERSION] = str(newest_version()).encode()
    write_file(destination, made.replace_schema_metadata(metadata))
    if pq.read_metadata(destination).num_rows != n_rows:
        raise BadInput(str(destination), f"does not hold the {n_rows} rows of {path}")
    # Compaction compares times to see which unfinished work has been published since.
    os.utime(destination, ns=(changed, changed))
    if destination != path:
        path.unlink()
        _remove_empty(path.parent, store.root / name)


def _remove_empty(directory: Path, above: Path) -> None:
    while directory != above and not any(directory.iterdir()):
        directory.rmdir()
        directory = directory.parent
