"""Declarations of tables: columns with types and units, key and partitions."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

_TYPES = {
    "text": pa.string(),
    "bool": pa.bool_(),
    "int": pa.int64(),
    "int32": pa.int32(),
    "float": pa.float64(),
    "float32": pa.float32(),
    "time": pa.timestamp("us", tz="UTC"),
}


@dataclass(frozen=True)
class Column:
    """One column: its name, Arrow type, unit (empty for none), whether NULL may occur, meaning."""

    name: str
    type: pa.DataType
    unit: str
    nullable: bool
    description: str


@dataclass(frozen=True)
class Table:
    """One table: columns, the key that is unique over all files, and the partition columns.

    ``partitions`` name the directories above a file; the columns are in the file as well, so that
    a single file explains itself.
    """

    name: str
    description: str
    key: tuple[str, ...]
    partitions: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema, fields in column order, nullability as declared."""
        return pa.schema([pa.field(c.name, c.type, c.nullable) for c in self.columns])


def _columns(spec: str) -> tuple[Column, ...]:
    """Parse the compact column notation ``name: type[?] [unit] -- meaning``, one per line.

    ``?`` marks a column that may be NULL.

    >>> [(c.name, c.unit, c.nullable) for c in _columns("pmi_nats: float? [nats] -- PMI")]
    [('pmi_nats', 'nats', True)]
    """
    columns = []
    for line in filter(None, map(str.strip, spec.splitlines())):
        head, _, meaning = line.partition(" -- ")
        name, _, rest = head.partition(":")
        kind, _, unit = rest.strip().partition(" ")
        nullable = kind.endswith("?")
        columns.append(
            Column(name, _TYPES[kind.rstrip("?")], unit.strip("[] "), nullable, meaning.strip())
        )
    return tuple(columns)


def table(name: str, description: str, key: str, partitions: str, spec: str) -> Table:
    """A table from its compact notation; names in ``key`` and ``partitions`` by spaces.

    >>> table("demo", "One.", "a", "", "a: int -- first").arrow.names
    ['a']
    """
    return Table(name, description, tuple(key.split()), tuple(partitions.split()), _columns(spec))
