"""The command ``plumbline import-scores``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plumbline.eval_workers.option import DEFAULT_WAREHOUSE, Warehouse
from plumbline.warehouse.text.escape import terminal
from plumbline.warehouse.text.output import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plumbline.eval_workers.release.scores import ImportedScores


def import_scores(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Released results: *__scores__*.csv[.gz].")
    ],
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Read released scores of sentence pairs; what can't be used is kept in `reject`.

    Import the benchmarks first. Pairs without a score are counted as missing.

    Example: plumbline import-scores unstereo-eval/results
    """
    from plumbline.eval_workers.release import scores
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.storage.store import Store

    store = Store.open(warehouse, create=False)
    with recorded(store, "import-scores", {"directory": str(directory)}) as run_id:
        done = scores.import_scores(store, directory, run_id)
    _report(done)
    say("Next: plumbline measure")


def _report(done: Sequence[ImportedScores]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("model", "benchmark", "pairs", "scored", "rejected", "missing")
    table.columns[0].overflow = "fold"
    for column in table.columns[2:]:
        column.justify = "right"
    for one in done:
        figures = (one.n_pairs, one.n_scored, one.n_rejected, one.n_missing)
        table.add_row(terminal(one.model), terminal(one.benchmark), *(f"{n:,}" for n in figures))
    Console(markup=False, emoji=False).print(table)
    n_files = sum(len(one.files) for one in done)
    n_scored = sum(one.n_scored for one in done)
    say(f"{n_files:,} files: {n_scored:,} scores in `pair_score`")
    if n_rejected := sum(one.n_rejected for one in done):
        say(f"{n_rejected:,} rows were not used: table `reject`, stage `import`")
    if n_missing := sum(one.n_missing for one in done):
        say(f"Incomplete: {n_missing:,} pairs have no score and are in no metric")
