"""Files that hold the rows of several published units, one after the other.

``plumbline warehouse compact`` makes them. Their metadata lists units, rows and runs in the rows'
order, so that a unit is still found, and still replaced, by its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

#: No published unit's file begins so: `+` is quoted in their names.
PREFIX = "+merged-"
_UNITS = b"plumbline.units"


@dataclass(frozen=True)
class Unit:
    """A published unit: its name as quoted, its rows in the merged file, the run that wrote it."""

    name: str
    n_rows: int
    run_id: str


def units_of(path: Path) -> tuple[Unit, ...]:
    """Units of a file in the order of their rows; one, the file itself, unless it is merged."""
    metadata = pq.read_metadata(path)
    found = metadata.metadata or {}
    if _UNITS in found:
        return tuple(Unit(*values) for values in json.loads(found[_UNITS]))
    run_id = found.get(b"plumbline.run_id", b"").decode()
    return (Unit(path.stem, metadata.num_rows, run_id),)


def units_metadata(units: Iterable[Unit]) -> dict[bytes, bytes]:
    """The metadata that lists these units."""
    return {_UNITS: json.dumps([astuple(unit) for unit in units]).encode()}


def merged_files(directory: Path) -> list[Path]:
    """The merged files right in a directory."""
    return sorted(directory.glob(f"{PREFIX}*.parquet"))


def holder(directory: Path, name: str) -> Path | None:
    """The merged file of a directory that holds a unit; ``None`` without one."""
    for path in merged_files(directory):
        if any(unit.name == name for unit in units_of(path)):
            return path
    return None


def replaced(path: Path, name: str, rows: pa.Table, run_id: str) -> pa.Table:
    """A merged file's content with other rows, and another run, for one of its units."""
    units, whole = units_of(path), pq.ParquetFile(path).read()
    parts, listed, start = [], [], 0
    for unit in units:
        if unit.name != name:
            parts.append(whole.slice(start, unit.n_rows).select(rows.column_names))
            listed.append(unit)
        start += unit.n_rows
    made = pa.concat_tables([*(part.cast(rows.schema) for part in parts), rows])
    return made.replace_schema_metadata(
        (whole.schema.metadata or {}) | units_metadata([*listed, Unit(name, rows.num_rows, run_id)])
    )


def names_in(files: Sequence[Path]) -> set[str]:
    """Names of the units that these files hold."""
    return {unit.name for path in files for unit in units_of(path)}
