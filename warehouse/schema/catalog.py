"""All tables: those that Plumbline's modules declare, and those that other packages add."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator
from typing import Protocol

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.schema import continuation_tables, corpus_tables, pair_tables
from plumbline.warehouse.schema.columns import Table


class TableModule(Protocol):
    TABLES: tuple[Table, ...]


_OURS = {
    table.name: table
    for subject in (corpus_tables, pair_tables, continuation_tables)
    for table in subject.TABLES
}


class Catalog(UserDict[str, Table]):
    """All tables by name: first Plumbline's own (``data``), then those of other packages.

    A table of Plumbline comes after the tables that it is made from. Another package's module is
    imported when one of its tables is looked up, not when names are listed. A lookup raises the
    errors of ``Registry.load``, and ``KeyError`` for an undeclared name.
    """

    parts = Registry("table", group="plumbline.tables", contract=TableModule, made=tuple(_OURS))

    def __getitem__(self, name: str) -> Table:
        if name not in self.parts.added:
            return self.data[name]
        declared: dict[str, Table] = {t.name: t for t in self.parts.load(name).TABLES}
        if name not in declared:
            what = f"table {name!r} of {self.parts.source(name)}"
            raise BadInput(what, f"its module declares {', '.join(declared)}", "rename one")
        return declared[name]

    def __contains__(self, name: object) -> bool:
        return name in self.data or name in self.parts.added

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self.data, *self.parts.added)))

    def __len__(self) -> int:
        return len(list(iter(self)))


TABLES = Catalog(_OURS)


def units_of_columns() -> dict[str, str]:
    """Return the unit of each column name. Leave out names that have more than one unit."""
    columns = [column for table in TABLES.values() for column in table.columns]
    units = {column.name: column.unit for column in columns}
    differing = {column.name for column in columns if column.unit != units[column.name]}
    return {name: unit for name, unit in units.items() if unit and name not in differing}
