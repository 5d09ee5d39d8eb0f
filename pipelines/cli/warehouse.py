"""``plumbline warehouse``: check, compact, migrate, export, history and copies of a warehouse."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from plumbline.pipelines.cli.options import Warehouse
from plumbline.pipelines.cli.sql import show
from plumbline.pipelines.requests import DEFAULT_WAREHOUSE
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.format import MARKER
from plumbline.warehouse.storage.place import Place, command
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.output import say
from plumbline.warehouse.text.progress import progress

KeepDays = Annotated[float, typer.Option(min=0, help="How long earlier versions are kept.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what the copy's own runs wrote.")]
Uri = Annotated[Path, typer.Argument(help="s3://BUCKET/DIR, gs://, az://, or a directory.")]


def check(
    since: Annotated[
        str, typer.Option(help="Leave out files hashed since then: 7d (ago), or 2026-05-01 (UTC).")
    ] = "",
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Read every file of every version: hash, schema, run, partition, unique keys, leftovers.

    Rows are read in a process with limited memory and time: check what others send you first. In an
    object store the stored bytes are read, not copies. Names each problem with its fix; status 3 if
    there is one. With --since 7d, in a daily cron job, each file is read about once a week.

    Example: plumbline warehouse check --since 7d
    """
    from plumbline.warehouse.storage.check import check as problems_of
    from plumbline.warehouse.storage.check import moment

    after = moment(since) if since else math.inf
    store = Store.open(warehouse, create=False)
    with progress("check", "files") as update:
        found = problems_of(store, apart=True, since=after, update=update)
    for problem in found:
        say(f"{problem.path}: {problem.problem} ({problem.fix})")
    say(f"{warehouse}: {len(found) or 'no'} problem{'' if len(found) == 1 else 's'}")
    if found:
        raise typer.Exit(3)


