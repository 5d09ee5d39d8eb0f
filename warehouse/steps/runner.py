"""Run resumable steps: compute the missing items, publish the rows, and show progress.

A step's missing items are divided into chunks, in a way that depends only on the items. The results
of a chunk are stored under ``_work`` as soon as they are computed. When all chunks are computed,
their rows are published together. If a command was stopped, the user can run it again. It then
resumes, and writes the same rows as a command that was not stopped.

Several commands, on one or several machines, can share the chunks of a step.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from plumbline.warehouse.errors import BadInput, disk_problems
from plumbline.warehouse.input.input_rows import reasons
from plumbline.warehouse.steps.claimed_chunks import ChunkPlan
from plumbline.warehouse.steps.step import ComputedStep, Row, State, Step, StepCounts
from plumbline.warehouse.storage.locks import claimed
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress


class NothingUsed(BadInput):
    """A step has no rows because all its input was rejected.

    Attributes:
        outcomes: the counts of all steps that ran, including this one.
    """

    outcomes: Sequence[StepCounts] = ()

    @classmethod
    def of(cls, step: Step, done: ComputedStep) -> NothingUsed | None:
        """Return the error if the step has rejects but no rows. Otherwise return ``None``."""
        rejects = [str(row["reason"]) for row in done.new.rejects]
        if done.state.kept or done.new.rows or not rejects:
            return None
        # A reason may have the form `subject: problem`. Leave out the subject.
        why = reasons(reason.partition(": ")[2] or reason for reason in rejects)
        fix = f"table `reject` has all {len(rejects):,} reasons"
        return cls(
            step.name(done.resource), f"could {step.verb} nothing of {step.label}: {why}", fix
        )


def run_steps(store: Store, resource: Any, steps: Sequence[Step], run_id: str) -> list[StepCounts]:
    """Compute the missing items of steps with ``resource``, and publish their rows.

    Raises the errors of ``Step.check_resource`` before it computes anything. Raises ``NothingUsed``
    after all steps if one of them has no rows.
    """
    for step in steps:
        step.check_resource(resource)
    plans = [_plan(store, resource, step) for step in steps]
    outcomes: list[StepCounts] = []
    unused: list[NothingUsed] = []
    n_all, left = sum(plan.n_units for plan in plans), [plan.n_left() for plan in plans]
    with progress(steps[0].verb, steps[0].unit) as update:
        for k, (step, plan) in enumerate(zip(steps, plans, strict=True)):

            def tell(n_left: int, k: int = k, label: str = step.label) -> None:
                left[k] = n_left
                update(n_all - sum(left), n_all, note=label)

            tell(left[k])
            done = _run(store, resource, step, plan, run_id, tell)
            outcomes.append(step.outcome(done))
            if error := NothingUsed.of(step, done):
                unused.append(error)
            tell(0)  # another command may have computed the last chunks
    if unused:
        unused[0].outcomes = outcomes
        raise unused[0]
    return outcomes


def run_at_once(store: Store, resource: Any, step: Step, run_id: str) -> ComputedStep:
    """Compute and publish a step without chunk files.

    Use this for a ``resource`` that asks a server and saves each paid reply in a ledger. A later
    run reads the saved replies from the ledger. Raises the errors of ``step.compute``, and
    ``BadInput`` if the disk can't be written to.
    """
    state = step.state(store, resource)
    items = [item for chunk in step.chunks(state.missing) for item in chunk.items]
    results = dict(zip(items, step.compute(resource, items), strict=True)) if items else {}
    with disk_problems(store.root):
        return publish(store, resource, step, state, results, run_id)


def _plan(store: Store, resource: Any, step: Step) -> ChunkPlan:
    store.work_directory(*step.place(resource))
    return step.plan(store, resource, step.state(store, resource))


def _run(
    store: Store,
    resource: Any,
    step: Step,
    plan: ChunkPlan,
    run_id: str,
    tell: Callable[[int], None],
) -> ComputedStep:
    if plan.todo():
        step.load(resource)
    while True:
        plan.work(partial(step.compute, resource), tell)
        # Let only one process at a time publish the step and remove its chunk files.
        with claimed(plan.directory.with_name(f"{plan.directory.name}.claim"), wait=True):
            state = step.state(store, resource)
            results = step.plan(store, resource, state).results()
            if results is not None:
                done = publish(store, resource, step, state, results, run_id)
                shutil.rmtree(plan.directory, ignore_errors=True)
                return done
        # A file was damaged, or another command published rows: compute what is missing.
        plan = _plan(store, resource, step)


def publish(
    store: Store, resource: Any, step: Step, state: State, results: Mapping[Any, Any], run_id: str
) -> ComputedStep:
    """Publish a step in one commit: new rows, valid old rows, rejects, and rows of other tables."""
    new, partition = step.new_rows(resource, state, results), step.partition(resource)
    done = ComputedStep(store, resource, state, results, new, run_id)
    where = {"stage": step.stage, "subject": "/".join(partition.values())}
    with store.transaction(run_id, " ".join(where.values())):
        step.publish_before(done)
        if new.rows or len(state.kept) < len(state.found):
            shared = {**partition, "run_id": run_id}
            rows: list[Row] = [*state.kept, *({**shared, **row} for row in new.rows)]
            rows.sort(key=lambda row: tuple(row[name] for name in step.order))
            store.replace(step.table, rows, partition, run_id)
        rejects = [{**where, "run_id": run_id, **row} for row in new.rejects]
        store.replace("reject", rejects, where, run_id)
    return done
