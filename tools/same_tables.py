"""Compare the rows of two warehouses, except for the time and the run of each row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store

#: Columns that differ every time: how fast, and by which run.
CIRCUMSTANCES = frozenset({"run_id", "seconds"})


def differences(one: Store, other: Store) -> list[str]:
    """Return a line for each table that differs. The table `run` is not compared."""
    found = []
    for name in TABLES:
        if name == "run":
            continue
        a, b = (_rows(store.read(name)) for store in (one, other))
        if repr(a) != repr(b):
            found.append(f"table {name}: {_first(name, a, b)}")
    return found


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    kept = [c for c in table.column_names if c not in CIRCUMSTANCES]
    return sorted(table.select(kept).to_pylist(), key=repr)


def _first(name: str, a: list[dict[str, Any]], b: list[dict[str, Any]]) -> str:
    if len(a) != len(b):
        return f"{len(a)} and {len(b)} rows"
    x, y = next((x, y) for x, y in zip(a, b, strict=True) if repr(x) != repr(y))
    columns = {c: (x[c], y[c]) for c in x if repr(x[c]) != repr(y[c])}
    return f"{[x[k] for k in TABLES[name].key if k in x]}: {columns}"
