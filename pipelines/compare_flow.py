"""The Prefect flow of `plumbline disclosure compare`: both sides measured, then the page."""

from __future__ import annotations

from pathlib import Path

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from plumbline.eval_workers import comparison
from plumbline.eval_workers.comparison import Side
from plumbline.eval_workers.disclosure.probes import import_probe
from plumbline.pipelines.compare_order import SHIPPED, Order
from plumbline.pipelines.report.compare import write_comparison
from plumbline.pipelines.stages import Stages, run_flow, sigterm_interrupts
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.storage.store import Store


@task(task_run_name="prompts", cache_policy=NO_CACHE)
def prompts(order: Order, run_id: str) -> None:
    """The prompts that come with Plumbline, where they are wanted and not there."""
    store = _store(order)
    if SHIPPED in order.sets and not store.units("probe_prompt", probe_set=SHIPPED):
        import_probe(store, SHIPPED, None, run_id)


@task(task_run_name="disclosure of {side.name}", cache_policy=NO_CACHE)
def disclosure(order: Order, side: Side, run_id: str) -> None:
    """Probabilities and continuations of the sets."""
    how = (order.asked.word_list, order.asked.gas_tokens)
    comparison.measure_disclosure(_store(order), side, order.sets, *how, run_id)


@task(task_run_name="benchmarks of {side.name}", cache_policy=NO_CACHE)
def benchmarks(order: Order, side: Side, run_id: str) -> None:
    """Scores of the benchmarks."""
    comparison.score_pairs(_store(order), side, order.benchmarks, run_id)


@task(task_run_name="FairPair of {side.name}", cache_policy=NO_CACHE)
def fairpair(order: Order, side: Side, run_id: str) -> None:
    """FairPair of the set."""
    probe_set = order.asked.fairpair
    comparison.measure_fairpair(_store(order), side, probe_set, order.fairpair, run_id)


@task(task_run_name="perplexity of {side.name}", cache_policy=NO_CACHE)
def perplexity(order: Order, side: Side, run_id: str) -> None:
    """Perplexity of the held-out text."""
    assert order.held_out is not None, "only asked for with a text"
    window = order.asked.window
    comparison.measure_text(_store(order), side, order.held_out, window, run_id)


@task(task_run_name="page", cache_policy=NO_CACHE)
def page(order: Order) -> Path:
    """The HTML page; returns its path."""
    return write_comparison(order)


@flow(name="compare", flow_run_name="compare {order.after.adapter}")
def compare(order: Order) -> Path:
    """Measure what is missing of both sides, and write the page."""
    sigterm_interrupts()
    stages = Stages()
    with recorded(_store(order), "disclosure compare", order.config()) as run_id:
        prompts(order, run_id)
        for side in order.sides:
            for wanted, what, work in (
                (order.sets, "disclosure", disclosure),
                (order.benchmarks, "benchmarks", benchmarks),
                (order.asked.fairpair, "FairPair", fairpair),
                (order.held_out, "perplexity", perplexity),
            ):
                if wanted:
                    with stages.stage(f"{side.name}: {what}"):
                        work(order, side, run_id)
        with stages.stage("page"):
            return page(order)


def _store(order: Order) -> Store:
    return Store.open(order.warehouse)


def run(order: Order) -> Path:
    """Run the flow; an interrupt is one line, like every error."""
    return run_flow(compare, order)
