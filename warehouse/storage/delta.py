"""A Delta Lake log beside each table, for other readers: pandas, polars, Spark.

It is derived from the table's manifests: version k of the log lists what manifest k adds and
removes. The same manifests give the same log, so it doesn't matter who writes it, nor how often;
what a killed writer left out, the next one adds. Plumbline itself never reads it.

Format: the Delta transaction log protocol, reader version 1, writer version 2.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from plumbline.warehouse.schema.catalog import TABLES

if TYPE_CHECKING:
    from plumbline.warehouse.storage.log import Manifest
    from plumbline.warehouse.storage.place import Place

_TYPES = {
    "text": "string",
    "bool": "boolean",
    "int": "long",
    "int32": "integer",
    "float": "double",
    "float32": "float",
    "time": "timestamp",
}


def tell(place: Place, manifest: Manifest, load: Callable[[Place, str, str], Manifest]) -> None:
    """Write the log of a table up to a manifest; ``load`` reads earlier ones."""
    missing = [manifest]
    known = set(place.names(f"{manifest.table}/_delta_log"))
    while missing[-1].previous and _name(missing[-1].version - 1) not in known:
        missing.append(load(place, manifest.table, missing[-1].previous))
    for step in reversed(missing):
        name = f"{step.table}/_delta_log/{_name(step.version)}"
        before = load(place, step.table, step.previous) if step.previous else None
        place.create(name, "\n".join(map(json.dumps, _actions(step, before))).encode())


def _name(version: int) -> str:
    return f"{version:020}.json"


def _actions(manifest: Manifest, before: Manifest | None) -> list[dict[str, Any]]:
    new = {file.path: file for file in manifest.files}
    old = {file.path for file in before.files} if before else set()
    is_new = before is None or before.columns != manifest.columns
    actions: list[dict[str, Any]] = _description(manifest) if is_new else []
    for path in sorted(old - new.keys()):
        gone = {"path": _path(manifest, path), "dataChange": True, "deletionTimestamp": 0}
        actions.append({"remove": gone})
    for path in sorted(new.keys() - old):
        file = new[path]
        added = {"path": _path(manifest, path), "partitionValues": {}, "size": file.n_bytes}
        stats = json.dumps({"numRecords": file.n_rows})
        actions.append(
            {
                "add": {
                    **added,
                    "modificationTime": file.written_ms,
                    "dataChange": True,
                    "stats": stats,
                }
            }
        )
    return actions


def _path(manifest: Manifest, path: str) -> str:
    """A file's path below its table's directory, quoted as an address."""
    return quote(path.removeprefix(f"{manifest.table}/"), safe="/=")


def _description(manifest: Manifest) -> list[dict[str, Any]]:
    table = TABLES[manifest.table]
    fields = [
        {"name": c.name, "type": _TYPES[c.kind], "nullable": True, "metadata": {}}
        for c in table.columns
        if c.name in manifest.columns
    ]
    metadata = {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"plumbline:{table.name}")),
        "name": table.name,
        "description": table.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 0,
    }
    return [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]
