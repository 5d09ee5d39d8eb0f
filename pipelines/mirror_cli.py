"""``plumbline warehouse push`` and ``pull``: a whole warehouse to a URI and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from plumbline.eval_workers.option import DEFAULT_WAREHOUSE, Warehouse
from plumbline.warehouse.storage.format import MARKER
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.output import say
from plumbline.warehouse.text.progress import progress

if TYPE_CHECKING:
    from plumbline.warehouse.storage.mirror import Mirrored

Uri = Annotated[str, typer.Argument(help="s3://BUCKET/DIR, gs://, abfs://, hdfs:// or file:///.")]
Force = Annotated[bool, typer.Option("--force", help="Also while a run may be writing.")]


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
    say(f"{shown(uri)}: {_line(done)}")
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
    say(f"{warehouse}: {_line(done)}")
    say("next: plumbline warehouse check")


def _line(done: Mirrored) -> str:
    copied = f"{done.n_copied:,} of {done.n_files:,} files copied, {done.n_bytes / 1e6:,.1f} MB"
    return f"{copied}, {done.n_removed:,} removed"
