"""All tables; each is declared once, in the module of its subject."""

from __future__ import annotations

from plumbline.warehouse.schema import (
    choice_tables,
    corpus_tables,
    disclosure_tables,
    evidence_tables,
    fairpair_tables,
    intervention_tables,
    pair_tables,
    rating_tables,
    sampling_tables,
    score_tables,
)
from plumbline.warehouse.schema.columns import Table

_SUBJECTS = (
    *(corpus_tables, evidence_tables, pair_tables, rating_tables, score_tables, choice_tables),
    *(intervention_tables, sampling_tables, fairpair_tables, disclosure_tables),
)

#: Name -> table, in the order data flows.
TABLES: dict[str, Table] = {table.name: table for subject in _SUBJECTS for table in subject.TABLES}


def units_of_columns() -> dict[str, str]:
    """Units by the names of columns that have one, the same in every table that has them.

    >>> units_of_columns()["delta_nats"]
    'nats'
    """
    units: dict[str, set[str]] = {}
    for table in TABLES.values():
        for column in table.columns:
            units.setdefault(column.name, set()).add(column.unit)
    return {name: next(iter(of)) for name, of in units.items() if len(of) == 1 and of != {""}}
