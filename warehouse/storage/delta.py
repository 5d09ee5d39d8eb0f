"""A Delta Lake log next to each table, for other readers: pandas, polars, Spark.

Its version k lists what the table's listing k adds and removes, and has a checkpoint: the list of
all files, at which readers begin. Plumbline reads the log only to check it. The protocol names a
writer feature that no other program has: others can read such a table (reader version 1), but
their writers refuse to change it.
"""

from __future__ import annotations

import hashlib
import io
import json
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.place import Place, staging

if TYPE_CHECKING:
    from plumbline.warehouse.storage.log import File, Listing

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


def follow(place: Place, table: str, before: Listing, after: Listing) -> None:
    """Write the version of a table's log that leads from one listing to the next."""
    checkpoint = _write_checkpoint(place, table, after)
    actions = [] if before.columns == after.columns else _description(table, after)
    old = {file.path: file for file in before.files}
    new = {file.path: file for file in after.files}
    for path in sorted(old.keys() - new.keys()):
        gone = {"path": quoted(table, path), "dataChange": True, "deletionTimestamp": 0}
        actions.append({"remove": gone})
    actions += [{"add": _add(table, file)} for path, file in new.items() if path not in old]
    lines = [json.dumps(action).encode() for action in actions]
    hashed = json.dumps({"commitInfo": {_HASH: _digest(checkpoint, lines)}}).encode()
    place.create(f"{_stem(table, after)}.json", b"\n".join([*lines, hashed]))


def renew(place: Place, table: str, newest: Listing) -> None:
    """Remove all versions of a table's log but the newest, which is written again if damaged."""
    stem = _stem(table, newest)
    if problem(place, table, newest):
        place.remove(f"{stem}.json")
        follow(place, table, type(newest)(), newest)
    for name in reversed(place.names(f"{table}/_delta_log")):
        if (path := f"{table}/_delta_log/{name}") < stem:
            place.remove(path)


def problem(place: Place, table: str, newest: Listing) -> str | None:
    """What is wrong with the newest version of a table's log; ``None`` if it is whole."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    stem = _stem(table, newest)
    try:
        checkpoint = place.read(f"{stem}.checkpoint.parquet")
        *lines, last = place.read(f"{stem}.json").split(b"\n")
        if json.loads(last)["commitInfo"][_HASH] != _digest(checkpoint, lines):
            return "is damaged: a hash does not match"
        adds = pq.read_table(io.BytesIO(checkpoint), columns=["add"])["add"].drop_null().to_pylist()
    except FileNotFoundError:
        names = place.names(f"{table}/_delta_log")  # another process may just have compacted
        is_later = bool(names) and names[-1] > f"{newest.version + 1:020}"
        return None if is_later else "lacks the newest state of the table"
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, RecursionError) as e:
        return f"is damaged: {str(e).splitlines()[0]}"
    expected = [_add(table, file) for file in newest.files]
    if [{**add, "partitionValues": {}} for add in adds] != expected:
        return "does not list the files of the table"
    return None


def _stem(table: str, listing: Listing) -> str:
    return f"{table}/_delta_log/{listing.version:020}"


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


def _write_checkpoint(place: Place, table: str, listing: Listing) -> bytes:
    """Write the list of all files at a version, a Parquet file; returns its content."""
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
    content, made = io.BytesIO(), staging(place) / f"{uuid.uuid4().hex}.parquet"
    pq.write_table(pa.Table.from_pylist(actions, schema), content, write_page_checksum=True)
    made.write_bytes(content.getvalue())
    place.put(made, f"{_stem(table, listing)}.checkpoint.parquet")
    return content.getvalue()
