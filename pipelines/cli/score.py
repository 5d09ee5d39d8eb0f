"""The command ``plumbline import-scores``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from plumbline.pipelines.cli.options import Warehouse
from plumbline.pipelines.requests import DEFAULT_WAREHOUSE
from plumbline.warehouse.text.escape import terminal
from plumbline.warehouse.text.output import say

if TYPE_CHECKING:
    from plumbline.eval_workers.released.scores import ImportedScores


def import_scores(
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Holds *__scores__*.csv[.gz], or logs of a harness."),
    ],
    logs: Annotated[
        Literal["released", "lm-eval", "inspect", "helm"],
        typer.Option(help="Released results, or logs of a harness."),
    ] = "released",
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Read scores of sentence pairs from elsewhere; what can't be used is kept in `reject`.

    Released scores, or the logs of lm-evaluation-harness, Inspect or HELM that scored the pairs,
    such as those of a task that `benchmark export` wrote (docs/harness.md). Import the benchmarks
    first. Pairs without a score are counted as missing.

    Example: plumbline import-scores unstereo-eval/results
    """
    from plumbline.eval_workers.harness.helm_logs import import_helm
    from plumbline.eval_workers.harness.inspect_logs import import_inspect
    from plumbline.eval_workers.harness.samples import import_samples
    from plumbline.eval_workers.released.scores import import_scores as import_released
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.storage.store import Store

    store = Store.open(warehouse, create=False)
    readers = {
        "released": import_released,
        "lm-eval": import_samples,
        "inspect": import_inspect,
        "helm": import_helm,
    }
    with recorded(store, "import-scores", {"directory": str(directory), "logs": logs}) as run_id:
        done = readers[logs](store, directory, run_id)
    _print_imported(done)
    say("Next: plumbline measure")


def _print_imported(done: Sequence[ImportedScores]) -> None:
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
