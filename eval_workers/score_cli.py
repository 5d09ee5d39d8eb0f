"""The command ``plumbline score``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from plumbline.eval_workers import option
from plumbline.warehouse.errors import BadInput, Interrupted, PlumblineError, UsageProblem
from plumbline.warehouse.text.output import say

if TYPE_CHECKING:
    from plumbline.eval_workers.backends.base import ModelOptions
    from plumbline.eval_workers.score import Scored
    from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True)
class Task:
    """One model with its options, and the benchmarks to score with it."""

    model: str
    options: ModelOptions
    benchmarks: tuple[str, ...]
    n_workers: int = 1


def score(
    benchmark: Annotated[list[str], typer.Option(help="Benchmark; give it once for each.")],
    model: Annotated[str, typer.Option(help="Hub id, or directory of a saved model.")] = "",
    models: option.Models = "",
    warehouse: option.Warehouse = option.DEFAULT_WAREHOUSE,
    revision: option.Revision = None,
    dtype: option.Dtype = "float32",
    device: option.Device = "auto",
    batch_tokens: option.BatchTokens = None,
    bos: option.Bos = None,
    backend: option.Backend = "transformers",
    tensor_parallel: option.TensorParallel = 1,
    adapter: option.Adapter = None,
    quantisation: option.Quantisation = None,
    trust_remote_code: option.TrustRemoteCode = None,
    text_form: Annotated[
        str, typer.Option(help="written, or released: as the released scores had the sentences.")
    ] = "written",
    per_token: Annotated[
        bool, typer.Option("--per-token", help="Keep every token's log-probability.")
    ] = False,
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

    Example: plumbline score --model EleutherAI/pythia-70m --benchmark winobias --benchmark use-5
    """
    from plumbline.eval_workers.backends.base import ModelOptions
    from plumbline.eval_workers.score import check_imported
    from plumbline.warehouse.storage.store import Store

    options = ModelOptions(
        *(revision, dtype, device, batch_tokens, bos, backend, tensor_parallel),
        adapter=adapter,
        quantisation=quantisation,
        trust_remote_code=trust_remote_code,
        text_form=text_form,
        per_token=per_token,
    )
    store = Store.open(warehouse, create=False)
    benchmarks = tuple(dict.fromkeys(benchmark))
    check_imported(store, benchmarks)
    tasks = [Task(name, o, benchmarks, workers) for name, o in _chosen(model, models, options)]
    if dry_run:
        from plumbline.eval_workers.dry_run import command, print_estimate

        _each(tasks, lambda task: print_estimate(store, task))
        say(f"Run: {command(benchmarks, model, models, options, workers, warehouse)}")
        return
    _each(tasks, lambda task: _score(store, task))
    say("Next: plumbline measure")


def _chosen(model: str, models: str, options: ModelOptions) -> list[tuple[str, ModelOptions]]:
    from plumbline.eval_workers.models import load

    if bool(model) == bool(models):
        problem = "exclude each other" if model else "are both missing"
        raise UsageProblem("--model and --models", problem, "give one of them")
    if model:
        return [(model, options)]
    return [(entry.id, entry.options(options)) for entry in load(models)]


def _each(tasks: Sequence[Task], work: Callable[[Task], None]) -> None:
    """Work on every task; of several, one that fails is told in a line and the others go on.

    A failure that is nobody's input is a defect: it is raised after the others are done.
    """
    if len(tasks) == 1:
        work(tasks[0])
        return
    failed: list[str] = []
    defect: Exception | None = None
    for number, task in enumerate(tasks, 1):
        say(f"Model {number} of {len(tasks)}: {task.model}")
        try:
            work(task)
        except Interrupted:
            raise
        except Exception as e:
            is_ours = isinstance(e, PlumblineError)
            defect = defect if is_ours else e
            line = str(e) if is_ours else f"{task.model}: {type(e).__name__}: {e}"
            say(f"failed: {' '.join(line.split())}", err=True)
            failed.append(task.model)
    if defect is not None:
        raise defect
    if failed:
        problem = f"{len(failed)} of {len(tasks)} failed: {', '.join(failed)}"
        raise BadInput("models", problem, "the others are done; the same command tries these again")


def _score(store: Store, task: Task) -> None:
    """Score under a run of its own, and say what came of it."""
    from plumbline.eval_workers.backends.devices import release
    from plumbline.eval_workers.score import score_benchmarks
    from plumbline.eval_workers.scoring_bar import scoring_bar
    from plumbline.warehouse.provenance.runs import recorded

    config = {"model": task.model, "benchmarks": task.benchmarks, **asdict(task.options)}
    config["n_workers"] = task.n_workers
    try:
        with recorded(store, "score", config) as run_id, scoring_bar() as progress:
            done = score_benchmarks(
                *(store, task.model, task.benchmarks, task.options, run_id, progress),
                n_workers=task.n_workers,
                say=lambda line: say(line, err=True),
            )
    finally:
        release()
    for one in done:
        say(_summary(one))
    form = ", released text form" if task.options.text_form == "released" else ""
    say(f"Model {done[0].model}, key {done[0].model_key}{form}")


def _summary(one: Scored) -> str:
    rejected = f", {one.n_rejected:,} rejected (table `reject`)" if one.n_rejected else ""
    rate = f", {one.pairs_per_s:,.1f} pairs/s" if one.pairs_per_s else ""
    counts = f"{one.n_scored:,} of {one.n_pairs:,} pairs in `pair_score`, {one.n_new:,} new"
    return f"{one.benchmark}: {counts}{rejected}{rate}"
