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
#: Columns of text, never NULL, that mean the same wherever they are declared by name alone.
_SHARED = {
    "benchmark": "benchmark name",
    "contrast": "contrast of `word_delta`",
    "corpus": "corpus name",
    "model": "hub id, or the name of a local model",
    "model_key": "scoring identity, see `model`",
    "pair_id": "pair",
    "probe_set": "set of prompts",
    "prompt_id": "prompt",
    "run_id": "run that wrote the row",
    "sampling_key": "how it was sampled, see `sampling`",
    "word": "kept token",
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

    ``partitions`` name the directories above a file. Their columns are also in the file, so that a
    single file is self-contained.
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


def tables(text: str) -> tuple[Table, ...]:
    """Tables from their compact notation, an empty line between two of them.

    Each is ``NAME: DESCRIPTION``, then ``key: PARTITIONS / FURTHER COLUMNS``, then its columns, one
    per line: ``name: type[?] [unit] -- meaning``, where ``?`` marks a column that may be NULL;
    several names, separated by commas, share the rest. Bare names are columns of ``_SHARED``.

    >>> (demo,) = tables("demo: One.\\nkey: corpus /\\n  corpus\\n  pmi_nats: float? [nats] -- PMI")
    >>> [(c.name, c.unit, c.nullable) for c in demo.columns]
    [('corpus', '', False), ('pmi_nats', 'nats', True)]
    """
    return tuple(map(_table, text.strip().split("\n\n")))


def _table(text: str) -> Table:
    about, _, rest = text.partition("\nkey: ")
    name, _, description = " ".join(about.split()).partition(": ")
    key, *lines = rest.splitlines()
    partitions, further = map(str.split, key.split("/"))
    columns = tuple(column for line in lines for column in _columns(line.strip()))
    return Table(name, description, (*partitions, *further), tuple(partitions), columns)


def _columns(line: str) -> list[Column]:
    head, is_declared, meaning = line.partition(" -- ")
    if not is_declared:
        return [Column(name, pa.string(), "", False, _SHARED[name]) for name in line.split()]
    names, _, rest = head.partition(": ")
    kind, _, unit = rest.partition(" ")
    same = _TYPES[kind.rstrip("?")], unit.strip("[]"), kind.endswith("?"), meaning
    return [Column(name, *same) for name in names.split(", ")]
