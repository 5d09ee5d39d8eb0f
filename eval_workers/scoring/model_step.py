"""Run steps that compute with a model, and record the model in table ``model``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from plumbline.eval_workers.models import memory_problems, open_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.model_texts import described
from plumbline.eval_workers.models.scoring_contract import (
    GIVEN_EMPTY,
    LOG_LIKELIHOOD,
    Identity,
    Instruction,
    Model,
)
from plumbline.warehouse.errors import UsageProblem, disk_problems
from plumbline.warehouse.steps.runner import run_steps
from plumbline.warehouse.steps.step import ComputedStep, Row, Step, StepCounts
from plumbline.warehouse.storage.store import Store


class ModelStep(Step):
    """A step that computes with a model. The model's weights are loaded only if needed."""

    #: The step accepts only models with one of these measures. If this is empty, it accepts every
    #: model. Most steps need log p of the next token.
    measures: ClassVar[tuple[str, ...]] = (LOG_LIKELIHOOD,)

    def check(self, store: Store) -> None:
        """Raise ``UsageProblem`` for invalid input. This is called before a model is opened."""

    def check_resource(self, model: Model) -> None:
        """Raise ``UsageProblem`` if the step can't use this kind of model (see ``measures``)."""
        identity = model.identity
        if self.measures and identity.measure not in self.measures:
            problem = f"has the measure {identity.measure}, but {self.stage} needs a model that "
            also = " and `plumbline fairpair run`" if identity.measure == GIVEN_EMPTY else ""
            fix = f"give a causal model; this model works only with `plumbline score`{also}"
            raise UsageProblem(self.name(model), f"{problem}predicts next tokens", fix)

    def name(self, model: Model) -> str:
        return f"model {model.identity.model}"

    def identity(self, model: Model) -> Identity:
        """Return the identity under which the step's results are stored."""
        return model.identity

    def compute(self, model: Any, items: Sequence[Any]) -> list[Any]:
        """Return the scores of texts. Steps that compute something else override this."""
        return list(model.score(items))

    def load(self, model: Model) -> None:
        _ = model.n_parameters

    def publish_before(self, done: ComputedStep) -> None:
        """Add the model to table ``model``, unless it's already there or nothing was computed."""
        store, model, identity = done.store, done.resource, self.identity(done.resource)
        if done.state.missing and identity.key not in store.units("model"):
            name = identity.model
            # A model trained here may share its name with a published model, but isn't that model.
            published = {} if store.units("trained_model", model=name) else described(name)
            row = {"model_key": identity.key, **asdict(identity), **published}
            row["n_parameters"] = model.n_parameters
            store.publish("model", [row], unit=identity.key, run_id=done.run_id)

    def outcome(self, done: ComputedStep) -> StepCounts:
        def inputs(rows: Sequence[Row]) -> int:
            return len({tuple(row[name] for name in self.key) for row in rows})

        n_wanted, n_done = inputs(done.state.wanted), inputs([*done.state.kept, *done.new.rows])
        return StepCounts(
            self.partition(done.resource),
            done.resource.identity.model,
            n_wanted=n_wanted,
            n_done=n_done,
            n_new=inputs(done.new.rows),
            n_rejected=n_wanted - n_done,
        )


def run_on_model(
    store: Store,
    model: str,
    options: ModelOptions,
    steps: Sequence[ModelStep],
    run_id: str,
) -> list[StepCounts]:
    """Run steps on a model. Load the model at most once, and only if results are missing.

    Writes ``model``, ``reject`` and the tables of each step. Raises ``BadInput`` if the disk can't
    be written to or memory runs out. Also raises the errors of each step's ``check``, of
    ``open_backend`` and of ``run_steps``.
    """
    for step in steps:
        step.check(store)
    with disk_problems(store.root), memory_problems(model):
        return run_steps(store, open_backend(model, options), steps, run_id)


def give_name(store: Store, key: str, run_id: str, name: str) -> None:
    """Give a scored model the user's name, and make it the latest version of that name.

    The latest version is the one with the greatest ``run_id``.
    """
    models = store.read("model").to_pylist()
    latest = max((m["run_id"] for m in models if m["name"] == name), default="")
    for row in models:
        if row["model_key"] == key and (row["name"] != name or row["run_id"] < latest):
            row |= {"name": name, "run_id": run_id}
            store.publish("model", [row], unit=key, run_id=run_id)


def publish_instruction(store: Store, instruction: Instruction, run_id: str) -> None:
    """Add an instruction, which may be ``NONE``, to table ``instruction`` if it isn't there."""
    key = instruction.key
    if key not in store.units("instruction"):
        form = instruction.form if instruction.text is not None else None
        row = {"instruction_key": key, "instruction": instruction.text, "form": form}
        store.publish("instruction", [row], unit=key, run_id=run_id)
