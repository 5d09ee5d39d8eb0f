"""The command ``plumbline score``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from eval_workers.cli import DEFAULT_WAREHOUSE, Warehouse

if TYPE_CHECKING:
    from eval_workers.score import Progress


def score(
    model: Annotated[str, typer.Option(help="Hub id, or directory of a saved model.")],
    benchmark: Annotated[list[str], typer.Option(help="Benchmark; give it once for each.")],
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    revision: Annotated[str | None, typer.Option(help="Hub revision: branch, tag, commit.")] = None,
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16.")] = "float32",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    batch_tokens: Annotated[
        int | None, typer.Option(help="Tokens of one forward pass; default: by the device.")
    ] = None,
    bos: Annotated[
        str | None, typer.Option(help="Context token, for a model that names none.")
    ] = None,
    adapter: Annotated[
        str | None, typer.Option(help="PEFT adapter for the model: hub id or directory.")
    ] = None,
    quantisation: Annotated[
        str | None, typer.Option(help="int8 or nf4, done while loading (bitsandbytes).")
    ] = None,
    trust_remote_code: Annotated[
        str | None,
        typer.Option(help="The model's name once more: run the Python code that comes with it."),
    ] = None,
    text_form: Annotated[
        str, typer.Option(help="written, or released: as the released scores had the sentences.")
    ] = "written",
    per_token: Annotated[
        bool, typer.Option("--per-token", help="Keep every token's log-probability.")
    ] = False,
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
    options = ModelOptions(
        *(revision, dtype, device, batch_tokens, bos),
        adapter=adapter,
        quantisation=quantisation,
        trust_remote_code=trust_remote_code,
        text_form=text_form,
        per_token=per_token,
    )
    config = {"model": model, "benchmarks": benchmark, **asdict(options)}
    with recorded(store, "score", config) as run_id, scoring_bar() as progress:
        done = score_benchmarks(store, model, benchmark, options, run_id, progress)
    for one in done:
        rejected = f", {one.n_rejected:,} rejected (table `reject`)" if one.n_rejected else ""
        counts = f"{one.n_scored:,} of {one.n_pairs:,} pairs in `pair_score`, {one.n_new:,} new"
        typer.echo(f"{one.benchmark}: {counts}{rejected}")
    form = ", released text form" if text_form == "released" else ""
    typer.echo(f"Model {done[0].model}, key {done[0].model_key}{form}")
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
