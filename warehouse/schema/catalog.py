"""All tables; each is declared once, in the module of its subject."""

from __future__ import annotations

from plumbline.warehouse.schema import (
    corpus_tables,
    disclosure_tables,
    evidence_tables,
    fairpair_tables,
    pair_tables,
    sampling_tables,
    score_tables,
)
from plumbline.warehouse.schema.columns import Table

_SUBJECTS = (
    *(corpus_tables, evidence_tables, pair_tables, score_tables),
    *(sampling_tables, fairpair_tables, disclosure_tables),
)

#: Name -> table, in the order data flows.
TABLES: dict[str, Table] = {table.name: table for subject in _SUBJECTS for table in subject.TABLES}


def units_of_columns() -> dict[str, str]:
    """Unit by column name, for names that have the same unit in all tables.

    >>> units_of_columns()["delta_nats"]
    'nats'
    """
    units_of: dict[str, set[str]] = {}
    for table in TABLES.values():
        for column in table.columns:
            units_of.setdefault(column.name, set()).add(column.unit)
    return {
        name: next(iter(units))
        for name, units in units_of.items()
        if len(units) == 1 and units != {""}
    }
