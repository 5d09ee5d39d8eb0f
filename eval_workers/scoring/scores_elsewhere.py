"""Waiting for scores that other processes compute."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from plumbline.eval_workers.scoring.pair_scores import PairScores
from plumbline.eval_workers.work.runner import plan_of, subject
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress

if TYPE_CHECKING:
    from plumbline.eval_workers.backends.base import Backend
    from plumbline.eval_workers.options import ModelOptions

#: Seconds between two looks: a disk that many machines share is not asked more often.
_PERIOD_S = 2.0


def wait_for_scores(
    store: Store, model: str, benchmarks: Sequence[str], options: ModelOptions
) -> None:
    """Return when every pair of the benchmarks has a row in ``pair_score`` or ``reject``.

    A rejection counts only for the sentences that the pair has now.
    Reads the model's configuration and tokenizer, not its weights, and computes and publishes
    nothing: that is left to ``plumbline score`` with these options, started anywhere before or
    after. Without one it waits for ever. Raises ``UsageProblem`` for a benchmark that is not in the
    warehouse, and what a model raises that can't be had.
    """
    steps = [PairScores(name, options.per_token) for name in dict.fromkeys(benchmarks)]
    for step in steps:
        step.check(store, options)
    from plumbline.eval_workers.backends import open_backend

    backend = open_backend(model, options)
    for step in steps:
        with progress(f"wait for {step.label}", step.unit) as update:
            while True:
                waiting, n_in_chunks, n_pairs = _look(store, backend, step)
                update(n_pairs - waiting + n_in_chunks, n_pairs)
                if not waiting:
                    break
                time.sleep(_PERIOD_S)


def _look(store: Store, backend: Backend, step: PairScores) -> tuple[int, int, int]:
    """Pairs with neither a score nor a rejection, those of them done in chunks, and all pairs."""
    state = step.state(store, backend)
    where = {"stage": step.stage, "subject": subject(step, backend.identity)}
    rejected = set(store.read("reject", **where)["text_id"].to_pylist())
    waiting = sum(pair["text_id"] not in rejected for pair in state.missing)
    plan = plan_of(store, backend, step, state)
    in_chunks = plan.n_units - plan.n_left()
    return waiting, min(in_chunks, waiting), len(state.wanted)
