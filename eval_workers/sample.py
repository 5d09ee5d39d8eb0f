"""Continue the prompts of a set with a model: what is missing, in chunks that survive a kill.

The missing samples are cut into chunks by what they are alone. Each chunk is kept under ``_work``
as soon as it is drawn, and the rows are published together when all are: running the
same command again resumes, and ends with the rows of an undisturbed run. Several commands on one
warehouse share the chunks: each is claimed by one. With more samples than before only the further
ones are drawn.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.eval_workers.backends.sampling import Continuer, Draw, Sample, SamplingOptions
from plumbline.eval_workers.instruction import publish_instruction
from plumbline.eval_workers.sample_chunks import DrawChunks, draw_chunks
from plumbline.eval_workers.sample_rows import (
    Row,
    Sampled,
    Wanted,
    outcome,
    reject_subject,
    sample_rows,
    wanted,
)
from plumbline.eval_workers.score import publish_model
from plumbline.warehouse.errors import disk_problems
from plumbline.warehouse.storage.store import Store

if TYPE_CHECKING:
    from plumbline.eval_workers.options import ModelOptions

#: Called with the samples done, those to do, and how many a second this run draws, once it has.
Progress = Callable[[int, int, "float | None"], None]


def sample_set(
    store: Store,
    probe_set: str,
    model: str,
    options: ModelOptions,
    sampling: SamplingOptions,
    n: int,
    run_id: str,
    progress: Progress | None = None,
) -> Sampled:
    """Draw the samples of a set's prompts that have no row yet: ``n`` of each side in the end.

    Reads ``probe_prompt``; writes ``continuation``, ``sampling``, ``model`` and ``reject`` (stage
    `sample`). A prompt that changed is continued anew and its old rows go; rows beyond ``n`` stay.
    A prompt that can't be continued has a row in ``reject``, and is tried again next time.

    Raises ``UsageProblem`` for a set that is not in the warehouse or an ``n`` that can't be drawn,
    ``BadInput`` for a disk that can't be written or too little memory, and what loading the model
    raises.
    """
    from plumbline.eval_workers.backends import open_backend
    from plumbline.eval_workers.backends.devices import memory_problems

    backend = open_backend(model, options)
    with disk_problems(store.root), memory_problems(model):
        return sample_opened(store, backend, probe_set, sampling, n, run_id, progress)


def sample_opened(
    store: Store,
    backend: Continuer,
    probe_set: str,
    sampling: SamplingOptions,
    n: int,
    run_id: str,
    progress: Progress | None = None,
) -> Sampled:
    """``sample_set`` with a model that is open already; a full disk or memory raises as it is."""
    lead = backend.lead(sampling.asked)
    return _sample(_Work(store, backend, probe_set, sampling, n, lead), run_id, progress)


@dataclass(frozen=True)
class _Work:
    """A set that is to be continued by a model, with what goes before each prompt."""

    store: Store
    backend: Continuer
    probe_set: str
    sampling: SamplingOptions
    n: int
    lead: str

    @property
    def identity(self) -> Row:
        """The columns that all its rows share."""
        return {
            "probe_set": self.probe_set,
            "model_key": self.backend.identity.key,
            "model": self.backend.identity.model,
            "sampling_key": self.sampling.key,
        }

    def directory(self, *, create: bool = False) -> Path:
        """Where the chunks are kept until they are published."""
        place = ("sample", self.backend.identity.key, self.probe_set, self.sampling.key)
        return self.store.work_directory(*place, create=create)

    def state(self) -> Wanted:
        """What the warehouse has and lacks now."""
        key = self.backend.identity.key
        return wanted(self.store, self.probe_set, key, self.sampling, self.n, self.lead)

    def draw(self, draws: Sequence[Draw]) -> Sequence[Sample]:
        """Ask the model."""
        return self.backend.continue_(draws, self.sampling)

    def plan(self) -> DrawChunks:
        """What is to be drawn, with the directory for it made."""
        missing = self.state().missing
        return draw_chunks(missing, self.directory(create=True))


def _sample(work: _Work, run_id: str, progress: Progress | None) -> Sampled:
    plan = work.plan()
    if plan.todo():
        _ = work.backend.n_parameters  # the weights, before the clock starts
    clock = _Clock(plan, progress)
    clock.tell(plan)
    while True:
        plan.work(work.draw, partial(clock.tell, plan))
        with plan.published_in_turn():
            state = work.state()
            samples = draw_chunks(state.missing, plan.directory).results()
            if samples is not None:
                done = _publish(work, state, samples, run_id, clock.rate(plan.n_draws))
                shutil.rmtree(work.directory(), ignore_errors=True)
                return done
        # A file was damaged, or another command has published meanwhile: on with what is left.
        plan = work.plan()


class _Clock:
    """How fast samples are drawn, and who is told."""

    def __init__(self, plan: DrawChunks, progress: Progress | None) -> None:
        self._start, self._n_before = time.monotonic(), plan.n_done()
        self._progress = progress

    def rate(self, n_done: int) -> float | None:
        """Samples a second since the start; ``None`` before the first."""
        n_new = n_done - self._n_before
        return n_new / (time.monotonic() - self._start) if n_new > 0 else None

    def tell(self, plan: DrawChunks) -> None:
        """Tell how far it is."""
        if self._progress is not None:
            self._progress(n_done := plan.n_done(), plan.n_draws, self.rate(n_done))


def _publish(
    work: _Work,
    state: Wanted,
    samples: Mapping[Draw, Sample],
    run_id: str,
    rate: float | None,
) -> Sampled:
    new, rejects = sample_rows(state, samples, work.identity, run_id)
    if state.missing:
        publish_model(work.store, work.backend, run_id)
    publish_rows(work.store, state, new, rejects, work.identity, work.sampling, run_id)
    return outcome(state, new, work.identity, rate)


def publish_rows(
    store: Store,
    state: Wanted,
    new: list[Row],
    rejects: list[Row],
    identity: Mapping[str, str],
    sampling: SamplingOptions,
    run_id: str,
) -> None:
    """Publish new rows beside those that hold, the way to decode, and what was rejected."""
    if new and sampling.key not in store.units("sampling"):
        publish_instruction(store, sampling.asked, run_id)
        row = {"sampling_key": sampling.key, **sampling.row(), "run_id": run_id}
        store.publish("sampling", [row], unit=sampling.key, run_id=run_id)
    if new or len(state.kept) < len(state.found):
        rows = sorted([*state.kept, *new], key=lambda r: (r["prompt_id"], r["side"], r["sample"]))
        partition = {name: identity[name] for name in ("probe_set", "model_key", "sampling_key")}
        store.replace("continuation", rows, partition, run_id)
    partition = {"stage": "sample", "subject": reject_subject(identity)}
    store.replace("reject", rejects, partition, run_id)
