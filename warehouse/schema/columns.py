"""Declare tables: their columns with types and units, their keys and their partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

#: Arrow, SQL and Delta Lake type of each kind of column.
_TYPES = {
    "text": ("string", "VARCHAR", "string"),
    "bool": ("bool", "BOOLEAN", "boolean"),
    "int": ("int64", "BIGINT", "long"),
    "int32": ("int32", "INTEGER", "integer"),
    "float": ("float64", "DOUBLE", "double"),
    "float32": ("float32", "FLOAT", "float"),
    "time": ("", "TIMESTAMPTZ", "timestamp"),
}


@dataclass(frozen=True)
class Column:
    """A column: its name, kind of data, unit (or empty), whether it may be NULL, and meaning."""

    name: str
    kind: str
    unit: str
    nullable: bool
    description: str

    @property
    def type(self) -> pa.DataType:
        import pyarrow as pa

        alias = _TYPES[self.kind][0]
        return pa.type_for_alias(alias) if alias else pa.timestamp("us", tz="UTC")

    @property
    def sql_type(self) -> str:
        return _TYPES[self.kind][1]

    @property
    def delta_type(self) -> str:
        return _TYPES[self.kind][2]


@dataclass(frozen=True)
class Origin:
    """What a row was made from: the rows of ``table`` that have the same values in ``by``.

    The row is out of date when those rows change in ``columns`` (if empty, in any column).
    """

    table: str
    by: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table: its columns, its key and its partition columns.

    The key is unique over all files. The values of the ``partitions`` columns name the directories
    above a file. They are also stored in the file, so that each file is self-contained.
    ``filled_by`` is the command, without ``plumbline``, that writes the first rows; after a comma,
    it says what the command needs. It may also be ``any command ...``. A row is deleted when the
    rows that it was made from (``made_from``) change.
    """

    name: str
    description: str
    filled_by: str
    made_from: tuple[Origin, ...]
    key: tuple[str, ...]
    partitions: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def how_filled(self) -> str:
        """``filled_by``, worded for use in a sentence, with the command in backquotes."""
        command, comma, need = self.filled_by.partition(",")
        return command if command.startswith("any ") else f"`plumbline {command}`{comma}{need}"

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def columns_id(self) -> str:
        """Hash of the column names and their order."""
        return sha256(" ".join(self.names).encode()).hexdigest()[:8]

    def partition_values(self, partition: Mapping[str, str]) -> tuple[str, ...]:
        """Return the values of the leading partition columns. Raise ``KeyError`` for others."""
        columns = self.partitions[: len(partition)]
        if len(columns) < len(partition):
            raise KeyError(f"{self.name} has no partitions by {', '.join(partition)}")
        return tuple(partition[name] for name in columns)

    @property
    def arrow(self) -> pa.Schema:
        """The table's Arrow schema: columns in the declared order, nullable as declared."""
        import pyarrow as pa

        return pa.schema([pa.field(c.name, c.type, c.nullable) for c in self.columns])


def tables(text: str) -> tuple[Table, ...]:
    """Read tables from a compact notation. An empty line separates two tables.

    A table begins with ``NAME: DESCRIPTION``. Next come ``by: COMMAND``, optionally ``from: TABLE
    by COLUMNS [of COLUMNS]; ...`` (see ``Origin``), and ``key: PARTITIONS / FURTHER COLUMNS``. Then
    each line declares a column: ``name: type[?] [unit] -- meaning``. ``?`` means that the column
    may be NULL. Several names, separated by commas, share the rest of the line. A line with only
    names declares columns from ``_SHARED``. Key columns that no line declares are also from
    ``_SHARED``, and come first.

    >>> text = "demo: One.\\nby: why\\nkey: corpus /\\n  pmi_nats: float? [nats] -- PMI"
    >>> (demo,) = tables(text)
    >>> [(c.name, c.unit, c.nullable) for c in demo.columns]
    [('corpus', '', False), ('pmi_nats', 'nats', True)]
    """
    return tuple(map(_table, text.strip().split("\n\n")))


def _table(text: str) -> Table:
    about, _, rest = text.partition("\nby: ")
    command, _, rest = rest.partition("\nkey: ")
    filled_by, _, origins = command.partition("\nfrom: ")
    name, _, description = " ".join(about.split()).partition(": ")
    key, *lines = rest.splitlines()
    partitions, further = map(str.split, key.split("/"))
    columns = [column for line in lines for column in _columns(line.strip())]
    made_from = tuple(_origin(text) for text in origins.split(";") if text)
    key_columns = (*partitions, *further)
    declared = [column.name for column in columns]
    first = _columns(" ".join(name for name in key_columns if name not in declared))
    return Table(
        name, description, filled_by, made_from, key_columns, tuple(partitions), (*first, *columns)
    )


def _origin(text: str) -> Origin:
    table, _, rest = text.partition(" by ")
    by, _, columns = rest.partition(" of ")
    return Origin(table.strip(), tuple(by.split()), tuple(columns.split()))


def _columns(line: str) -> list[Column]:
    head, is_declared, meaning = line.partition(" -- ")
    if not is_declared:
        return [_SHARED[name] for name in line.split()]
    names, _, rest = head.partition(": ")
    kind, _, unit = rest.partition(" ")
    same = kind.rstrip("?"), unit.strip("[]"), kind.endswith("?"), meaning
    return [Column(name, *same) for name in names.split(", ")]


#: Columns with one meaning in all tables; tables declare them by name alone.
_SHARED = {
    column.name: column
    for line in """
benchmark: text -- benchmark name
contrast: text -- contrast, see `word_delta`
corpus: text -- corpus name
groups: text -- groups of the pairs, such as `female/male`
model: text -- hub id, or the name of a local model
model_key: text -- scoring identity, see table `model`
n_folds: int -- folds that each group was divided into; 0: single samples
n_word: int [tokens] -- occurrences of the word
pair_id: text -- pair
perturber: text -- perturber, see `perturbed_continuation`
phi: text -- scoring function, such as `jaccard`
probe_set: text -- set of prompts
prompt_id: text -- prompt
run_id: text -- run that wrote the row
sampling_key: text -- decoding settings, see `sampling`
seconds: float [s] -- wall time
source_file: text -- file that the row came from
source_row: int -- row or position in that file, from 1
target: text -- target word
text_id: text -- hash of both sentences as the model got them
word: text -- kept token; in tables that `why` writes also a phrase
""".splitlines()
    for column in _columns(line)
}
