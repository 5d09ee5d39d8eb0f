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
    """A column of a table. ``kind`` is a key of ``_TYPES``, and ``unit`` may be empty."""

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
    """The rows of another table that a row was made from.

    A row is made from all rows of ``table`` that have its values in the columns ``by``. The row is
    out of date if one of ``columns`` changes in those rows. If ``columns`` is empty, every column
    counts, except those that say where a row came from, such as ``run_id``.
    """

    table: str
    by: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """The schema of a table.

    Attributes:
        filled_by: the command that writes the first rows, without the word ``plumbline``. A comma
            ends the command, and a comment follows. ``any command ...`` means several commands.
        made_from: the rows of other tables that a row is made from. If those rows change, the row
            is deleted.
        key: columns that together identify a row of the table.
        partitions: columns whose values name a file's directories. The file has these columns too.
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
        """The command that fills the table, in backquotes, or ``any command ...`` without them."""
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
        """Return a partition's values in column order. The last columns may be left out."""
        columns = self.partitions[: len(partition)]
        if len(columns) < len(partition):
            raise KeyError(f"{self.name} has no partitions by {', '.join(partition)}")
        return tuple(partition[name] for name in columns)

    @property
    def arrow(self) -> pa.Schema:
        """The table's Arrow schema, with the columns in the order of declaration."""
        import pyarrow as pa

        return pa.schema([pa.field(c.name, c.type, c.nullable) for c in self.columns])


def tables(text: str) -> tuple[Table, ...]:
    """Parse tables that are declared in a compact notation. Empty lines separate the tables.

    A table begins with the line ``NAME: DESCRIPTION``. The next lines are ``by: COMMAND`` (see
    ``Table.filled_by``), ``from: TABLE by COLUMNS [of COLUMNS]; ...`` (optional, see ``Origin``),
    and ``key: PARTITIONS / FURTHER COLUMNS``.

    Each later line declares columns. ``a, b: type? [unit] -- meaning`` declares two columns. The
    ``?`` means that both may be NULL. The line ``a b`` adds two columns that ``_SHARED`` describes.
    Key columns without a line of their own come first. ``_SHARED`` describes them too.

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


#: Columns that have the same meaning in all tables. Tables declare them only by name.
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
