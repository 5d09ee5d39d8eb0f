"""History of runs: list and find them, and count the rows that they wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.locks import lives
from plumbline.warehouse.storage.store import Store

Row: TypeAlias = dict[str, Any]
_REJECTS = """
SELECT reason, count(*) AS n FROM reject WHERE run_id = $run GROUP BY ALL ORDER BY n DESC, reason
"""


def runs(store: Store, command: str = "") -> list[Row]:
    """Rows of ``run`` whose command starts with ``command``, newest first.

    A run without an end counts as interrupted if its process has ended.
    """
    rows = map(_with_state, store.read("run").to_pylist())
    selected = [row for row in rows if row["command"].startswith(command)]
    return sorted(selected, key=lambda row: str(row["run_id"]), reverse=True)


def _with_state(row: Row) -> Row:
    """A row of ``run``; if the run has no end, with the state of its process in ``error``."""
    if row["status"] != "running":
        return row
    process = (row["error"] or "").removeprefix("no end yet: ")
    is_alive = lives(process)
    state = {True: "alive", False: "gone", None: "on another host"}[is_alive]
    status = "interrupted" if is_alive is False else "running"
    return row | {"status": status, "error": f"{state}: {process}"}


def find(store: Store, prefix: str) -> Row:
    """The run whose id starts with ``prefix``. Raises ``UsageProblem`` for none or several."""
    matches = [row for row in runs(store) if row["run_id"].startswith(prefix)]
    exact = [row for row in matches if row["run_id"] == prefix]
    if len(matches) == 1 or exact:
        return (exact or matches)[0]
    problem = f"{len(matches)} runs match" if matches else "no run matches"
    raise UsageProblem(f"run {prefix!r}", problem, "`plumbline runs` names them")


def written(store: Store, run_id: str) -> dict[str, int]:
    """Number of rows that a run wrote and that still exist, by table, without table `run`.

    Rows are found by the column ``run_id`` where a table has one, otherwise by the units of the
    table's files.
    """
    names = [name for name in TABLES if name != "run" and "run_id" in TABLES[name].names]
    count = "SELECT '{0}' AS name, count(*) AS n FROM {0} WHERE run_id = $run"
    query, snapshot = " UNION ALL ".join(map(count.format, names)), store.snapshot()
    rows = rows_of(store.root, query, {"run": run_id})
    n_rows = {row["name"]: row["n"] for row in rows}
    for name in TABLES.keys() - {"run", *names}:
        units = (unit for file in snapshot.files(name) for unit in file.units)
        n_rows[name] = sum(unit.n_rows for unit in units if unit.run_id == run_id)
    return {name: n_rows[name] for name in TABLES if n_rows.get(name)}


def details(store: Store, prefix: str) -> Row:
    """A run's row with its options, versions and seeds, and numbers of rows written and rejected.

    ``written`` counts by table, ``rejects`` by reason. Raises as ``find``.
    """
    row = find(store, prefix)
    options = json.loads(row["config"])
    rejects = rows_of(store.root, _REJECTS, {"run": row["run_id"]})
    shown = {k: v for k, v in row.items() if k not in ("config", "packages")}
    return shown | {
        "options": options,
        "versions": json.loads(row["packages"]),
        "seeds": {k: v for k, v in flat(options).items() if "seed" in k.split(".")[-1]},
        "written": written(store, row["run_id"]),
        "rejects": {reject["reason"]: reject["n"] for reject in rejects},
    }


def flat(options: object, name: str = "") -> dict[str, object]:
    """Nested options as one level, with names joined by dots."""
    if not isinstance(options, Mapping):
        return {name: options}
    level: dict[str, object] = {}
    for key, value in options.items():
        level |= flat(value, f"{name}.{key}" if name else str(key))
    return level
