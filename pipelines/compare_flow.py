"""What `plumbline disclosure compare` does: both sides measured, then the page."""

from __future__ import annotations

from pathlib import Path

from plumbline.eval_workers import comparison
from plumbline.eval_workers.comparison import Side
from plumbline.eval_workers.disclosure.probes import import_probe
from plumbline.pipelines.compare_order import SHIPPED, Order
from plumbline.pipelines.report.compare import write_comparison
from plumbline.pipelines.stages import Stages
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.storage.store import Store


def prompts(order: Order, run_id: str) -> None:
    """The prompts that come with Plumbline, where they are wanted and not there."""
    store = _store(order)
    if SHIPPED in order.sets and not store.units("probe_prompt", probe_set=SHIPPED):
        import_probe(store, SHIPPED, None, run_id)


def disclosure(order: Order, side: Side, run_id: str) -> None:
    """Probabilities and continuations of the sets."""
    how = (order.asked.word_list, order.asked.gas_tokens)
    comparison.measure_disclosure(_store(order), side, order.sets, *how, run_id)


def benchmarks(order: Order, side: Side, run_id: str) -> None:
    """Scores of the benchmarks."""
    comparison.score_pairs(_store(order), side, order.benchmarks, run_id)


def fairpair(order: Order, side: Side, run_id: str) -> None:
    """FairPair of the set."""
    probe_set = order.asked.fairpair
    comparison.measure_fairpair(_store(order), side, probe_set, order.fairpair, run_id)


def perplexity(order: Order, side: Side, run_id: str) -> None:
    """Perplexity of the held-out text."""
    assert order.held_out is not None, "only asked for with a text"
    window = order.asked.window
    comparison.measure_text(_store(order), side, order.held_out, window, run_id)


def page(order: Order) -> Path:
    """The HTML page; returns its path."""
    return write_comparison(order)


def compare(order: Order, stages: Stages) -> Path:
    """Measure what is missing of both sides, and write the page."""
    with recorded(_store(order), "disclosure compare", order.config()) as run_id:
        stages.run("prompts", prompts, order, run_id)
        for side in order.sides:
            for wanted, what, work in (
                (order.sets, "disclosure", disclosure),
                (order.benchmarks, "benchmarks", benchmarks),
                (order.asked.fairpair, "FairPair", fairpair),
                (order.held_out, "perplexity", perplexity),
            ):
                if wanted:
                    stages.run(f"{side.name}: {what}", work, order, side, run_id)
        return stages.run("page", page, order)


def _store(order: Order) -> Store:
    return Store.open(order.warehouse)
