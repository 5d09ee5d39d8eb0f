"""Versions of the storage format, and the migrations between them.

A new table or a new column that may be NULL needs no migration: older files are read with NULL in
the column. A removed table is listed in ``schema/renamed.py``. Any other change (a new column of a
key or partition, a column that may not be NULL, a new meaning of values) needs a migration at the
end of ``MIGRATIONS``, which increases the version by one; ``migration.py`` applies it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

#: The file that marks a directory as a warehouse.
MARKER = "plumbline.json"
#: Version in the marker of every warehouse with a commit log; the log has the actual version.
LOGGED = 3
#: The oldest version that can be migrated: the first with pairs of any two groups.
OLDEST = 4
#: A function that brings the rows of one file from one version to the next.
Change: TypeAlias = "Callable[[pa.Table], pa.Table]"


@dataclass(frozen=True)
class Migration:
    """A step to the next version: its subject, and the change of the rows of each table."""

    about: str
    changes: Mapping[str, Change]


def constant(column: str, value: object) -> Change:
    """A change that adds a column with one value, even a column of the key or the partitions.

    >>> import pyarrow as pa
    >>> constant("form", "none")(pa.table({"a": [1, 2]})).to_pylist()
    [{'a': 1, 'form': 'none'}, {'a': 2, 'form': 'none'}]
    """
    return lambda rows: rows.append_column(column, [[value] * rows.num_rows])


#: All migrations, from version ``OLDEST`` on. Add new ones at the end; never change one.
MIGRATIONS: tuple[Migration, ...] = (Migration("manifests hold what changed", {}),)


def newest_version() -> int:
    """The version that this Plumbline writes."""
    return OLDEST + len(MIGRATIONS)


def has_current_rows(version: int) -> bool:
    """True if rows of a version need no migration, as only the log's format has changed since.

    The next commit brings such a warehouse to the newest version.
    """
    return version >= OLDEST and not any(m.changes for m in MIGRATIONS[version - OLDEST :])


def changes_since(version: int, table: str) -> list[Change]:
    """The changes that bring rows of a table from a version to the newest, in order."""
    return [m.changes[table] for m in MIGRATIONS[version - OLDEST :] if table in m.changes]
