"""``plumbline runs``: what was run on a warehouse, with what, and how two runs differ."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from plumbline.pipelines.cli.options import Warehouse
from plumbline.pipelines.cli.sql import show
from plumbline.pipelines.requests import DEFAULT_WAREHOUSE
from plumbline.warehouse.provenance import history
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.output import say

AsJson = Annotated[bool, typer.Option("--json", help="As JSON instead of tables.")]
#: Columns of a line of ``runs list`` that goes to a file or a pipe, and least room for an error.
_PIPED_WIDTH, _LEAST_ERROR = 120, 20
RunId = Annotated[str, typer.Argument(help="Run id, or the start of one.")]


def _open(warehouse: Path) -> Store:
    return Store.open(warehouse, create=False)


def _json(value: object) -> None:
    # Escapes whatever is not ASCII, control characters among them.
    print(json.dumps(value, indent=2, default=lambda v: getattr(v, "isoformat", v.__str__)()))


def _table(title: str, names: list[str], rows: list[tuple[Any, ...]]) -> None:
    console = Console(highlight=False, markup=False)
    console.print(Text(f"\n{title}", style="bold"))
    if rows:
        show(console, names, rows)
    else:
        console.print("none")


def list_runs(
    command: Annotated[str, typer.Option(help="Only commands that begin so.")] = "",
    since: Annotated[str, typer.Option(help="Only from then on (UTC), as 2026-05-01.")] = "",
    status: Annotated[
        str, typer.Option(help="Only finished, failed, interrupted or running.")
    ] = "",
    as_json: AsJson = False,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """List runs, the newest first; long errors are cut: `runs show`, --json or `sql` have all.

    Example: plumbline runs list --command score --since 2026-05-01 --status finished
    """
    found = history.runs(_open(warehouse), command=command, since=since, status=status)
    if as_json:
        _json(found)
        return
    names = ["run_id", "command", "status", "started_at", "seconds", "error"]
    rows = [
        (*(r[n] for n in names[:3]), f"{r['started_at']:%Y-%m-%d %H:%M:%S}", _seconds(r))
        for r in found
    ]
    console = Console(highlight=False, markup=False)
    used = sum(
        max(len(str(v)) for v in column) + 3 for column in zip(names[:-1], *rows, strict=True)
    )
    room = (console.width if console.is_terminal else _PIPED_WIDTH) - used - 3
    errors = [r["error"] or "" for r in found]
    if room >= _LEAST_ERROR or not console.is_terminal:  # else each run is shown as a block
        room = max(room, _LEAST_ERROR)
        errors = [e if len(e) <= room else f"{e[: room - 1]}…" for e in errors]
    show(console, names, [(*row, error) for row, error in zip(rows, errors, strict=True)])
    if found:
        say(f"next: plumbline runs show {shlex.quote(found[0]['run_id'])}")


def _seconds(row: Mapping[str, Any]) -> float | None:
    return None if row["seconds"] is None else round(row["seconds"], 1)


def show_run(
    run_id: RunId, as_json: AsJson = False, warehouse: Warehouse = DEFAULT_WAREHOUSE
) -> None:
    """Show a run: options, versions, git commit, seeds, time, what it wrote and rejected.

    Example: plumbline runs show 20260501T12
    """
    found = history.details(_open(warehouse), run_id)
    if as_json:
        _json(found)
        return
    inner = ("options", "versions", "seeds", "written", "rejects")
    facts = [(name, str(v)) for name, v in found.items() if name not in inner and v is not None]
    _table("run", ["", "value"], facts)
    _table("options", ["option", "value"], list(history.flat(found["options"]).items()))
    _table("seeds", ["option", "value"], list(found["seeds"].items()))
    _table("versions", ["package", "version"], list(found["versions"].items()))
    _table("rows written that are still there", ["table", "rows"], list(found["written"].items()))
    _table("rejects", ["reason", "rows"], list(found["rejects"].items()))


def compare(
    first: RunId, second: RunId, as_json: AsJson = False, warehouse: Warehouse = DEFAULT_WAREHOUSE
) -> None:
    """Hold two runs side by side: options and versions that differ, metrics of both.

    The difference is the second less the first.

    Example: plumbline runs compare 20260501T12 20260502T09
    """
    found = history.compare(_open(warehouse), first, second)
    if as_json:
        _json(found)
        return
    a, b = found["runs"]
    for what in ("options", "versions"):
        rows = [(name, *pair) for name, pair in found[what].items()]
        _table(f"{what} that differ", [what[:-1], f"A {a}", f"B {b}"], rows)
    rows = [
        (*(m[k] for k in ("metric", "benchmark", "corpus", "subset")), *m["models"], *m["values"])
        for m in found["metrics"]
    ]
    rows = [
        (*row, m["difference"], m["unit"]) for row, m in zip(rows, found["metrics"], strict=True)
    ]
    names = ["metric", "benchmark", "corpus", "subset", "model A", "model B", "A", "B", "B - A"]
    _table("metrics of both", [*names, "unit"], rows)
