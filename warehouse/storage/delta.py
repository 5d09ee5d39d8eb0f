"""A Delta Lake log beside each table, for other readers: pandas, polars, Spark.

Version k lists what manifest k adds and removes: any process may write it, even repeatedly.
Plumbline reads it only to check and extend it. Protocol: reader version 1, writer version 2.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from plumbline.warehouse.schema.catalog import TABLES

_HASH = "plumblineSha256"
_TYPES = {
    "text": "string",
    "bool": "boolean",
    "int": "long",
    "int32": "integer",
    "float": "double",
    "float32": "float",
    "time": "timestamp",
}


def log_name(table: str, version: int) -> str:
    """The file name of a version of a table's log.

    >>> log_name("run", 3)
    'run/_delta_log/00000000000000000003.json'
    """
    return f"{table}/_delta_log/{version:020}.json"


def entry(
    table: str,
    columns: Sequence[str] | None,
    removed: Iterable[str],
    added: Iterable[tuple[str, int, int, int]],
) -> bytes:
    """The content of a version of a table's log, one action per line.

    Args:
        columns: names of the table's columns if they changed, else ``None``.
        removed: paths of data files that the table no longer has.
        added: path, size (bytes), time of writing (Unix ms) and number of rows of each new file.
    """
    actions = [] if columns is None else _description(table, columns)
    for path in removed:
        gone = {"path": quoted(table, path), "dataChange": True, "deletionTimestamp": 0}
        actions.append({"remove": gone})
    for path, n_bytes, written_ms, n_rows in added:
        file = {"path": quoted(table, path), "partitionValues": {}, "size": n_bytes}
        file |= {"modificationTime": written_ms, "dataChange": True}
        actions.append({"add": {**file, "stats": json.dumps({"numRecords": n_rows})}})
    lines = list(map(json.dumps, actions))
    lines.append(json.dumps({"commitInfo": {_HASH: _digest(lines)}}))
    return "\n".join(lines).encode()


def replay(content: bytes, files: Mapping[str, int]) -> dict[str, int]:
    """The files that a log lists after the entry ``content``, given the ``files`` before it.

    Both map ``quoted`` paths to sizes in bytes. Raises ``ValueError`` if ``content`` isn't an entry
    or doesn't match its hash.

    >>> replay(entry("run", None, [], [("run/a.parquet", 7, 0, 1)]), {})
    {'a.parquet': 7}
    """
    try:
        lines = content.decode().split("\n")
        actions = list(map(json.loads, lines))
        hashes = [action["commitInfo"][_HASH] for action in actions if "commitInfo" in action]
        if hashes != [_digest(lines[:-1])]:
            raise ValueError("its hash does not match its content")
        listed = dict(files)
        for action in actions:
            if "remove" in action:
                del listed[action["remove"]["path"]]
            elif "add" in action:
                listed[action["add"]["path"]] = action["add"]["size"]
            elif not {"commitInfo", "protocol", "metaData"} & action.keys():
                raise ValueError("it holds an unknown action")
    except (KeyError, TypeError, AttributeError, RecursionError) as e:
        raise ValueError("it is not an entry of such a log") from e
    return listed


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def quoted(table: str, path: str) -> str:
    """A file's path below the directory of its table, percent-encoded."""
    return quote(path.removeprefix(f"{table}/"), safe="/=")


def _description(name: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    table = TABLES[name]
    kinds = {c.name: _TYPES[c.kind] for c in table.columns}
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in kinds.items()
        if name in columns
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
    return [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]
