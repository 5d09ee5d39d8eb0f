"""Published units, and the merged files that hold several of them, one after the other.

``plumbline warehouse compact`` merges files. The metadata of a merged file lists its units, their
rows and runs in the order of the rows, so that a unit is still found and replaced by its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

#: Start of merged files' names; no unit's name starts so, since `+` is quoted in them.
PREFIX = "+merged-"
_UNITS = b"plumbline.units"


@dataclass(frozen=True)
class Unit:
    """A published unit: its name as quoted, its number of rows, the run that wrote it."""

    name: str
    n_rows: int
    run_id: str


def units_of(path: Path) -> tuple[Unit, ...]:
    """Units of a file in the order of their rows; a file that was not merged is one unit."""
    metadata = pq.read_metadata(path)
    found = metadata.metadata or {}
    if _UNITS in found:
        return tuple(Unit(*values) for values in json.loads(found[_UNITS]))
    run_id = found.get(b"plumbline.run_id", b"").decode()
    return (Unit(path.stem, metadata.num_rows, run_id),)


def units_metadata(units: Iterable[Unit]) -> dict[bytes, bytes]:
    """The metadata that lists these units."""
    return {_UNITS: json.dumps([astuple(unit) for unit in units]).encode()}


def merged_with(directory: Path, name: str) -> Path | None:
    """The merged file of a directory that holds a unit; ``None`` if it isn't there."""
    files = sorted(directory.glob(f"{PREFIX}*.parquet"))
    return next((f for f in files if any(unit.name == name for unit in units_of(f))), None)


def replaced(path: Path, name: str, rows: pa.Table, run_id: str) -> pa.Table:
    """A merged file's content with one of its units replaced by other rows, of another run."""
    whole = pq.ParquetFile(path).read()
    parts, listed, start = [], [], 0
    for unit in units_of(path):
        if unit.name != name:
            part = whole.slice(start, unit.n_rows).select(rows.column_names)
            parts.append(part.cast(rows.schema))
            listed.append(unit)
        start += unit.n_rows
    return pa.concat_tables([*parts, rows]).replace_schema_metadata(
        (whole.schema.metadata or {}) | units_metadata([*listed, Unit(name, rows.num_rows, run_id)])
    )
