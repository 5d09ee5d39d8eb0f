"""``plumbline warehouse``: check, compact, migrate, export and copy a warehouse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from plumbline.pipelines.cli.options import Warehouse
from plumbline.pipelines.cli.sql import show
from plumbline.pipelines.requests import DEFAULT_WAREHOUSE
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.format import MARKER
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.output import say
from plumbline.warehouse.text.progress import progress

if TYPE_CHECKING:
    from plumbline.warehouse.storage.mirror import Mirrored

Uri = Annotated[str, typer.Argument(help="s3://BUCKET/DIR, gs://, abfs://, hdfs:// or file:///.")]
Force = Annotated[bool, typer.Option("--force", help="Also while a run may be writing.")]


def check(warehouse: Warehouse = DEFAULT_WAREHOUSE) -> None:
    """Read every file: schema, run, partition, unique keys, nothing left behind.

    Names each problem with its fix; status 3 if there is one.

    Example: plumbline warehouse check
    """
    from plumbline.warehouse.storage.check import check as problems_of

    found = problems_of(Store.open(warehouse, create=False))
    for problem in found:
        say(f"{problem.path}: {problem.problem} ({problem.fix})")
    say(f"{warehouse}: {len(found) or 'no'} problem{'' if len(found) == 1 else 's'}")
    if found:
        raise typer.Exit(3)


def compact(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the plan.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also while a run may be writing.")
    ] = False,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Merge the small files of each partition, and remove what stopped commands left.

    Every merged file is compared with the rows of its parts before it replaces them. Work that
    saves time later is kept.

    Example: plumbline warehouse compact --dry-run
    """
    from plumbline.warehouse.provenance.runs import recorded, refuse_beside_runs
    from plumbline.warehouse.storage import compaction as steps

    store = Store.open(warehouse, create=False)
    todo = steps.plan(store)
    for leftover in todo.leftovers:
        say(f"remove {leftover.path}: {leftover.why}")
    for merge in todo.merges:
        say(f"merge {len(merge.files)} files in {merge.directory}")
    if dry_run or not (todo.leftovers or todo.merges):
        say("nothing was changed")
        return
    if not force:
        refuse_beside_runs(store, "compact")
    with recorded(store, "warehouse compact", {"force": force}) as run_id:
        done = steps.compact(store, run_id, force=force)
    say(
        f"merged files in {len(done.merges)} directories, removed {len(done.leftovers)} leftovers; "
        "next: plumbline warehouse check"
    )


def migrate(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the plan.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also while a run may be writing.")
    ] = False,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Rewrite the files of an older warehouse in the current format. Run it again to resume.

    Example: plumbline warehouse migrate --dry-run
    """
    from plumbline.warehouse.provenance.runs import refuse_beside_runs
    from plumbline.warehouse.storage.format import MARKER
    from plumbline.warehouse.storage.migration import migrate as bring

    if not (warehouse / MARKER).exists():
        Store.open(warehouse, create=False)  # says what it is instead
        raise UsageProblem(f"warehouse {warehouse}", "not a Plumbline warehouse")
    if not (dry_run or force):
        refuse_beside_runs(Store(warehouse), "migrate")
    done = bring(warehouse, dry_run=dry_run)
    would = "would write" if dry_run else "wrote"
    say(f"version {done.before} to {done.after}: {would} {len(done.files)} files of {warehouse}")
    if not dry_run:
        say("next: plumbline warehouse check")


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


def push(
    uri: Uri,
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove files there that are not here.")
    ] = False,
    force: Force = False,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Copy the warehouse to object storage or another file system: only what changed.

    Each file is read back and compared by its hash; the list of all comes last. After an
    interruption run the same command again to resume. What the server wants to know (keys, region)
    comes from its own environment variables and files.

    Example: plumbline warehouse push s3://bucket/warehouse
    """
    from plumbline.warehouse.provenance.runs import refuse_beside_runs
    from plumbline.warehouse.storage.mirror import push as send
    from plumbline.warehouse.storage.remote import shown

    store = Store.open(warehouse, create=False)
    if not force:
        refuse_beside_runs(store, "push")
    with progress("push", "files") as update:
        done = send(warehouse, uri, delete=delete, progress=update)
    say(f"{shown(uri)}: {_copied(done)}")
    say(f"next, on another machine: plumbline warehouse pull {shown(uri)}")


def pull(
    uri: Uri,
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove files here that are not there.")
    ] = False,
    force: Force = False,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Bring a warehouse that was pushed to this machine, or up to date: only what changed.

    Every file is compared by its hash before any takes its place. After an
    interruption run the same command again to resume.

    Example: plumbline warehouse pull s3://bucket/warehouse
    """
    from plumbline.warehouse.provenance.runs import refuse_beside_runs
    from plumbline.warehouse.storage.mirror import pull as fetch

    if (warehouse / MARKER).exists() and not force:
        refuse_beside_runs(Store.open(warehouse, create=False), "pull")
    with progress("pull", "files") as update:
        done = fetch(uri, warehouse, delete=delete, progress=update)
    say(f"{warehouse}: {_copied(done)}")
    say("next: plumbline warehouse check")


def _copied(done: Mirrored) -> str:
    copied = f"{done.n_copied:,} of {done.n_files:,} files copied, {done.n_bytes / 1e6:,.1f} MB"
    return f"{copied}, {done.n_removed:,} removed"
