"""A Delta Lake log next to each table, for other readers: pandas, polars, Spark.

Its version k lists what the table's listing k adds and removes. Plumbline reads it only to check
it. The protocol names a writer feature that no other program has: others can read such a table
(reader version 1), but their writers refuse to change it.
"""

from __future__ import annotations

import hashlib
import io
import json
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.place import Place, staging

if TYPE_CHECKING:
    from plumbline.warehouse.storage.listing import File, Listing

_HASH = "plumblineSha256"
_PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["plumbline"]}
_TYPES = {
    "text": "string",
    "bool": "boolean",
    "int": "long",
    "int32": "integer",
    "float": "double",
    "float32": "float",
    "time": "timestamp",
}
#: How the name of a checkpoint ends.
_CHECKPOINT = ".checkpoint.parquet"
#: What a log says of each file: path, and size, time and statistics.
_Files: TypeAlias = dict[str, tuple[object, ...]]


def follow(place: Place, table: str, before: Listing, after: Listing) -> None:
    """Write the version of a table's log that leads from one listing to the next.

    If a killed writer left out the version before, a checkpoint takes its place: a list of all
    files, at which readers begin.
    """
    version, names = after.version, place.names(_directory(table))
    if version and f"{version - 1:020}.json" not in names:
        _write_checkpoint(place, table, after)
    actions = [] if before.columns == after.columns else _description(table, after)
    old = {file.path: file for file in before.files}
    new = {file.path: file for file in after.files}
    for path in sorted(old.keys() - new.keys()):
        gone = {"path": quoted(table, path), "dataChange": True, "deletionTimestamp": 0}
        actions.append({"remove": gone})
    actions += [{"add": _add(table, file)} for path, file in new.items() if path not in old]
    if not place.create(_entry_name(table, version), _content(actions)):
        _write_checkpoint(place, table, after)  # the name was taken by a commit that was lost


def renew(place: Place, table: str, listing: Listing) -> None:
    """Write a table's log again: a checkpoint of its newest version, without those before."""
    directory, version = _directory(table), f"{listing.version:020}"
    names = place.names(directory)
    earlier = [name for name in names if name < version or name.startswith("_")]
    if not earlier and f"{version}.json" in names:
        return
    _write_checkpoint(place, table, listing)
    actions = [*_description(table, listing), *({"add": _add(table, f)} for f in listing.files)]
    place.create(_entry_name(table, listing.version), _content(actions))
    for name in reversed(earlier):
        place.remove(f"{directory}/{name}")


def problem(place: Place, table: str, listing: Listing) -> tuple[str, str] | None:
    """The damaged file or directory of a table's log, and what is wrong; ``None`` if whole."""
    directory, listed, version = _directory(table), _Files(), 0
    names = [name for name in place.names(directory) if name < f"{listing.version + 1:020}"]
    begin = max((name for name in names if name.endswith(_CHECKPOINT)), default="")
    for name in (name for name in names if name >= begin):
        try:
            content, n = place.read(f"{directory}/{name}"), int(name[:20])
            if name == begin:
                listed, version = _of_checkpoint(content), n + 1
                continue
            changed = _changed(content, listed)
        except FileNotFoundError:  # another process has just compacted
            return None
        except ValueError as e:
            return f"{directory}/{name}", f"is damaged: {e}"
        if n > version:
            return directory, "lacks versions"
        if n == version:  # an entry of an earlier one is part of the checkpoint
            listed, version = changed, n + 1
    if version <= listing.version:
        return directory, "ends before the newest state of the table"
    if listed != {add["path"]: _kept(add) for add in (_add(table, f) for f in listing.files)}:
        return directory, "does not list the files of the table"
    return None


def _directory(table: str) -> str:
    return f"{table}/_delta_log"


def _entry_name(table: str, version: int) -> str:
    return f"{_directory(table)}/{version:020}.json"


def _content(actions: Iterable[dict[str, Any]]) -> bytes:
    """A version of a log: one action per line, and the hash of these lines."""
    lines = list(map(json.dumps, actions))
    lines.append(json.dumps({"commitInfo": {_HASH: _digest(lines)}}))
    return "\n".join(lines).encode()


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _changed(content: bytes, files: _Files) -> _Files:
    """Files after the actions of ``_content``; ``ValueError`` for any other content."""
    try:
        *lines, last = content.decode().split("\n")
        if json.loads(last)["commitInfo"][_HASH] != _digest(lines):
            raise ValueError("its hash does not match its content")
        changed = dict(files)
        for action in map(json.loads, lines):
            if "remove" in action:
                changed.pop(action["remove"]["path"], None)
            elif "add" in action:
                changed[action["add"]["path"]] = _kept(action["add"])
        return changed
    except (KeyError, TypeError, RecursionError) as e:
        raise ValueError("it is not an entry of such a log") from e


def _kept(add: Mapping[str, Any]) -> tuple[object, ...]:
    return add["size"], add["modificationTime"], add["stats"]


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
    """A file's path below the directory of its table, percent-encoded."""
    return quote(path.removeprefix(f"{table}/"), safe="/=")


def _description(name: str, listing: Listing) -> list[dict[str, Any]]:
    table = TABLES[name]
    fields = [
        {"name": column.name, "type": _TYPES[column.kind], "nullable": True, "metadata": {}}
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


def _write_checkpoint(place: Place, table: str, listing: Listing) -> None:
    """Write the list of all files at a version, a Parquet file with one action per row."""
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
    made = staging(place) / f"{uuid.uuid4().hex}.parquet"
    pq.write_table(pa.Table.from_pylist(actions, schema), made, write_page_checksum=True)
    place.put(made, f"{_directory(table)}/{listing.version:020}{_CHECKPOINT}")


def _of_checkpoint(content: bytes) -> _Files:
    """The files in a checkpoint; ``ValueError`` for anything else."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(io.BytesIO(content), page_checksum_verification=True)
        adds = file.read(["add"])["add"].to_pylist()
        return {add["path"]: _kept(add) for add in adds if add}
    except (pa.ArrowException, OSError, KeyError, TypeError) as e:
        raise ValueError("it is not a checkpoint of such a log") from e
