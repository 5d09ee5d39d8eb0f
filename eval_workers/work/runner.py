"""Runs steps: plans, computes, publishes, and shows progress.

A step's missing items are cut into chunks by their content alone. A chunk's results are stored
under ``_work`` at once. When all chunks are computed, their rows are published together. So running
the same command again resumes, and ends with the rows of an undisturbed run. Any number of workers
may share the chunks, because one worker claims each chunk: helpers of one command or several
commands, on one machine or on several machines that see the same warehouse.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import asdict
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pyarrow.compute as pc

from plumbline.eval_workers.models.model_texts import described
from plumbline.eval_workers.work.claimed_chunks import ChunkPlan
from plumbline.eval_workers.work.helpers import Job, helpers
from plumbline.eval_workers.work.step import ComputedStep, Row, State, Step
from plumbline.warehouse.errors import BadInput, disk_problems
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress

if TYPE_CHECKING:
    from plumbline.eval_workers.models.model_options import ModelOptions
    from plumbline.eval_workers.models.scoring_contract import Identity, Model

Outcome = TypeVar("Outcome")
Function = TypeVar("Function", bound=Callable[..., Any])


def releases_memory(function: Function) -> Function:
    """Decorator: after the function returns, free the memory of the model that it opened.

    Until then the function's variables hold the model.
    """

    @wraps(function)
    def released(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        finally:
            _release()

    return cast(Function, released)


def _release() -> None:
    if "torch" in sys.modules:
        from plumbline.eval_workers.models.devices import release

        release()


#: The open model by its name and options; ``None`` outside ``one_model_kept``.
_kept: dict[tuple[str, ModelOptions], Any] | None = None


@contextmanager
def one_model_kept() -> Iterator[None]:
    """Within the block, keep the last opened model loaded for the next step that needs it."""
    global _kept
    _kept = {}
    try:
        yield
    finally:
        _kept = None
        _release()


class NothingUsed(BadInput):
    """The error for a finished step without rows: all its input was rejected.

    Attributes:
        outcomes: the outcomes of all steps of the run.
    """

    outcomes: Sequence[Any] = ()

    @classmethod
    def of(cls, step: Step[Any], done: ComputedStep) -> NothingUsed | None:
        """The error, with the commonest reason; ``None`` if the step has rows or no rejects."""
        reasons = [str(row["reason"]) for row in done.made.rejects]
        if done.state.kept or done.made.rows or not reasons:
            return None
        # A reason begins with its subject, up to a colon.
        ((commonest, n),) = Counter(r.partition(": ")[2] or r for r in reasons).most_common(1)
        count_text = "" if n == len(reasons) else f" ({n:,} times)"
        problem = f"could {step.verb} nothing of {step.label}: {commonest}{count_text}"
        fix = f"table `reject` has all {len(reasons):,} reasons"
        return cls(f"model {done.model.identity.model}", problem, fix)


@releases_memory
def run_steps(
    store: Store,
    model: str,
    options: ModelOptions,
    steps: Sequence[Step[Outcome]],
    run_id: str,
    *,
    n_workers: int = 1,
    say: Callable[[str], None] = print,
) -> list[Outcome]:
    """Run steps on a model that is loaded once, and only if something is missing.

    Publishes each step's rows, ``model`` and ``reject``. If ``n_workers`` exceeds 1, further
    processes on this machine compute a part of the chunks; ``say`` gets a line when one dies.

    Raises the errors of the steps' ``check`` and of loading the model, ``BadInput`` for a disk that
    can't be written or too little memory, and after all steps ``NothingUsed`` for a step without
    rows.
    """
    for step in steps:
        step.check(store, options)
    with opened(store, model, options) as backend:
        plans = _plans(store, backend, steps)
        n_chunks = sum(len(plan.todo()) for plan in plans)
        job = Job(str(store.root), model, options, tuple(steps))
        logs = store.work_directory("logs")
        with helpers(job, min(n_workers, max(1, n_chunks)), logs, say):
            try:
                return _run(store, backend, steps, plans, run_id)
            finally:
                _name_family(store, backend.identity, options.family, run_id)


@contextmanager
def opened(store: Store, model: str, options: ModelOptions) -> Iterator[Any]:
    """A model for several steps; a full disk or memory within the block raises ``BadInput``.

    Unless the model is open already, another open model and servers started here are closed first,
    to free their memory.
    """
    from plumbline.eval_workers.models import open_backend
    from plumbline.eval_workers.vllm import vllm_server

    kept = {} if _kept is None else _kept
    if (model, options) not in kept:
        vllm_server.stop()
        if kept:
            kept.clear()
            _release()
        kept[model, options] = open_backend(model, options)
    memory: AbstractContextManager[None] = nullcontext()
    with suppress(ModuleNotFoundError):  # the backend may need no torch
        from plumbline.eval_workers.models.devices import memory_problems

        memory = memory_problems(model)
    try:
        with disk_problems(store.root), memory:
            yield kept[model, options]
    except BaseException:
        kept.clear()  # the model itself may have failed
        raise


def run_opened(
    store: Store, backend: Model, steps: Sequence[Step[Outcome]], run_id: str
) -> list[Outcome]:
    """``run_steps`` on a model that is open already; inputs aren't checked again."""
    return _run(store, backend, steps, _plans(store, backend, steps), run_id)


