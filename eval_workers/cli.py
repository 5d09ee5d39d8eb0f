"""Commands of this room: ``plumbline benchmark ...`` and ``plumbline score``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warehouse.errors import PlumblineError

if TYPE_CHECKING:
    from eval_workers.benchmarks import Imported
    from eval_workers.score import Progress
    from warehouse.store import Store

benchmark_app = typer.Typer(
    help="Sentence pairs: import released benchmarks, list and show them.",
    no_args_is_help=True,
)

Warehouse = Annotated[
    Path,
    typer.Option("--warehouse", envvar="PLUMBLINE_WAREHOUSE", help="Directory of the warehouse."),
]
DEFAULT_WAREHOUSE = Path("out/warehouse")


@benchmark_app.command("import")
def import_(
    names: Annotated[list[str], typer.Argument(help="Benchmarks, see `benchmark list`.")],
    source: Annotated[
        Path | None,
        typer.Option(help="Released file or directory; default: under PLUMBLINE_DATA."),
    ] = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Read benchmarks into the warehouse; rows that can't be used are kept in `reject`.

    Example: plumbline benchmark import winobias winogender use-5
    """
    from eval_workers.benchmarks import find
    from warehouse.runs import recorded
    from warehouse.store import Store

    for name in names:
        find(name)
    store = Store.open(warehouse)
    config = {"names": names, "source": str(source) if source else None}
    failed: PlumblineError | None = None
    with recorded(store, "benchmark import", config) as run_id:
        for name in dict.fromkeys(names):
            try:
                _report(_import(store, name, source, run_id))
            except PlumblineError as e:
                if failed is not None:
                    typer.echo(str(failed), err=True)
                failed = e
        if failed is not None:
            raise failed
    typer.echo(f"Next: plumbline score --model ID_OR_PATH --benchmark {names[0]}")


def _import(store: Store, name: str, source: Path | None, run_id: str) -> Imported:
    from eval_workers.benchmarks import import_benchmark

    return import_benchmark(store, name, source, run_id)


def _report(done: Imported) -> None:
    rejected = f", {done.n_rejects:,} rows rejected (table `reject`)" if done.n_rejects else ""
    typer.echo(f"{done.benchmark}: {done.n_pairs:,} pairs in `benchmark_pair`{rejected}")


@benchmark_app.command("list")
def list_(warehouse: Warehouse = DEFAULT_WAREHOUSE) -> None:
    """List what can be imported and what the warehouse holds.

    Example: plumbline benchmark list
    """
    from rich.console import Console
    from rich.table import Table

    from eval_workers.benchmarks import discover

    held = _held(warehouse)
    known = discover()
    table = Table("benchmark", "pairs", "natural", "what it is")
    for name in [*known, *sorted(set(held) - set(known))]:
        n_pairs, n_natural = held.get(name, ("-", "-"))
        table.add_row(name, n_pairs, n_natural, known.get(name, ""))
    Console().print(table)
    typer.echo("Next: plumbline benchmark import NAME, or plumbline benchmark show NAME")


def _held(warehouse: Path) -> dict[str, tuple[str, str]]:
    """Pairs and natural pairs (`-` without a verdict) of each benchmark in the warehouse."""
    from warehouse.connect import connect

    if not warehouse.exists():
        return {}
    rows = connect(warehouse).execute(
        "SELECT benchmark, count(*), count(is_natural), count(*) FILTER (is_natural) "
        "FROM benchmark_pair GROUP BY benchmark"
    )
    return {
        name: (f"{n_pairs:,}", f"{n_natural:,}" if n_judged else "-")
        for name, n_pairs, n_judged, n_natural in rows.fetchall()
    }