def compact(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the plan.")] = False,
    keep_days: KeepDays = 7.0,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Merge small files, forget old versions, and remove what stopped commands left.

    Others may read and write meanwhile. Every merged file is compared with the rows of its parts.
    Work that saves time later is kept.

    Example: plumbline warehouse compact --dry-run
    """
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.storage import compaction as steps

    store = Store.open(warehouse, create=False)
    todo = steps.plan(store, keep_days)
    for leftover in todo.leftovers:
        say(f"remove {leftover.path}: {leftover.why}")
    for merge in todo.merges:
        say(f"merge {len(merge.files)} files of {merge.table} {' '.join(merge.partition)}".rstrip())
    if dry_run or not (todo.leftovers or todo.merges):
        say("nothing was changed")
        return
    with recorded(store, "warehouse compact", {"keep_days": keep_days}) as run_id:
        done = steps.compact(store, run_id, keep_days)
    say(
        f"merged the files of {len(done.merges)} partitions, removed {len(done.leftovers)} files; "
        f"next: {command(store.place, 'check')}"
    )


def migrate(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the plan.")] = False,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Bring an older warehouse to the current format, in one commit.

    Old files stay until `plumbline warehouse compact --keep-days 0`. After an interruption run the
    same command again.

    Example: plumbline warehouse migrate --dry-run
    """
    from plumbline.warehouse.storage.migration import migrate as bring

    if not (warehouse / MARKER).exists():
        Store.open(warehouse, create=False)  # says what it is instead
        raise UsageProblem(f"warehouse {warehouse}", "not a Plumbline warehouse")
    done = bring(warehouse, dry_run=dry_run)
    would = "would write" if dry_run else "wrote"
    say(f"version {done.before} to {done.after}: {would} {len(done.files)} files of {warehouse}")
    if not dry_run:
        say("next: plumbline warehouse check")


def history(
    limit: Annotated[int, typer.Option(min=1, help="The newest so many.")] = 50,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """The versions that are kept, newest first: when each was made, by which run, doing what.

    Example: plumbline warehouse history --limit 5
    """
    from plumbline.warehouse.storage import log

    store = Store.open(warehouse, create=False)
    states = [log.snapshot(store.place, v) for v in reversed(log.versions(store.place)[-limit:])]
    rows = [(s.version, f"{s.time:%Y-%m-%d %H:%M:%S}", s.run_id, s.about) for s in states]
    show(Console(highlight=False, markup=False), ["version", "time (UTC)", "run", "what"], rows)
    say("next: plumbline sql --at VERSION, or plumbline warehouse restore VERSION")


def restore(
    version: Annotated[str, typer.Argument(help="A version, the start of a run's id, or a time.")],
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Make all tables what they were at an earlier version, in a new commit. No file is removed.

    Example: plumbline warehouse restore 12
    """
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.storage import versions as past
    from plumbline.warehouse.storage.opening import version_of

    store = Store.open(warehouse, create=False)
    number = version_of(store, version)
    with recorded(store, "warehouse restore", {"version": number}) as run_id:
        past.restore(store, number, run_id)
    say(f"{warehouse}: as of version {number} again; next: {command(store.place, 'check')}")


def forget(
    path: Annotated[Path, typer.Argument(help="A data file, as the message about it names it.")],
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Take a damaged data file out of its table. Run again what wrote it.

    Example: plumbline warehouse forget out/warehouse/word_count/corpus=pile/0a1b.parquet
    """
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.storage import versions as past

    store = Store.open(warehouse, create=False)
    table, file = past.file_of(store, path)
    with recorded(store, "warehouse forget", {"path": file.path}) as run_id:
        past.forget(store, table, file, run_id)
    say(f"{file.path}: {file.n_rows:,} rows are no longer in {table}")
    wrote = ", ".join(sorted({unit.run_id for unit in file.units}))
    say(f"next: plumbline runs show {wrote}, and run that command again")


def export(
    names: Annotated[
        list[str] | None, typer.Argument(help="Tables and views; default: tables with rows.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory for the files.")] = Path("out/export"),
    kind: Annotated[
        str, typer.Option("--format", help="parquet, csv, jsonl, or duckdb for one database.")
    ] = "parquet",
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Write tables and views as files to hand on, with their data dictionary.

    Example: plumbline warehouse export pair_score us_by_start --format csv --out figures
    """
    from plumbline.warehouse.query.export import export as write

    made = write(warehouse, names or [], out, kind)
    rows = [(item.name, item.n_rows, str(item.path)) for item in made]
    show(Console(highlight=False, markup=False), ["table or view", "rows", "file"], rows)
    say(f"wrote {len(made)} tables and dictionary.md to {out}; next: read {out}/dictionary.md")


def push(uri: Uri, force: Force = False, warehouse: Warehouse = DEFAULT_WAREHOUSE) -> None:
    """Copy the warehouse's newest version to an object store or another directory.

    Only files that are missing there are sent, then all tables change in one commit. What the
    server wants to know (keys, region) comes from its own environment variables and files.

    Example: plumbline warehouse push s3://bucket/warehouse
    """
    there = _copy(warehouse, uri, force)
    say(f"next, on another machine: plumbline sql --warehouse {there}")


def pull(uri: Uri, force: Force = False, warehouse: Warehouse = DEFAULT_WAREHOUSE) -> None:
    """Copy the newest version of a warehouse that lies elsewhere to this one.

    Only files that are missing here are fetched, then all tables change in one commit.

    Example: plumbline warehouse pull s3://bucket/warehouse
    """
    here = _copy(uri, warehouse, force)
    say(f"next: {command(here, 'check')}")


def _copy(source: Path, target: Path, force: bool) -> Place:
    from plumbline.warehouse.storage.versions import copy

    into = Store.open(target)
    with progress("copy", "files") as update:
        n_files, n_sent = copy(Store.open(source, create=False), into, force, update)
    say(f"{into.place}: {n_sent:,} of {n_files:,} files copied; what is there already is not read")
    return into.place
