"""Score the pairs of benchmarks with a model: what is missing, in chunks that survive a kill.

A benchmark's missing texts are cut into chunks by their content alone. Each chunk's scores are kept
under ``_work`` as soon as they are there, and the rows are published together when all are:
running the same command again resumes, and ends with the rows of an undisturbed run. Any number
of workers may share them, started by the command or as commands of their own, on one machine or on
several that see one warehouse: each chunk is claimed by one.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.eval_workers.chunks import Chunks, chunked
from plumbline.eval_workers.score_rows import Row, score_rows, sentences, text_id
from plumbline.eval_workers.score_workers import Job, helpers
from plumbline.eval_workers.text_form import pair_in_form
from plumbline.eval_workers.token_rows import pairs_with_tokens, publish_tokens
from plumbline.warehouse.errors import UsageProblem, disk_problems
from plumbline.warehouse.storage.store import Store

if TYPE_CHECKING:
    from plumbline.eval_workers.backends.base import Backend, Identity, Model, TextScore, TextScorer
    from plumbline.eval_workers.options import ModelOptions

#: Called with the benchmark, its pairs done, and its pairs to do.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Scored:
    """Outcome for one benchmark: ``n_pairs = n_scored + n_rejected``.

    ``n_new`` of the scored pairs were published by this run: of several commands on one warehouse,
    the last one has them all. ``pairs_per_s`` is how fast pairs were done once the weights were
    loaded, by all workers together; ``None`` when there was nothing to do.
    """

    benchmark: str
    model: str
    model_key: str
    n_pairs: int
    n_scored: int
    n_new: int
    n_rejected: int
    pairs_per_s: float | None = None


def score_benchmarks(
    store: Store,
    model: str,
    benchmarks: Sequence[str],
    options: ModelOptions,
    run_id: str,
    progress: Progress | None = None,
    n_workers: int = 1,
    say: Callable[[str], None] = print,
) -> list[Scored]:
    """Score all pairs of the benchmarks that have no score under this model's identity.

    Writes ``model``, ``pair_score`` and ``reject`` (stage `score`), with ``options.per_token``
    also ``token_logprob``, for which pairs that have a score but no tokens are scored again. With
    ``n_workers`` above 1, further processes on this machine take a part of the chunks; ``say`` is
    told of one that died.

    Raises ``UsageProblem`` for a benchmark that is not in the warehouse, ``BadInput`` for a disk
    that can't be written or too little memory, and what loading the model raises.
    """
    names = list(dict.fromkeys(benchmarks))
    check_imported(store, names)
    from plumbline.eval_workers.backends import open_backend
    from plumbline.eval_workers.backends.devices import memory_problems

    backend = open_backend(model, options)
    works = [Work(store, backend.identity, name, options.per_token) for name in names]
    with disk_problems(store.root), memory_problems(model):
        plans = [work.plan() for work in works]
        for name, plan in zip(names, plans, strict=True):
            _tell(progress, name, plan)
        n_chunks = sum(len(plan.todo()) for plan in plans)
        job = Job.of(store.root, model, names, options)
        with helpers(job, min(n_workers, max(1, n_chunks)), say):
            return [score_benchmark(work, backend, run_id, progress) for work in works]


def check_imported(store: Store, benchmarks: Sequence[str]) -> None:
    """Raise ``UsageProblem`` for a benchmark of which the warehouse has no pairs."""
    for name in benchmarks:
        if not store.units("benchmark_pair", benchmark=name):
            fix = f"run `plumbline benchmark import {name}` first"
            if "," in name:
                fix = "give --benchmark once for each"
            raise UsageProblem(f"benchmark {name!r}", "is not in the warehouse", fix)


def help_score(store: Store, model: str, benchmarks: Sequence[str], options: ModelOptions) -> None:
    """Score chunks that another process asked for and will publish; return when there are none."""
    from plumbline.eval_workers.backends import open_backend

    backend = open_backend(model, options)
    for name in benchmarks:
        work = Work(store, backend.identity, name, options.per_token)
        if work.directory().is_dir():
            score_chunks(backend, work.plan(), name, None)


def score_benchmark(
    work: Work, backend: Backend, run_id: str, progress: Progress | None = None
) -> Scored:
    """Score one benchmark that is in the warehouse; see ``score_benchmarks``.

    A pair whose sentences changed is scored again and its old row goes. A pair of which a sentence
    can't be scored has no row in ``pair_score`` but one in ``reject``; it is tried again next time.
    """
    plan = work.plan()
    if plan.todo():
        _ = backend.n_parameters  # the weights, before the clock starts
    start, n_before = time.monotonic(), plan.n_pairs_done()
    while True:
        score_chunks(backend, plan, work.benchmark, progress)
        with plan.published_in_turn():
            state = work.state()
            scores = chunked(state.missing, plan.directory).results()
            if scores is not None:
                if progress is not None:  # the last chunks may have been a helper's
                    progress(work.benchmark, plan.n_pairs, plan.n_pairs)
                n_done, seconds = plan.n_pairs - n_before, time.monotonic() - start
                rate = n_done / seconds if n_done else None
                return _publish(work, backend, state, scores, run_id, rate)
        # A file was damaged, or another command has published meanwhile: on with what is left.
        plan = work.plan()


@dataclass(frozen=True)
class _State:
    """Pairs of a benchmark as scored, the rows of ``pair_score`` that hold, the pairs without."""

    pairs: list[Row]
    found: list[Row]
    kept: list[Row]
    missing: list[Row]


@dataclass(frozen=True)
class Work:
    """A benchmark to be scored under an identity; with ``per_token`` its tokens are kept too."""

    store: Store
    identity: Identity
    benchmark: str
    per_token: bool = False

    def directory(self, *, create: bool = False) -> Path:
        """Where the chunks are kept until they are published."""
        place = ("score", self.identity.key, self.benchmark)
        return self.store.work_directory(*place, create=create)

    def plan(self) -> Chunks:
        """What is to be scored, with the directory for it made."""
        return chunked(self.state().missing, self.directory(create=True))

    def state(self) -> _State:
        """What the warehouse has and lacks now."""
        key, form = self.identity.key, self.identity.text_form
        written = self.store.read("benchmark_pair", benchmark=self.benchmark).to_pylist()
        pairs = [pair_in_form(pair, form) for pair in written]
        wanted = {pair["pair_id"]: text_id(pair) for pair in pairs}
        found = self.store.read("pair_score", benchmark=self.benchmark, model_key=key).to_pylist()
        kept = [row for row in found if wanted.get(row["pair_id"]) == row["text_id"]]
        if self.per_token:
            have = pairs_with_tokens(self.store, key, self.benchmark)
            kept = [row for row in kept if (row["pair_id"], row["text_id"]) in have]
        done = {row["pair_id"] for row in kept}
        missing = [pair for pair in pairs if pair["pair_id"] not in done]
        return _State(pairs, found, kept, missing)


def _tell(progress: Progress | None, benchmark: str, plan: Chunks) -> None:
    if progress is not None:
        progress(benchmark, plan.n_pairs_done(), plan.n_pairs)


def _publish(
    work: Work,
    backend: Backend,
    state: _State,
    scores: dict[str, TextScore],
    run_id: str,
    rate: float | None,
) -> Scored:
    """Publish the rows of all chunks, and forget these."""
    store, key, benchmark = work.store, work.identity.key, work.benchmark
    identity = {"model_key": key, "model": work.identity.model, "run_id": run_id}
    new, rejects = score_rows(state.missing, scores, identity)
    if state.missing:
        publish_model(store, backend, run_id)
    if new or len(state.kept) < len(state.found):
        # Tokens first: without its row of `pair_score` a pair is scored again.
        tokens = sentences(state.missing, new, scores) if work.per_token else {}
        publish_tokens(store, backend, benchmark, state.kept, tokens, run_id)
        rows = sorted([*state.kept, *new], key=lambda row: str(row["pair_id"]))
        partition = {"benchmark": benchmark, "model_key": key}
        store.replace("pair_score", rows, partition, run_id)
    subject = f"{key}/{benchmark}"
    store.replace("reject", rejects, {"stage": "score", "subject": subject}, run_id)
    # Gone already when another command has published meanwhile.
    shutil.rmtree(work.directory(), ignore_errors=True)
    n_scored = len(state.kept) + len(new)
    n_pairs, model = len(state.pairs), work.identity.model
    return Scored(benchmark, model, key, n_pairs, n_scored, len(new), len(rejects), rate)


def score_chunks(
    backend: TextScorer, plan: Chunks, benchmark: str, progress: Progress | None
) -> None:
    """Score the chunks that nobody else does, and tell how far all are."""
    plan.work(backend.score, lambda: _tell(progress, benchmark, plan))


def publish_model(store: Store, backend: Model, run_id: str) -> None:
    """Record the identity, unless an earlier run did."""
    key = backend.identity.key
    if key in store.units("model"):
        return
    row = {"model_key": key, **asdict(backend.identity), "run_id": run_id}
    row["n_parameters"] = backend.n_parameters
    store.publish("model", [row], unit=key, run_id=run_id)
