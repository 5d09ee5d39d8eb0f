"""Write a Delta Lake log for each table, so that pandas, polars and Spark can read it.

Each version in a table's log says which files a commit adds to the table and removes from it. At
least every tenth version has a checkpoint, which lists all files. Readers begin at the newest
checkpoint. Plumbline reads the log only to check it. Other programs can read the table, but refuse
to change it, because the log requires a writer feature that they don't have.
"""

from __future__ import annotations

import hashlib
import io
import json
import uuid
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.place import File, Listing, Place, staging

#: Number of versions from one checkpoint to the next.
_EVERY = 10
_CHECKPOINT = "checkpoint.parquet"
_HASH = "plumblineSha256"
_PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["plumbline"]}


def follow(place: Place, table: str, before: Listing, after: Listing) -> None:
    """Add a version to a table's log: the change from the files ``before`` to those ``after``.

    Every tenth version gets a checkpoint. A version also gets one if the previous version is
    missing because a writer was killed. If the log already has a version with the new number, that
    version is from a removed commit. The new version then replaces it and gets a checkpoint.
    """
    log, names = _directory(table), place.names(_directory(table))
    name, checkpoint = _file(after.version, "json"), b""
    is_next = _file(before.version, "json") in names and name not in names
    if after.version % _EVERY == 0 or not is_next:
        checkpoint = _checkpoint(table, after)
        made = staging(place) / f"{uuid.uuid4().hex}.parquet"
        made.write_bytes(checkpoint)
        place.put(made, f"{log}/{_file(after.version, _CHECKPOINT)}")
    if name in names:
        place.remove(f"{log}/{name}")
    actions = [] if before.columns == after.columns else _description(table, after)
    old = {file.path: file for file in before.files}
    new = {file.path: file for file in after.files}
    for path in sorted(old.keys() - new.keys()):
        gone = {"path": quoted(table, path), "dataChange": True, "deletionTimestamp": 0}
        actions.append({"remove": gone})
    actions += [{"add": _add(table, file)} for path, file in new.items() if path not in old]
    lines = [json.dumps(action).encode() for action in actions]
    hashed = json.dumps({"commitInfo": {_HASH: _digest(checkpoint, lines)}}).encode()
    place.create(f"{log}/{name}", b"\n".join([*lines, hashed]))


def renew(place: Place, table: str, newest: Listing) -> None:
    """Keep only the newest version of a table's log, and make sure it has a valid checkpoint."""
    log, first = _directory(table), _file(newest.version, _CHECKPOINT)
    if first not in place.names(log) or problem(place, table, newest):
        follow(place, table, Listing(), newest)
    for name in reversed(place.names(log)):
        if name < first:
            place.remove(f"{log}/{name}")


def problem(place: Place, table: str, newest: Listing) -> str | None:
    """Check a table's log, from its last checkpoint on. Return what is wrong, or ``None``."""
    import pyarrow as pa

    names, after = place.names(_directory(table)), _file(newest.version + 1, "")
    try:
        files = _replayed(place, table, [name for name in names if name < after], newest.version)
    except FileNotFoundError:
        is_busy = names[-1:] > [after] or names != place.names(_directory(table))
        return None if is_busy else "lacks the newest state of the table"
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, RecursionError) as e:
        return f"is damaged: {str(e).splitlines()[0]}"
    if files != {add["path"]: add for add in (_add(table, file) for file in newest.files)}:
        return "does not list the files of the table"
    return None


def _replayed(place: Place, table: str, names: list[str], newest: int) -> dict[str, Any]:
    """Return the files that version ``newest`` of a log lists, by path. Check the log's hashes."""
    import pyarrow.parquet as pq

    starts = [name for name in names if name.endswith(_CHECKPOINT)]
    if not starts:
        raise FileNotFoundError
    first, checkpoint = int(starts[-1][:20]), place.read(f"{_directory(table)}/{starts[-1]}")
    files: dict[str, Any] = {}
    for version in range(first, newest + 1):
        *lines, last = place.read(f"{_directory(table)}/{_file(version, 'json')}").split(b"\n")
        digest = _digest(checkpoint if version == first else b"", lines)
        if json.loads(last)["commitInfo"][_HASH] != digest:
            raise ValueError("a hash does not match")
        actions = list(map(json.loads, lines))
        if version == first:
            adds = pq.read_table(io.BytesIO(checkpoint), columns=["add"])["add"].drop_null()
            actions = [{"add": {**add, "partitionValues": {}}} for add in adds.to_pylist()]
        for action in actions:
            files.pop(action.get("remove", {}).get("path"), None)
            if "add" in action:
                files[action["add"]["path"]] = action["add"]
    return files


def _directory(table: str) -> str:
    return f"{table}/_delta_log"


def _file(version: int, suffix: str) -> str:
    return f"{version:020}.{suffix}"


def _digest(checkpoint: bytes, lines: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\n".join([checkpoint, *lines])).hexdigest()


def _add(table: str, file: File) -> dict[str, Any]:
    return {
        "path": quoted(table, file.path),
        "partitionValues": {},
        "size": file.n_bytes,
        "modificationTime": file.written_ms,
        "dataChange": True,
        "stats": json.dumps({"numRecords": file.n_rows}),
    }


def quoted(table: str, path: str) -> str:
    """Return a file's percent-encoded path, relative to the table's directory."""
    return quote(path.removeprefix(f"{table}/"), safe="/=")


def _description(name: str, listing: Listing) -> list[dict[str, Any]]:
    table = TABLES[name]
    fields = [
        {"name": column.name, "type": column.delta_type, "nullable": True, "metadata": {}}
        for column in table.columns
        if column.name in listing.columns
    ]
    metadata = {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"plumbline:{name}")),
        "name": name,
        "description": table.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 0,
    }
    return [{"protocol": _PROTOCOL}, {"metaData": metadata}]


def _checkpoint(table: str, listing: Listing) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, options = pa.string(), pa.map_(pa.string(), pa.string())
    numbers = dict.fromkeys(("minReaderVersion", "minWriterVersion"), pa.int32())
    kinds = {
        "protocol": {**numbers, "writerFeatures": pa.list_(text)},
        "metaData": {
            **dict.fromkeys(("id", "name", "description", "schemaString"), text),
            "format": pa.struct({"provider": text, "options": options}),
            "partitionColumns": pa.list_(text),
            "configuration": options,
            "createdTime": pa.int64(),
        },
        "add": {
            **{"path": text, "partitionValues": options, "stats": text, "dataChange": pa.bool_()},
            **dict.fromkeys(("size", "modificationTime"), pa.int64()),
        },
    }
    schema = pa.schema({name: pa.struct(fields) for name, fields in kinds.items()})
    actions = [*_description(table, listing), *({"add": _add(table, f)} for f in listing.files)]
    content = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(actions, schema), content, write_page_checksum=True)
    return content.getvalue()
