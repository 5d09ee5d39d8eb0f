"""The commands ``plumbline score`` and ``import-scores``."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from plumbline.eval_workers.options import ModelOptions
from plumbline.eval_workers.scoring.dry_run import Task
from plumbline.pipelines.cli.options import Models, Warehouse, expanded
from plumbline.pipelines.requests import DEFAULT_WAREHOUSE
from plumbline.pipelines.requests.failures import Failures
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.options import words
from plumbline.warehouse.text.escape import terminal
from plumbline.warehouse.text.output import say

if TYPE_CHECKING:
    from plumbline.eval_workers.released.scores import ImportedScores
    from plumbline.eval_workers.scoring.pair_scores import Scored
    from plumbline.warehouse.storage.store import Store


@expanded
def score(
    benchmark: Annotated[list[str], typer.Option(help="Benchmark; give it once for each.")],
    model: Annotated[
        list[str] | None,
        typer.Option(help="Hub id, or directory of a saved model; give it once for each."),
    ] = None,
    models: Models = None,
    revisions: Annotated[
        str | None,
        typer.Option(
            help="Checkpoints of the models, one after the other: names or patterns with commas, "
            "such as step1000,step*000, or all."
        ),
    ] = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    *,
    options: ModelOptions,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes on this machine; each has its own GPUs or cores.")
    ] = 1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would take; write nothing.")
    ] = False,
) -> None:
    """Log-probability of both sentences of every pair; only pairs without a score are computed.

    After an interruption run the same command again to resume. Started several times on one
    warehouse, also on several machines, each process takes a part of the work.

    Checkpoints of a hub are downloaded one ahead, and dropped when they are scored.

    Example: plumbline score --model EleutherAI/pythia-70m --benchmark winobias --benchmark use-5
    """
    from plumbline.eval_workers.scoring.pair_scores import check_imported
    from plumbline.eval_workers.scoring.revisions import one_ahead
    from plumbline.warehouse.storage.store import Store

    store = Store.open(warehouse, create=False)
    benchmarks = tuple(dict.fromkeys(benchmark))
    check_imported(store, benchmarks)
    chosen = _chosen(model or [], models, options)
    if revisions is not None:
        chosen = list(_checkpoints(chosen, revisions))
    tasks = [Task(name, how, benchmarks, own or workers) for name, how, own in chosen]
    if dry_run:
        from plumbline.eval_workers.scoring.dry_run import forecast_lines

        def print_estimate(task: Task) -> None:
            for line in forecast_lines(store, task):
                say(line)

        _each(tasks, print_estimate)
        given = [w for name in model or [] for w in ("--model", name)]
        given = given or ["--models", str(models)]
        given += [] if revisions is None else ["--revisions", revisions]
        say(f"Run: {command(given, tasks[0], options, warehouse)}")
        return
    turns = one_ahead([(task.model, task.options.revision) for task in tasks] if revisions else [])
    with closing(turns):
        _each(tasks, lambda task: _score(store, task), turns)
    say("Next: plumbline measure")


def command(given: Sequence[str], task: Task, options: ModelOptions, warehouse: Path) -> str:
    """The command line that scores; what is a default is left out."""
    line = ["plumbline", "score", *given]
    line += [word for name in task.benchmarks for word in ("--benchmark", name)]
    line += words(options)
    if task.n_workers > 1:
        line += ["--workers", str(task.n_workers)]
    if warehouse != DEFAULT_WAREHOUSE:
        line += ["--warehouse", str(warehouse)]
    return shlex.join(line)


def _chosen(
    model: Sequence[str], models: str | None, options: ModelOptions
) -> list[tuple[str, ModelOptions, int | None]]:
    """Each model with how it is loaded, and the number of its own processes if it has one."""
    from plumbline.eval_workers.model_lists import load_available

    if bool(model) == bool(models):
        problem = "exclude each other" if model else "are both missing"
        raise UsageProblem("--model and --models", problem, "give one of them")
    if models:
        return [(one.id, one.options(options), one.workers) for one in load_available(models)]
    return [(name, options, None) for name in dict.fromkeys(model)]


def _checkpoints(
    chosen: Sequence[tuple[str, ModelOptions, int | None]], revisions: str
) -> Iterator[tuple[str, ModelOptions, int | None]]:
    """The same for each checkpoint of each model."""
    from plumbline.eval_workers.scoring.revisions import checkpoints

    for name, how, own in chosen:
        if how.revision is not None:
            raise UsageProblem("--revision and --revisions", "exclude each other", "give one")
        for checkpoint in checkpoints(name, revisions):
            yield checkpoint.model, replace(how, revision=checkpoint.revision), own


def _each(
    tasks: Sequence[Task], work: Callable[[Task], None], turns: Iterator[object] | None = None
) -> None:
    """Work on every task, in its turn; of several, one that fails doesn't stop the others."""
    turns = turns or iter(())
    failures = Failures(len(tasks))
    for number, task in enumerate(tasks, 1):
        next(turns, None)
        if len(tasks) > 1:
            of = f" at {task.options.revision}" if task.options.revision else ""
            say(f"Model {number} of {len(tasks)}: {task.model}{of}")
        with failures.collected(task.model):
            work(task)
    failures.check()


def _score(store: Store, task: Task) -> None:
    """Score, and say what came of it."""
    from plumbline.eval_workers.scoring.pair_scores import score_recorded
    from plumbline.eval_workers.work.runner import NothingUsed

    try:
        done = score_recorded(
            *(store, task.model, task.benchmarks, task.options),
            n_workers=task.n_workers,
            say=lambda line: say(line, err=True),
        )
    except NothingUsed as e:
        for one in e.outcomes:
            say(_summary(one))
        raise
    for one in done:
        say(_summary(one))
    form = ", released text form" if task.options.text_form == "released" else ""
    say(f"Model {done[0].model}, key {done[0].model_key}{form}, measure: {done[0].measure}")
    for one in done:
        if one.n_rejected and not one.n_scored:
            found = store.read("reject", stage="score", subject=f"{one.model_key}/{one.benchmark}")
            first = f", {found['reason'][0].as_py()}" if found.num_rows else ""
            fix = "see table `reject`; take another model or other sentences"
            raise BadInput(
                f"model {one.model}", f"can score no pair of {one.benchmark}{first}", fix
            )


def _summary(one: Scored) -> str:
    rejected = f", {one.n_rejected:,} rejected (table `reject`)" if one.n_rejected else ""
    rate = f", {one.pairs_per_s:,.1f} pairs/s" if one.pairs_per_s else ""
    counts = f"{one.n_scored:,} of {one.n_pairs:,} pairs in `pair_score`, {one.n_new:,} new"
    return f"{one.benchmark}: {counts}{rejected}{rate}"


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
