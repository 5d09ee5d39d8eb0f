"""Waiting for scores that other processes compute."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

from plumbline.eval_workers.scoring.pair_scores import PairScores
from plumbline.warehouse.errors import MissingComponent
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress

if TYPE_CHECKING:
    from plumbline.eval_workers.models.model_options import ModelOptions
    from plumbline.eval_workers.models.scoring_contract import Identity

#: Seconds between two looks, to spare a disk that many machines share.
_PERIOD_S = 2.0


def wait_for_scores(
    store: Store, model: str, benchmarks: Sequence[str], options: ModelOptions
) -> None:
    """Return when every pair of the benchmarks has a row in ``pair_score`` or ``reject``.

    The scores come from ``plumbline score`` with these options, started before or after this call,
    on any machine; without it this waits for ever. Its libraries may have other versions, and this
    machine may lack some. A rejection counts only while the pair's sentences are unchanged. Reads
    the model's configuration and tokenizer, not its weights. Raises ``UsageProblem`` for a
    benchmark that is not in the warehouse, and errors of opening the model.
    """
    steps = [PairScores.of(name, options) for name in dict.fromkeys(benchmarks)]
    for step in steps:
        step.check(store, options)
    expected = _identity(model, options)
    for step in steps:
        with progress(f"wait for {step.label}", step.unit) as update:
            while True:
                looks = [_look(store, i, step) for i in _same_but_versions(store, expected)]
                waiting, n_in_chunks, n_pairs = min(looks)
                update(n_pairs - waiting + n_in_chunks, n_pairs)
                if not waiting:
                    break
                time.sleep(_PERIOD_S)


def _identity(model: str, options: ModelOptions) -> Identity:
    """Identity of the model that will score, as far as this machine can determine it."""
    from plumbline.eval_workers.models import open_backend

    try:
        return open_backend(model, options).identity
    except MissingComponent:  # backends' identities differ in the backend's name and versions
        usual = replace(options, backend="transformers", device="auto", tensor_parallel=1)
        return replace(open_backend(model, usual).identity, backend=options.backend)


def _same_but_versions(store: Store, expected: Identity) -> list[Identity]:
    """``expected``, and identities in table ``model`` that differ from it by versions only."""
    identities = [expected]
    for row in store.read("model").select(list(asdict(expected))).to_pylist():
        identity = replace(expected, backend_version=row["backend_version"])
        if asdict(identity) == row and identity != expected:
            identities.append(identity)
    return identities


def _look(store: Store, identity: Identity, step: PairScores) -> tuple[int, int, int]:
    """Numbers of pairs: waiting for score or rejection; waiting in finished chunks; all pairs."""
    backend = SimpleNamespace(identity=identity)
    state = step.state(store, backend)
    rejects = store.read("reject", **step.reject_partition(backend))
    rejected = set(rejects["text_id"].to_pylist())
    waiting = sum(pair["text_id"] not in rejected for pair in state.missing)
    plan = step.plan(store, backend, state)
    in_chunks = plan.n_units - plan.n_left()
    return waiting, min(in_chunks, waiting), len(state.wanted)
