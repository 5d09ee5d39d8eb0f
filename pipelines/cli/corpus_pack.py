"""The command that makes a shard of text files: ``plumbline corpus pack``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plumbline.pipelines.cli.corpus import DEFAULT_WAREHOUSE, Warehouse
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.text.output import say


def pack(
    texts: Annotated[list[Path], typer.Argument(help="Directories of .txt files, or files.")],
    out: Annotated[Path, typer.Option(help="Shard to write, a .jsonl.zst.")],
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Make one shard of text files (UTF-8), each file a document.

    Files that can't be used are rows of the table `reject`, and the status is 3.

    Example: plumbline corpus pack letters --out letters.jsonl.zst
    """
    from plumbline.jobs.ingest.pack import pack as run
    from plumbline.jobs.ingest.pack import text_files
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.storage.store import Store

    files = text_files(texts)
    store = Store.open(warehouse)
    config = {"texts": [str(path) for path in texts], "out": str(out)}
    with recorded(store, "corpus pack", config) as run_id:
        packed = run(files, out)
        rejects = [{**row, "run_id": run_id} for row in packed.rejects]
        store.replace("reject", rejects, {"stage": "pack", "subject": out.name}, run_id)
    say(
        f"{packed.n_files:,} files = {packed.n_packed:,} packed + {len(rejects):,} rejected, "
        f"{packed.n_bytes / 1e6:,.1f} MB of text"
    )
    say(f"Wrote {out}")
    say(f"Next: plumbline pipeline --corpus {out} --model train:small")
    if rejects:
        first = packed.rejects[0]
        problem = f"{first['reason']}; {len(rejects):,} rejected in all, see table reject"
        raise BadInput(f"text {first['source_file']}", problem, "save it as UTF-8 and pack again")
