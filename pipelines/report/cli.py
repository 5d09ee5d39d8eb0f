"""``plumbline report``: write the page from what the warehouse holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plumbline.eval_workers.option import DEFAULT_WAREHOUSE, Warehouse
from plumbline.warehouse.text.output import say


def command(
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    out: Annotated[Path, typer.Option(help="Directory of the page and its plots.")] = Path(
        "out/report"
    ),
) -> None:
    """Write one self-contained HTML page, and its plots as SVG files beside it.

    Example: plumbline report --warehouse out/warehouse --out out/report
    """
    from rich.console import Console

    from plumbline.pipelines.report.write import write_report
    from plumbline.warehouse.storage.store import Store

    console = Console(highlight=False, markup=False, emoji=False)
    with console.status("drawing the report"):
        page = write_report(Store.open(warehouse, create=False), out)
    plots = len(list(out.glob("*.svg")))
    say(f"wrote {page} and {plots} plots; open it in a browser")
