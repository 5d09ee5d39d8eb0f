"""Versions of the storage format, and the migrations that lead to them.

A new column that may be NULL, or a new table, needs no migration: older files are read with NULL
there. A removed table is listed in ``schema/renamed.py``. Any other change of a table (a new column
of its key or partitions, one that may not be NULL, another meaning of a value) needs a migration at
the end of ``MIGRATIONS``, which makes the version one higher; ``migration.py`` applies it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

#: The file that marks a directory as a warehouse.
MARKER = "plumbline.json"
#: Version in the marker of every warehouse with a commit log; the log has its real version.
LOGGED = 3
#: The oldest version that can be migrated; the first with pairs of any two groups.
OLDEST = 4
#: Brings the rows of one file from one version to the next.
Change: TypeAlias = "Callable[[pa.Table], pa.Table]"


@dataclass(frozen=True)
class Migration:
    """One step to the next version: its subject, and the change of each table's rows."""

    about: str
    changes: Mapping[str, Change]


def constant(column: str, value: object) -> Change:
    """Add a column with one value for all rows; it may be part of the key or of the partitions.

    >>> import pyarrow as pa
    >>> constant("form", "none")(pa.table({"a": [1, 2]})).to_pylist()
    [{'a': 1, 'form': 'none'}, {'a': 2, 'form': 'none'}]
    """
    return lambda rows: rows.append_column(column, [[value] * rows.num_rows])


#: The first leads from version ``OLDEST`` to the next. Add new ones at the end; never change one.
MIGRATIONS: tuple[Migration, ...] = (Migration("manifests hold what changed", {}),)


def newest_version() -> int:
    """Version of a warehouse that this Plumbline writes."""
    return OLDEST + len(MIGRATIONS)


def has_rows_of_now(version: int) -> bool:
    """True if rows of a version need no migration: since then only the log's format has changed.

    The next commit brings such a warehouse to the newest version.
    """
    return version >= OLDEST and not any(m.changes for m in MIGRATIONS[version - OLDEST :])


def changes_since(version: int, table: str) -> list[Change]:
    """Changes that bring rows of a table from a version to the newest, in order."""
    return [m.changes[table] for m in MIGRATIONS[version - OLDEST :] if table in m.changes]
