"""Building a benchmark: from seed words to judged pairs with MaxPMI, and a card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from plumbline.eval_workers.chat.bar import asking_bar
from plumbline.eval_workers.chat.session import Build
from plumbline.eval_workers.generation import build as steps
from plumbline.eval_workers.generation import opinion as second
from plumbline.eval_workers.generation.build import write_sentences
from plumbline.eval_workers.generation.card import Constraint, Written, write_card
from plumbline.eval_workers.generation.pairing import Paired
from plumbline.eval_workers.generation.write import Progress
from plumbline.pipelines.order import Built, Order, facts
from plumbline.pipelines.stages import Stages
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.storage.store import Store

Row = dict[str, Any]


def seed_words(order: Order) -> tuple[str, ...]:
    """The seed words of the corpus's sample, or those of the configuration."""
    return steps.seed_words(_store(order), order.spec)


def write(order: Order, run_id: str, words: Sequence[str]) -> list[Progress]:
    """Sentences for each word, by the model or the ledger."""
    with _build(order, run_id, "words") as build:
        return write_sentences(build, words, order.spec.writing())


def pair(order: Order, run_id: str, written: list[Progress]) -> Paired:
    """Each sentence with its counterpart of the other gender."""
    with _build(order, run_id, "conversions") as build:
        return steps.pair_sentences(build, written, order.spec)


def judge(order: Order, run_id: str, found: Paired) -> list[Row]:
    """Whether both sides of each pair read naturally."""
    with _build(order, run_id, "pairs") as build:
        return steps.judge(build, found.pairs, order.spec)


def publish(order: Order, run_id: str, pairs: Sequence[Row], taken: Sequence[str]) -> None:
    """The pairs as rows of `benchmark_pair`."""
    steps.publish(Build(_store(order), order.name, run_id, None), pairs, taken)


def opinion(order: Order, run_id: str) -> second.Opinion:
    """Scores of the pairs, and those marked whose sides differ too much in them."""
    spec, build = order.spec, Build(_store(order), order.name, run_id, None)
    limit = spec.max_difference_nats_per_token
    return second.second_opinion(build, spec.naturalness_model, limit)


def constrain(order: Order) -> None:
    """MaxPMI of every pair against the corpus."""
    from plumbline.jobs.association.max_pmi import constrain as constrain_benchmark

    spec = order.spec
    constrain_benchmark(_store(order), spec.corpus, order.name, spec.contrast)


def card(order: Order, counts: steps.Counts, found: second.Opinion | None) -> Written:
    """The dataset card, with the pairs as Parquet and JSON lines."""
    made, spec = facts(order, counts, found), order.spec
    within = Constraint(spec.corpus, spec.contrast, spec.eta) if spec.corpus else None
    return write_card(_store(order), order.name, order.out, made=made, constraint=within)


def benchmark(order: Order, stages: Stages) -> Built:
    """Build a benchmark from seed words."""
    with recorded(_store(order), "benchmark build", order.config()) as run_id:
        words = stages.run("seed words", seed_words, order)
        pairs, counts, taken = _pairs(order, run_id, words, stages)
        stages.run("publish", publish, order, run_id, pairs, taken)
        found = None
        if order.spec.naturalness_model:
            model = order.spec.naturalness_model
            found = stages.retried(f"opinion of {model}", opinion, order, run_id)
        if order.spec.corpus:
            stages.run(f"constrain by {order.spec.corpus}", constrain, order)
        exported = stages.run("card", card, order, counts, found)
    return Built(counts, exported, found)


def _pairs(
    order: Order, run_id: str, words: tuple[str, ...], stages: Stages
) -> tuple[list[Row], steps.Counts, list[str]]:
    """The pairs, their account, and the steps that were taken."""
    nothing = Paired((), ())
    if order.offline:
        offline = (_store(order), order.name, words, order.spec)
        rows = stages.run("write offline", steps.write_offline, *offline)
        return rows, steps.count(words, [], nothing, rows), []
    written = stages.run("write", write, order, run_id, words)
    found = stages.run("pair", pair, order, run_id, written)
    pairs, taken = list(found.pairs), ["write", "pair"]
    if order.spec.judge:
        pairs = stages.run("judge", judge, order, run_id, found)
        taken.append("judge")
    return pairs, steps.count(words, written, found, pairs), taken


@contextmanager
def _build(order: Order, run_id: str, kind: str) -> Iterator[Build]:
    spec = order.spec
    price, server = spec.price(), None if order.replay else spec.server()
    with asking_bar(kind, price.currency if price else None) as tell:
        yield Build(_store(order), order.name, run_id, server, spec.budget(), price, tell)


def _store(order: Order) -> Store:
    return Store.open(order.warehouse)
