"""Commands that make a corpus or a model: ``plumbline demo write`` and ``plumbline train``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plumbline.eval_workers.option import DEFAULT_WAREHOUSE, Warehouse
from plumbline.warehouse.text.output import say

if TYPE_CHECKING:
    from plumbline.eval_workers.closed_world.writer import WorldOptions, WrittenWorld
    from plumbline.eval_workers.training import Progress
    from plumbline.warehouse.storage.store import Store


def write_demo(
    out: Annotated[Path, typer.Option(help="Directory of the shards.")] = Path("out/corpora"),
    tokens: Annotated[int, typer.Option(min=1, help="Words to write.")] = 3_000_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of leans and text.")] = 0,
    world: Annotated[
        str,
        typer.Option(help="straight, swapped: she and he exchanged, or mixed: in half of it."),
    ] = "straight",
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Write Pile-format shards in which each word's lean towards she or he is planted.

    The leans go to table `planted_word`. The same options write the same documents.

    Example: plumbline demo write --out out/corpora --world swapped
    """
    from plumbline.eval_workers.closed_world.writer import WorldOptions
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.storage.store import Store

    options = WorldOptions(n_tokens=tokens, seed=seed, world=world)
    store = Store.open(warehouse)
    with recorded(store, "demo write", asdict(options)) as run_id:
        written = write_recorded_world(store, options, out, run_id)
    state = "was there already" if written.reused else "written"
    say(f"{options.name}: {written.n_tokens:,} words in {written.n_documents:,} documents, {state}")
    for shard in written.shards:
        say(f"  {shard}")
    say("  planted leans in `planted_word`")
    pattern = out / f"{options.name}-*.jsonl.zst"
    say(f"Next: plumbline corpus count '{pattern}' --corpus {options.name}")


def write_recorded_world(
    store: Store, options: WorldOptions, out: Path, run_id: str
) -> WrittenWorld:
    """Write a world's shards into ``out`` and its planted leans into ``planted_word``.

    Shards that are whole already are left alone.
    """
    from plumbline.eval_workers.closed_world.truth import planted_rows
    from plumbline.eval_workers.closed_world.writer import write_world

    written = write_world(options, out)
    rows = planted_rows(options.name, options.seed, options.world)
    store.replace("planted_word", rows, {"corpus": options.name}, run_id)
    return written


def train(
    shards: Annotated[list[str], typer.Argument(help="Shards: files or quoted globs.")],
    name: Annotated[str, typer.Option(help="Name of the model.")],
    corpus: Annotated[str, typer.Option(help="Name of the corpus in the warehouse.")],
    out: Annotated[Path, typer.Option(help="Directory of trained models.")] = Path("models"),
    preset: Annotated[str, typer.Option(help="small, or closed for the closed world.")] = "small",
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Limit on the tokens seen; default: the preset's.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights and order.")] = 0,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Train a small GPT-NeoX on a corpus, on CPU in minutes, to see what it takes up from the text.

    After an interruption run the same command again to resume from the last checkpoint; a finished
    run is not repeated.

    Example: plumbline train 'novels/*.jsonl.zst' --name small-novels --corpus novels
    """
    from plumbline.eval_workers import training
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.shards import expand_shards
    from plumbline.warehouse.storage.store import Store

    options = training.preset(preset, seed, max_tokens)
    paths = expand_shards(shards)
    store = Store.open(warehouse)
    config = {"name": name, "corpus": corpus, "shards": list(map(str, paths)), **asdict(options)}
    with recorded(store, "train", config) as run_id, training_bar(name) as progress:
        trained = training.train_model(paths, name, corpus, options, out, progress)
        training.record_model(store, trained, run_id)
    state = "was there already" if trained.reused else f"trained in {trained.seconds:.0f} s"
    say(
        f"{name}: {trained.n_parameters:,} parameters, {trained.n_tokens:,} tokens, loss "
        f"{trained.loss_start_nats:.2f} -> {trained.loss_end_nats:.2f} nats per token, {state}"
    )
    say(f"  {trained.path}, `trained_model`")
    say(f"Next: plumbline score --model {trained.path} --benchmark NAME")


@contextmanager
def training_bar(name: str) -> Iterator[Progress]:
    """Progress with the loss, for the length of the block."""
    from plumbline.warehouse.text.progress import progress

    with progress(f"train {name}", "steps") as update:
        yield lambda step, n_steps, loss: update(step, n_steps, note=f"loss {loss:.3f}")
