"""The storage format: its version and columns, kept in ``plumbline.json``, and its migrations.

The version is one more than the number of ``MIGRATIONS``. The columns record what was added without
a migration: a reader looks for missing columns only in tables that may lack some, and an older
Plumbline refuses a warehouse with columns that it doesn't know instead of dropping them.

A new column that may be NULL, or a new table, needs no migration: older files are read with NULL
there. Any other change of a table (a new column of its key or partitions, one that may not be NULL,
another meaning of a value) needs one at the end of ``MIGRATIONS``, which makes the version one
higher; ``migration.py`` applies them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.paths import replacing

if TYPE_CHECKING:
    import pyarrow as pa

_GLOB_CHARACTERS = frozenset("*?[]{}")
MARKER = "plumbline.json"
#: Brings the rows of one file from one version to the next.
Change: TypeAlias = "Callable[[pa.Table], pa.Table]"


@dataclass(frozen=True)
class Migration:
    """One step to the next version: what it is about, and how the rows of each table change."""

    about: str
    changes: Mapping[str, Change]


def constant(column: str, value: object) -> Change:
    """Add a column with one value for all rows; it may be part of the key or of the partitions.

    >>> import pyarrow as pa
    >>> constant("form", "none")(pa.table({"a": [1, 2]})).to_pylist()
    [{'a': 1, 'form': 'none'}, {'a': 2, 'form': 'none'}]
    """
    return lambda rows: rows.append_column(column, [[value] * rows.num_rows])


#: The first leads from version 1 to 2. Add at the end; never change one.
MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        "instructions given before a prompt",
        {"pronoun_probability": constant("instruction_key", "none")},
    ),
)


def newest_version() -> int:
    """Version of a warehouse that this Plumbline writes."""
    return 1 + len(MIGRATIONS)


def current_format(older: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Content of a marker; ``older`` are tables with files that lack columns.

    >>> current_format()["older"]
    []
    """
    columns = {name: table.names for name, table in TABLES.items()}
    return {"warehouse_version": newest_version(), "columns": columns, "older": sorted(older)}


def open_warehouse(root: str | Path, *, create: bool = True) -> Path:
    """The directory of a warehouse, created if missing unless ``create`` is false.

    Raises ``BadInput`` for a directory that holds something else, a newer warehouse, or an older
    one that must be migrated first; ``UsageProblem`` for a path with glob characters, which DuckDB
    would read as a pattern.
    """
    root = Path(root)
    if _GLOB_CHARACTERS & set(str(root)):
        raise UsageProblem(f"warehouse {root}", "the path may not hold any of * ? [ ] { }")
    marker = root / MARKER
    if not marker.exists():
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            raise BadInput(f"warehouse {root}", f"not a Plumbline warehouse, no {MARKER} in it")
        if not create:
            raise BadInput(f"warehouse {root}", "does not exist", "run `plumbline pipeline` first")
        root.mkdir(parents=True, exist_ok=True)
        write_format(root, current_format())
    check_format(root)
    return root


def read_format(root: Path) -> dict[str, Any]:
    """Content of a warehouse's marker. Raises ``BadInput`` when it can't be read as one."""
    try:
        found = json.loads((root / MARKER).read_text(encoding="utf-8"))
        if not isinstance(found["warehouse_version"], int):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise BadInput(f"warehouse {root}", f"{MARKER} is not readable") from e
    return dict(found)


def write_format(root: Path, content: Mapping[str, Any]) -> None:
    """Replace a warehouse's marker in one step."""
    with replacing(root / MARKER) as temporary:
        temporary.write_text(json.dumps(content), encoding="utf-8")


def refuse_newer(root: Path, content: Mapping[str, Any]) -> None:
    """Raises ``BadInput`` for a warehouse that a newer Plumbline wrote to."""
    fix = "upgrade Plumbline, or use another --warehouse directory"
    version, ours = content["warehouse_version"], newest_version()
    if version > ours:
        problem = f"has the newer version {version}, this Plumbline reads version {ours}"
        raise BadInput(f"warehouse {root}", problem, fix)
    for name, columns in content.get("columns", {}).items():
        unknown = set(columns) - set(TABLES[name].names if name in TABLES else ())
        if unknown:
            what = f"{name}.{min(unknown)}" if name in TABLES else f"table {name}"
            raise BadInput(f"warehouse {root}", f"a newer Plumbline wrote {what}", fix)


def check_format(root: Path) -> None:
    """Raises ``BadInput`` for a warehouse that can't be read as it is, with the fix."""
    content = read_format(root)
    refuse_newer(root, content)
    version, ours = content["warehouse_version"], newest_version()
    run = f"run `plumbline warehouse migrate --warehouse {root}`"
    if "migrating_from" in content:
        raise BadInput(f"warehouse {root}", "a migration was not finished", run)
    if version < ours:
        problem = f"has version {version}, this Plumbline reads version {ours}"
        raise BadInput(f"warehouse {root}", problem, run)


def older_tables(root: Path) -> frozenset[str]:
    """Tables some of whose files may lack columns that were added since, read as NULL.

    All tables, if the warehouse's marker predates the record of columns.
    """
    content = read_format(root)
    if "columns" not in content:
        return frozenset(TABLES)
    known = content["columns"]
    grown = {n for n, t in TABLES.items() if n in known and known[n] != t.names}
    return frozenset(grown | set(content["older"]))


def note_format(root: Path) -> None:
    """Record the current columns, and which tables' older files may lack some, before a write."""
    current = current_format(older_tables(root))
    if read_format(root).get("columns") != current["columns"]:
        write_format(root, current)
