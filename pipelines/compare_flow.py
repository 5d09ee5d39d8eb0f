"""What `plumbline disclosure compare` does: both sides measured, then the page."""

from __future__ import annotations

from pathlib import Path

from plumbline.eval_workers.disclosure.measure import measure_sets
from plumbline.eval_workers.disclosure.probes import import_probe
from plumbline.eval_workers.fairpair import steps
from plumbline.eval_workers.fairpair.spec import Target
from plumbline.eval_workers.scoring.pair_scores import score_benchmarks
from plumbline.eval_workers.scoring.perplexity import Perplexity
from plumbline.eval_workers.work.runner import run_steps
from plumbline.pipelines.compare_order import SHIPPED, Order, Side
from plumbline.pipelines.report.comparison.page import write_comparison
from plumbline.pipelines.stages import Stages
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.storage.store import Store


def prompts(order: Order, run_id: str) -> None:
    """The prompts that come with Plumbline, where they are wanted and not there."""
    store = _store(order)
    if SHIPPED in order.sets and not store.units("probe_prompt", probe_set=SHIPPED):
        import_probe(store, SHIPPED, None, run_id)


def disclosure(order: Order, side: Side, run_id: str) -> None:
    """Probabilities of gendered words, and greedy continuations, after the prompts of the sets."""
    measure_sets(
        *(_store(order), order.sets, side.model, side.options, run_id),
        word_list=order.asked.word_list,
        max_new_tokens=order.asked.gas_tokens,
    )


def benchmarks(order: Order, side: Side, run_id: str) -> None:
    """Scores of the pairs of the benchmarks."""
    score_benchmarks(_store(order), side.model, order.benchmarks, side.options, run_id)


def fairpair(order: Order, side: Side, run_id: str) -> None:
    """FairPair of the set, by all scoring functions that know its language."""
    store, spec, probe_set = _store(order), order.fairpair, order.asked.fairpair
    rows = steps.prompt_rows(store, probe_set, spec)
    steps.write_prompts(store, probe_set, rows, run_id)
    drawn = steps.draw(store, probe_set, Target(side.model, side.options), spec, run_id)
    keys = (drawn.probe_set, drawn.model_key, drawn.sampling_key)
    sampled = steps.perturb(store, *keys, spec, run_id)
    for phi in steps.scoring_functions(spec, rows):
        steps.score(store, sampled, phi, spec, run_id)


def perplexity(order: Order, side: Side, run_id: str) -> None:
    """Perplexity of the held-out documents."""
    assert order.held_out is not None, "only asked for with a text"
    step = Perplexity(order.held_out, order.asked.window)
    run_steps(_store(order), side.model, side.options, [step], run_id)


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