@benchmark_app.command()
def show(
    name: Annotated[str, typer.Argument(help="A benchmark in the warehouse.")],
    n: Annotated[int, typer.Option("--n", min=1, help="Pairs to show.")] = 5,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Show the first pairs of a benchmark, by identifier.

    Example: plumbline benchmark show winobias --n 3
    """
    from warehouse.connect import connect
    from warehouse.errors import UsageProblem

    rows = (
        connect(warehouse)
        .execute(
            "SELECT pair_id, template, sentence_f, sentence_m, word, is_natural "
            "FROM benchmark_pair WHERE benchmark = ? ORDER BY pair_id LIMIT ?",
            [name, n],
        )
        .fetchall()
    )
    if not rows:
        fix = f"run `plumbline benchmark import {name}`"
        raise UsageProblem(f"benchmark {name!r}", "is not in the warehouse", fix)
    for pair_id, template, sentence_f, sentence_m, word, is_natural in rows:
        about = f", word {word}" if word else ""
        verdict = ", judged unnatural" if is_natural is False else ""
        typer.echo(f"{pair_id}{about}{verdict}\n  {template}\n  F {sentence_f}\n  M {sentence_m}")
    typer.echo(f"Next: plumbline score --model ID_OR_PATH --benchmark {name}")


def score(
    model: Annotated[str, typer.Option(help="Hub id, or directory of a saved model.")],
    benchmark: Annotated[list[str], typer.Option(help="Benchmark; give it once for each.")],
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    revision: Annotated[str | None, typer.Option(help="Hub revision: branch, tag, commit.")] = None,
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16.")] = "float32",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    batch_tokens: Annotated[int, typer.Option(help="Tokens of one forward pass.")] = 2048,
    bos: Annotated[
        str | None, typer.Option(help="Context token, for a model that names none.")
    ] = None,
    backend: Annotated[str, typer.Option(help="transformers or vllm.")] = "transformers",
    tensor_parallel: Annotated[int, typer.Option(help="GPUs that share a model (vllm).")] = 1,
) -> None:
    """Log-probability of both sentences of every pair; only pairs without a score are computed.

    Stopped at any point, the same command goes on from there. Started several times on one
    warehouse, also on several machines, each process takes a part of the work.

    Example: plumbline score --model EleutherAI/pythia-70m --benchmark winobias --benchmark use-5
    """
    from eval_workers.backends.base import ModelOptions
    from eval_workers.score import score_benchmarks
    from warehouse.runs import recorded
    from warehouse.store import Store

    store = Store.open(warehouse, create=False)
    options = ModelOptions(revision, dtype, device, batch_tokens, bos, backend, tensor_parallel)
    config = {"model": model, "benchmarks": benchmark, **asdict(options)}
    with recorded(store, "score", config) as run_id, scoring_bar() as progress:
        done = score_benchmarks(store, model, benchmark, options, run_id, progress)
    for one in done:
        rejected = f", {one.n_rejected:,} rejected (table `reject`)" if one.n_rejected else ""
        counts = f"{one.n_scored:,} of {one.n_pairs:,} pairs in `pair_score`, {one.n_new:,} new"
        typer.echo(f"{one.benchmark}: {counts}{rejected}")
    typer.echo(f"Model {done[0].model}, key {done[0].model_key}")
    typer.echo("Next: plumbline measure")


@contextmanager
def scoring_bar() -> Iterator[Progress]:
    """A progress bar a benchmark, from the first sentence scored to the end of the block."""
    from rich import progress as rich
    from rich.console import Console

    text = rich.TextColumn("{task.description} sentences", markup=False)
    columns = (text, rich.BarColumn(), rich.MofNCompleteColumn(), rich.TimeRemainingColumn())
    bars = rich.Progress(*columns, console=Console(stderr=True))
    tasks: dict[str, rich.TaskID] = {}

    def advance(name: str, n_done: int, n_texts: int) -> None:
        bars.start()
        if name not in tasks:
            tasks[name] = bars.add_task(name)
        bars.update(tasks[name], completed=n_done, total=n_texts)

    try:
        yield advance
    finally:
        if tasks:
            bars.stop()