def run_asked(store: Store, model: Any, step: Step[Outcome], run_id: str) -> ComputedStep:
    """Compute and publish a step whose replies are paid for and stored in a ledger at once.

    A later run resumes from the ledger, so chunks have no files. Raises the errors of
    ``step.compute``, and ``BadInput`` for a disk that can't be written.
    """
    state = step.state(store, model)
    items = [item for chunk in step.chunks(state.missing) for item in chunk.items]
    results = dict(zip(items, step.compute(model, items), strict=True)) if items else {}
    done = ComputedStep(store, model, state, results, step.made(model, state, results), run_id)
    with disk_problems(store.root):
        publish(step, done)
    return done


def plan_of(store: Store, backend: Model, step: Step[Any], state: State) -> ChunkPlan:
    """The chunks of the items that a state lacks; writes nothing."""
    directory = store.work_directory(*step.place(backend), create=False)
    return ChunkPlan.of(step.chunks(state.missing), directory, step.kind)


def _plans(store: Store, backend: Model, steps: Sequence[Step[Any]]) -> list[ChunkPlan]:
    for step in steps:
        step.check_measure(backend.identity)
    return [_plan(store, backend, step) for step in steps]


def _plan(store: Store, backend: Model, step: Step[Any]) -> ChunkPlan:
    """The chunks to compute now; makes their directory."""
    store.work_directory(*step.place(backend))
    return plan_of(store, backend, step, step.state(store, backend))


def _run(
    store: Store,
    backend: Model,
    steps: Sequence[Step[Outcome]],
    plans: Sequence[ChunkPlan],
    run_id: str,
) -> list[Outcome]:
    if not steps:
        return []
    units = {step.unit for step in steps}
    with progress(steps[0].verb, units.pop() if len(units) == 1 else "") as update:
        n_all, left = [plan.n_units for plan in plans], [plan.n_left() for plan in plans]
        outcomes: list[Outcome] = []
        unused: list[NothingUsed] = []
        for k, (step, plan) in enumerate(zip(steps, plans, strict=True)):

            def tell(n_left: int, k: int = k, step: Step[Outcome] = step) -> None:
                left[k] = n_left
                update(sum(n_all) - sum(left), sum(n_all), note=step.label)

            tell(left[k])
            done, rate = _run_one(store, backend, step, plan, run_id, tell)
            outcomes.append(step.outcome(done, rate))
            if error := NothingUsed.of(step, done):
                unused.append(error)
            tell(0)  # another worker may have computed the last chunks
    for error in unused:
        error.outcomes = outcomes
        raise error
    return outcomes


def _run_one(
    store: Store,
    backend: Model,
    step: Step[Outcome],
    plan: ChunkPlan,
    run_id: str,
    tell: Callable[[int], None],
) -> tuple[ComputedStep, float | None]:
    """The published step, and units computed per second; ``None`` if all existed before."""
    n_new = plan.n_left()
    if n_new:
        _ = backend.n_parameters  # loads the weights before the clock starts
    start = time.monotonic()
    while True:
        plan.work(partial(step.compute, backend), tell)
        with plan.published_in_turn():
            state = step.state(store, backend)
            results = plan_of(store, backend, step, state).results()
            if results is not None:
                rate = n_new / (time.monotonic() - start) if n_new else None
                try:
                    made = step.made(backend, state, results)
                except BadInput:  # no row at all: the chunks are useless
                    shutil.rmtree(plan.directory, ignore_errors=True)
                    raise
                done = ComputedStep(store, backend, state, results, made, run_id)
                publish(step, done)
                shutil.rmtree(plan.directory, ignore_errors=True)
                return done, rate
        # A file was damaged, or another command has published meanwhile: compute the rest.
        plan = _plan(store, backend, step)


def publish(step: Step[Any], done: ComputedStep) -> None:
    """Publish a step in one commit: new and still valid rows, rejects, rows of other tables."""
    store, state, made, run_id = done.store, done.state, done.made, done.run_id
    identity = done.model.identity
    partition = step.partition(identity)
    where = {"stage": step.stage, "subject": subject(step, identity)}
    rejects = [{**where, "run_id": run_id, **row} for row in made.rejects]
    with store.together(run_id, f"{step.stage} {where['subject']}"):
        if state.missing:
            publish_model(store, done.model, run_id)
        step.publish_before(done)
        if made.rows or len(state.kept) < len(state.found):
            shared = {**partition, "model": identity.model, "run_id": run_id}
            rows: list[Row] = [*state.kept, *({**shared, **row} for row in made.rows)]
            rows.sort(key=lambda row: tuple(row[name] for name in step.order))
            store.replace(step.table, rows, partition, run_id)
        store.replace("reject", rejects, where, run_id)


def subject(step: Step[Any], identity: Any) -> str:
    """The ``subject`` of a step's rows of ``reject``."""
    return "/".join(step.partition(identity).values())


def publish_model(store: Store, model: Model, run_id: str) -> None:
    """Record a model's identity, unless an earlier run did; see ``_published``."""
    key = model.identity.key
    if key not in store.units("model"):
        row = {"model_key": key, **asdict(model.identity), "run_id": run_id}
        row |= {"n_parameters": model.n_parameters, **_published(store, model.identity.model)}
        store.publish("model", [row], unit=key, run_id=run_id)


def _published(store: Store, name: str) -> dict[str, str | None]:
    """Family and training text of the published model of this name; none if trained here."""
    return {} if store.units("trained_model", model=name) else described(name)


def _name_family(store: Store, identity: Identity, family: str | None, run_id: str) -> None:
    """Record the family that the user named, also for a model that was scored before.

    Without one, a recorded model that has no family gets that of the published model.
    """
    for row in store.read("model", pc.field("model_key") == identity.key).to_pylist():
        published = _published(store, identity.model) if row["family"] is None else {}
        named = {**row, **published, **({"family": family} if family else {})}
        if named != row:
            store.publish("model", [named], unit=identity.key, run_id=run_id)
