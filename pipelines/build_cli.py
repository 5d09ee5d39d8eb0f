"""The command ``plumbline benchmark build``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plumbline.eval_workers.option import DEFAULT_WAREHOUSE, Warehouse
from plumbline.pipelines import offline as prefect_environment
from plumbline.warehouse.storage.paths import segment
from plumbline.warehouse.text.output import say


def build(
    name: Annotated[str, typer.Argument(help="Name of the benchmark.")],
    config: Annotated[
        Path | None, typer.Option(help="TOML file with any of the keys of docs/generation.md.")
    ] = None,
    corpus: Annotated[str | None, typer.Option(help="Corpus whose seed words are used.")] = None,
    n_words: Annotated[
        int | None, typer.Option(help="The first so many seed words of the sample.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the sample of words.")] = None,
    model: Annotated[str | None, typer.Option(help="Model, as the server names it.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Address of the server.")] = None,
    sentences: Annotated[
        int | None, typer.Option(help="Sentences for each word and pronoun.")
    ] = None,
    max_words: Annotated[int | None, typer.Option(help="Most words of a sentence.")] = None,
    prices: Annotated[str | None, typer.Option(help="Price table (TOML).")] = None,
    prompts: Annotated[str | None, typer.Option(help="Wordings of your own (TOML).")] = None,
    max_requests: Annotated[int | None, typer.Option(help="Most requests.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Most tokens.")] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="Most money, in the price table's currency.")
    ] = None,
    concurrency: Annotated[int | None, typer.Option(help="Requests at a time.")] = None,
    judge: Annotated[
        bool | None, typer.Option("--judge/--no-judge", help="Have both sides of pairs judged.")
    ] = None,
    naturalness_model: Annotated[
        str | None, typer.Option(help="Model for a second opinion: hub id or directory.")
    ] = None,
    max_difference: Annotated[
        float | None, typer.Option(help="Most nats per token its natural pairs' sides differ by.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would take; ask and write nothing.")
    ] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="Take all replies from the ledger, ask nothing.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Write sentences of fixed frames, ask nothing.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Directory of the card; default: out/cards/NAME.")
    ] = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Build a benchmark from seed words: a chat model writes and judges its sentences.

    The key comes from PLUMBLINE_API_KEY or OPENAI_API_KEY. What was asked is never asked again:
    after an interruption run the same command again to resume.

    Example: plumbline benchmark build demo --corpus novels --model gpt-4o-mini --dry-run
    """
    from plumbline.eval_workers.generation.spec import load
    from plumbline.pipelines.order import Order, after, before, check_key, checked_order, held
    from plumbline.warehouse.storage.store import Store

    given: dict[str, object] = {"corpus": corpus, "n_words": n_words, "seed": seed, "model": model}
    given |= {"base_url": base_url, "n_sentences": sentences, "max_words": max_words}
    given |= {"prices": prices, "prompts": prompts, "max_requests": max_requests}
    given |= {"max_tokens": max_tokens, "max_cost": max_cost, "concurrency": concurrency}
    given |= {"judge": judge, "naturalness_model": naturalness_model}
    given |= {"max_difference_nats_per_token": max_difference}
    spec = load(config, given)
    directory = out or Path("out/cards") / segment(name)
    order = Order(name, spec, warehouse, directory, replay=replay, offline=offline)
    words = checked_order(order)
    if dry_run:
        for line in before(order, words, held(warehouse)):
            say(line)
        say("Nothing was asked or written. Next: the same command without --dry-run")
        return
    check_key(order)
    store = Store.open(warehouse)
    prefect_environment.prepare(warehouse.parent)
    from plumbline.pipelines import benchmark_flow

    built = benchmark_flow.run(order)
    for line in after(order, built, store):
        say(line)
