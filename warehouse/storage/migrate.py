"""Bring every file of an older warehouse to today's form."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.warehouse.errors import BadInput, disk_problems
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage import migrations
from plumbline.warehouse.storage.form import form_today, read_form, refuse_newer, write_form
from plumbline.warehouse.storage.store import Store, cast, write_file

_VERSION = b"plumbline.warehouse_version"


@dataclass(frozen=True)
class Migrated:
    """From which version to which, and the files that had to be written anew."""

    before: int
    after: int
    files: tuple[Path, ...]


def migrate(root: Path, *, dry_run: bool = False) -> Migrated:
    """Apply to each file the migrations that are newer than it, and fill in added columns.

    A file of the new form is whole, and its rows counted, before the old one goes. Stopped, the
    same call goes on; until it is done, other commands refuse the warehouse. With ``dry_run``
    nothing is written. Raises ``BadInput`` for a newer warehouse, and for a file that can't be
    read or does not fit, named; nothing is lost then.
    """
    form = read_form(root)
    refuse_newer(root, form)
    before = form.get("migrating_from", form["warehouse_version"])
    store, after = Store(root), migrations.newest_version()
    files = [(name, path) for name in TABLES for path in _outdated(root, name, before)]
    if dry_run:
        return Migrated(before, after, tuple(path for _, path in files))
    with disk_problems(root):
        if files:
            write_form(root, {**form, "warehouse_version": after, "migrating_from": before})
        for name, path in files:
            _rewrite(store, name, path, before)
        write_form(root, form_today())
    return Migrated(before, after, tuple(path for _, path in files))


def _outdated(root: Path, name: str, before: int) -> list[Path]:
    """Files with columns missing, or older than a migration of their table."""
    found = []
    for path in sorted((root / name).glob("**/*.parquet")):
        schema = _schema(path)
        if schema.names != TABLES[name].arrow.names or _changes(name, _version(schema, before)):
            found.append(path)
    return found


def _schema(path: Path) -> pa.Schema:
    try:
        return pq.read_schema(path)
    except (pa.ArrowInvalid, OSError) as e:
        fix = "`plumbline warehouse check` names all that is damaged"
        raise BadInput(str(path), "can't be read", fix) from e


def _version(schema: pa.Schema, before: int) -> int:
    return int((schema.metadata or {}).get(_VERSION, before))


def _changes(name: str, version: int) -> list[migrations.Change]:
    newer = migrations.MIGRATIONS[version - 1 :]
    return [m.changes[name] for m in newer if name in m.changes]


def _rewrite(store: Store, name: str, path: Path, before: int) -> None:
    rows = pq.ParquetFile(path).read()
    metadata = dict(rows.schema.metadata or {})
    n_rows, changed = rows.num_rows, path.stat().st_mtime_ns
    for change in _changes(name, _version(rows.schema, before)):
        rows = change(rows)
    try:
        made = cast(TABLES[name], rows)
        destination = store.directory(name, store.partition_of(name, made)) / path.name
    except BadInput as e:
        fix = "no migration brings it to today's form: move it away and write it again"
        raise BadInput(str(path), str(e), fix) from e
    metadata[_VERSION] = str(migrations.newest_version()).encode()
    write_file(destination, made.replace_schema_metadata(metadata))
    if pq.read_metadata(destination).num_rows != n_rows:
        raise BadInput(str(destination), f"does not hold the {n_rows} rows of {path}")
    os.utime(destination, ns=(changed, changed))  # work is told by its time to be published or not
    if destination != path:
        path.unlink()
        _remove_empty(path.parent, store.root / name)


def _remove_empty(directory: Path, above: Path) -> None:
    while directory != above and not any(directory.iterdir()):
        directory.rmdir()
        directory = directory.parent
