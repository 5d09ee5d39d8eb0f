"""The commands ``plumbline measure`` and ``report``."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from plumbline.pipelines.cli.options import Warehouse
from plumbline.pipelines.requests import DEFAULT_WAREHOUSE
from plumbline.warehouse.text.output import say


def measure(
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    epsilon: Annotated[
        float, typer.Option(help="Largest |log ratio| that doesn't count as a preference, in nats.")
    ] = math.log(1.65),
    eta: Annotated[
        list[float] | None,
        typer.Option(help="Constraint on |MaxPMI| in nats; repeat for several."),
    ] = None,
    log_base: Annotated[
        list[float] | None,
        typer.Option(help="Base of AuFC's log ratios; repeat for several. Default: e."),
    ] = None,
    sd_pairs: Annotated[
        int | None,
        typer.Option(help="Pairs in US's standard deviation instead of the subset's own number."),
    ] = None,
) -> None:
    """Compute US, PD, AuFC, gaps and how far models follow their corpus.

    Example: plumbline measure --eta 0.5 --eta 0.65
    """
    from rich.console import Console

    from plumbline.pipelines.cli.sql import show
    from plumbline.pipelines.report.metrics import measured
    from plumbline.pipelines.requests import measure as metrics
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.query.connection import connect, model_labels
    from plumbline.warehouse.storage.store import Store

    usual = metrics.MeasureOptions()
    options = metrics.MeasureOptions(
        epsilon, tuple(eta or usual.etas), tuple(log_base or usual.log_bases), sd_pairs
    )
    store = Store.open(warehouse, create=False)
    with recorded(store, "measure", asdict(options)) as run_id:
        rows = metrics.measure(store, run_id, options)
    console = Console(highlight=False, markup=False, emoji=False)
    if rows.num_rows == 0:
        console.print("nothing to measure yet: run `plumbline score` first")
        return
    labels = model_labels(connect(warehouse, "model_label"))
    for names, lines in measured(rows, labels).values():
        show(console, names, lines)
    console.print("in brackets: 95% intervals")
    console.print(
        f"wrote {rows.num_rows:,} metrics to {warehouse}; next: plumbline report", soft_wrap=True
    )


def report(
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
