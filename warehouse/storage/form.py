"""Which form a warehouse's files have: its version and columns, kept in ``plumbline.json``.

The version counts ``migrations.MIGRATIONS``. The columns tell what was added without one, so that a
reader looks for missing columns only where there may be some, and an older Plumbline refuses what
it does not know rather than dropping it.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.migrations import newest_version

MARKER = "plumbline.json"


def form_today(older: frozenset[str] = frozenset()) -> dict[str, Any]:
    """What the marker of a warehouse holds; ``older`` are tables with files that lack columns.

    >>> form_today()["older"]
    []
    """
    columns = {name: list(table.arrow.names) for name, table in TABLES.items()}
    return {"warehouse_version": newest_version(), "columns": columns, "older": sorted(older)}


def read_form(root: Path) -> dict[str, Any]:
    """A warehouse's marker. Raises ``BadInput`` when it can't be read as one."""
    try:
        found = json.loads((root / MARKER).read_text(encoding="utf-8"))
        if not isinstance(found["warehouse_version"], int):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise BadInput(f"warehouse {root}", f"{MARKER} is not readable") from e
    return dict(found)


def write_form(root: Path, form: Mapping[str, Any]) -> None:
    """Replace a warehouse's marker at once."""
    temporary = root / f"_{uuid.uuid4().hex}.tmp"
    temporary.write_text(json.dumps(form), encoding="utf-8")
    os.replace(temporary, root / MARKER)


def refuse_newer(root: Path, form: Mapping[str, Any]) -> None:
    """Raises ``BadInput`` for a warehouse that a newer Plumbline wrote to."""
    fix = "upgrade Plumbline, or use another --warehouse directory"
    version, ours = form["warehouse_version"], newest_version()
    if version > ours:
        problem = f"is of the newer version {version}, this Plumbline reads version {ours}"
        raise BadInput(f"warehouse {root}", problem, fix)
    for name, columns in form.get("columns", {}).items():
        unknown = set(columns) - set(TABLES[name].arrow.names if name in TABLES else ())
        if unknown:
            what = f"{name}.{min(unknown)}" if name in TABLES else f"table {name}"
            raise BadInput(f"warehouse {root}", f"a newer Plumbline wrote {what}", fix)


def check_form(root: Path) -> None:
    """Raises ``BadInput`` for a warehouse that can't be read as it is, with what mends it."""
    form = read_form(root)
    refuse_newer(root, form)
    version, ours = form["warehouse_version"], newest_version()
    run = f"run `plumbline warehouse migrate --warehouse {root}`"
    if "migrating_from" in form:
        raise BadInput(f"warehouse {root}", "a migration was not finished", run)
    if version < ours:
        problem = f"is of version {version}, this Plumbline reads version {ours}"
        raise BadInput(f"warehouse {root}", problem, run)


def tables_of_older_form(root: Path) -> frozenset[str]:
    """Tables some of whose files may lack columns that were added since, read as NULL.

    All of them in a warehouse whose marker is from before columns were noted.
    """
    form = read_form(root)
    if "columns" not in form:
        return frozenset(TABLES)
    known = form["columns"]
    grown = {n for n, t in TABLES.items() if n in known and known[n] != t.arrow.names}
    return frozenset(grown | set(form["older"]))


def note_form(root: Path) -> None:
    """Before a file is written: note today's columns, and where older files may lack some."""
    form = read_form(root)
    today = form_today(tables_of_older_form(root))
    if form.get("columns") != today["columns"]:
        write_form(root, today)
