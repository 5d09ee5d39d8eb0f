"""Waiting for scores that other processes compute."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from plumbline.eval_workers.chunks import chunked
from plumbline.eval_workers.score import Progress, Work, check_imported
from plumbline.eval_workers.score_rows import text_id
from plumbline.warehouse.storage.store import Store

if TYPE_CHECKING:
    from plumbline.eval_workers.options import ModelOptions

#: Seconds between two looks: a disk that many machines share is not asked more often.
_PERIOD_S = 2.0


def await_scores(
    store: Store,
    model: str,
    benchmarks: Sequence[str],
    options: ModelOptions,
    progress: Progress | None = None,
) -> None:
    """Return when every pair of the benchmarks has a row in ``pair_score`` or ``reject``.

    A rejection counts only for the sentences that the pair has now.
    Reads the model's configuration and tokenizer, not its weights, and computes and publishes
    nothing: that is left to ``plumbline score`` with these options, started anywhere before or
    after. Without one it waits for ever. Raises ``UsageProblem`` for a benchmark that is not in the
    warehouse, and what a model raises that can't be had.
    """
    names = list(dict.fromkeys(benchmarks))
    check_imported(store, names)
    from plumbline.eval_workers.backends import open_backend

    identity = open_backend(model, options).identity
    for name in names:
        work = Work(store, identity, name, options.per_token)
        while True:
            waiting, n_in_chunks, n_pairs = _look(work)
            if progress is not None:
                progress(name, n_pairs - waiting + n_in_chunks, n_pairs)
            if not waiting:
                break
            time.sleep(_PERIOD_S)


def _look(work: Work) -> tuple[int, int, int]:
    """Pairs with neither a score nor a rejection, those of them done in chunks, and all pairs."""
    state = work.state()
    subject = f"{work.identity.key}/{work.benchmark}"
    rejected = set(work.store.read("reject", stage="score", subject=subject)["text_id"].to_pylist())
    waiting = sum(text_id(pair) not in rejected for pair in state.missing)
    in_chunks = chunked(state.missing, work.directory()).n_pairs_done()
    return waiting, min(in_chunks, waiting), len(state.pairs)
