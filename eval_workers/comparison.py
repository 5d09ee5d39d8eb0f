"""The steps that measure one side of a comparison: a base, or the same with an adapter.

Each is one call for a side, and computes only what the warehouse lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plumbline.eval_workers.scoring_bar import scoring_bar
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import Update, progress

if TYPE_CHECKING:
    from plumbline.eval_workers.fairpair.spec import FairPairSpec
    from plumbline.eval_workers.held_out import HeldOut
    from plumbline.eval_workers.options import ModelOptions
    from plumbline.eval_workers.score import Progress


@dataclass(frozen=True)
class Side:
    """One of the two: what it is called, and how its model is loaded."""

    name: str
    model: str
    options: ModelOptions


def measure_disclosure(
    store: Store,
    side: Side,
    sets: Sequence[str],
    word_list: str,
    max_new_tokens: int,
    run_id: str,
) -> None:
    """Probabilities of gendered words, and greedy continuations, after the prompts of some sets."""
    from plumbline.eval_workers.backends.devices import release
    from plumbline.eval_workers.disclosure.measure import measure_sets

    try:
        how = (side.model, side.options, run_id)
        measure_sets(store, sets, *how, word_list, max_new_tokens, progress)
    finally:
        release()


def score_pairs(store: Store, side: Side, benchmarks: Sequence[str], run_id: str) -> None:
    """Scores of the pairs of some benchmarks."""
    from plumbline.eval_workers.backends.devices import release
    from plumbline.eval_workers.score import score_benchmarks

    try:
        with scoring_bar() as progress:
            score_benchmarks(store, side.model, benchmarks, side.options, run_id, progress)
    finally:
        release()


def measure_fairpair(
    store: Store, side: Side, probe_set: str, spec: FairPairSpec, run_id: str
) -> None:
    """FairPair of a set, by all scoring functions that know its language."""
    from plumbline.eval_workers.fairpair import steps
    from plumbline.eval_workers.fairpair.spec import Target

    rows = steps.prompt_rows(store, probe_set, spec)
    steps.write_prompts(store, probe_set, rows, run_id)
    drawn = steps.draw(store, probe_set, Target(side.model, side.options), spec, run_id)
    whose = (drawn.probe_set, drawn.model_key, drawn.sampling_key)
    sampled = steps.perturb(store, *whose, spec, run_id)
    for phi in steps.scoring_functions(spec, rows):
        steps.score(store, sampled, phi, spec, run_id)


def measure_text(
    store: Store, side: Side, held_out: HeldOut, window_tokens: int | None, run_id: str
) -> None:
    """Perplexity of held-out documents."""
    from plumbline.eval_workers.backends.devices import release
    from plumbline.eval_workers.perplexity import measure_perplexity

    try:
        with progress(f"read {held_out.name}", "documents") as tell:
            how = (side.model, side.options, run_id, window_tokens, _unnamed(tell))
            measure_perplexity(store, held_out, *how)
    finally:
        release()


def _unnamed(tell: Update) -> Progress:
    """A bar's function for steps that also say what they are at."""
    return lambda _, n_done, n_all: tell(n_done, n_all)
