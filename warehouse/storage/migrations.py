"""How the rows of an older warehouse become those of today's tables: small functions, in order.

A new column that may be NULL, or a new table, needs nothing here: older files are read with NULL
there. Whatever else changes in a table (a new column of its key or partitions, one that may not be
NULL, another meaning of a value) needs a migration at the end of ``MIGRATIONS``, which makes the
version one higher. ``warehouse/storage/migrate.py`` applies them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

#: Rows of one file as the version before had them -> as the next has them.
Change: TypeAlias = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True)
class Migration:
    """One step to the next version: what it is about, and by table how rows change."""

    about: str
    changes: Mapping[str, Change]


def constant(column: str, value: object) -> Change:
    """Rows get a new column, of a key or partition as well, with one value for all.

    >>> constant("form", "none")(pa.table({"a": [1, 2]})).to_pylist()
    [{'a': 1, 'form': 'none'}, {'a': 2, 'form': 'none'}]
    """

    def change(rows: pa.Table) -> pa.Table:
        return rows.append_column(column, pa.array([value] * rows.num_rows))

    return change


#: The first leads from version 1 to 2. Add at the end; never change one.
MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        "what models are told before a prompt",
        {"pronoun_probability": constant("instruction_key", "none")},
    ),
)


def newest_version() -> int:
    """Version of a warehouse that this Plumbline writes."""
    return 1 + len(MIGRATIONS)
