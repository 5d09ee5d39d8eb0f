"""The contract of a resumable step: which rows are missing, computing chunks, rows to publish.

A step is data: a few plain fields that can be sent to another process. It computes with a
resource, such as an opened model, about which only the step knows more. ``runner`` runs steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from plumbline.warehouse.steps.claimed_chunks import Chunk, ChunkPlan

if TYPE_CHECKING:
    from plumbline.warehouse.storage.store import Store

Row = dict[str, Any]
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class State:
    """A step's rows in the warehouse, and its items without a row.

    Attributes:
        wanted: the step's inputs, one row each with its ``text_id``.
        found: rows of the step's table.
        kept: rows in ``found`` that are still valid: their input has the same ``text_id``.
        missing: items to compute: inputs (or their samples or questions) without a valid row.
        rejects: earlier rows of ``reject`` that stay: their source isn't tried again.
    """

    wanted: Sequence[Row]
    found: Sequence[Row]
    kept: Sequence[Row]
    missing: Sequence[Any]
    rejects: Sequence[Row] = ()


def state_of(wanted: Sequence[Row], found: Sequence[Row], *key: str) -> State:
    """The state of a step whose items are its inputs; the columns ``key`` identify an input."""

    def name(row: Row) -> tuple[str, ...]:
        return tuple(row[column] for column in key)

    text_id = {name(row): row["text_id"] for row in wanted}
    kept = [row for row in found if text_id.get(name(row)) == row["text_id"]]
    kept_names = {name(row) for row in kept}
    return State(wanted, found, kept, [row for row in wanted if name(row) not in kept_names])


@dataclass(frozen=True)
class NewRows:
    """What a step computed, as rows to publish.

    ``rows``: of the step's table, without partition and run; ``rejects``: of ``reject``, without
    stage, subject and run.
    """

    rows: Sequence[Row]
    rejects: Sequence[Row] = ()


class Step(ABC, Generic[Outcome]):
    """One step; ``resource`` is what it computes with."""

    #: The table of the step's rows, the columns that sort them, and the step's stage in ``reject``.
    table: ClassVar[str]
    order: ClassVar[tuple[str, ...]]
    stage: ClassVar[str]
    #: The step's verb and the unit that it counts, for the progress bar.
    verb: ClassVar[str]
    unit: ClassVar[str]
    #: The class of the results in chunk files: a dataclass with the files' ``SCHEMA``.
    result_type: ClassVar[type[Any]]

    @property
    @abstractmethod
    def label(self) -> str:
        """Name of the step's input, for the progress bar."""

    def check_resource(self, resource: Any) -> None:
        """Raise ``UsageProblem`` for a resource that can't compute the step."""

    @abstractmethod
    def name(self, resource: Any) -> str:
        """The resource's name in errors, such as `model gpt2`."""

    @abstractmethod
    def partition(self, resource: Any) -> dict[str, str]:
        """The partition of ``table`` in which the step's rows are published, by column."""

    def reject_partition(self, resource: Any) -> dict[str, str]:
        """The partition of ``reject`` in which the step's rejects are published."""
        return {"stage": self.stage, "subject": "/".join(self.partition(resource).values())}

    @abstractmethod
    def state(self, store: Store, resource: Any) -> State:
        """The step's rows in the warehouse now, and the items without a row."""

    @abstractmethod
    def chunks(self, missing: Sequence[Any]) -> Iterator[Chunk]:
        """Chunks of the missing items; they depend only on these items."""

    def place(self, resource: Any) -> tuple[str, ...]:
        """Directory of the step's chunks under ``_work``, until they are published."""
        return (self.stage, *self.partition(resource).values())

    def plan(self, store: Store, resource: Any, state: State) -> ChunkPlan:
        """The chunks of the items that a state lacks; writes nothing."""
        directory = store.work_directory(*self.place(resource), create=False)
        return ChunkPlan.of(self.chunks(state.missing), directory, self.result_type)

    def load(self, resource: Any) -> None:
        """Load what computing needs; called before the time of computing is measured."""

    @abstractmethod
    def compute(self, resource: Any, items: Sequence[Any]) -> Sequence[Any]:
        """The results of a chunk's items, in their order."""

    @abstractmethod
    def new_rows(self, resource: Any, state: State, results: Mapping[Any, Any]) -> NewRows:
        """Rows from the results of all missing items.

        Raises ``BadInput`` if there is no row at all and the step needs one.
        """

    def publish_before(self, done: ComputedStep) -> None:
        """Publish rows of other tables that belong to the step's rows, in the same commit."""

    @abstractmethod
    def outcome(self, done: ComputedStep, rate: float | None) -> Outcome:
        """The report; ``rate`` in units per second, ``None`` if nothing was computed."""


@dataclass(frozen=True)
class ComputedStep:
    """A step whose chunks are all computed, about to be published."""

    store: Store
    resource: Any
    state: State
    results: Mapping[Any, Any]
    new: NewRows
    run_id: str
