"""The base class of resumable steps, which compute the missing rows of a table.

A step finds missing items, computes them in chunks, and makes rows to publish. To compute, it uses
a resource, such as an open model. A step has only a few plain fields, so that it can be sent to
another process. ``runner`` runs steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from plumbline.warehouse.steps.claimed_chunks import Chunk, ChunkPlan

if TYPE_CHECKING:
    from plumbline.warehouse.storage.store import Store

Row = dict[str, Any]


@dataclass(frozen=True)
class State:
    """The rows that a step has in the warehouse, and the items that still need a row.

    Attributes:
        wanted: the step's inputs, as rows with a ``text_id``.
        found: the rows that the step already has in the warehouse.
        kept: the valid rows of ``found``. A valid row has the same ``text_id`` as its input.
        missing: items to compute. Each is an input without a valid row, or part of such an input.
    """

    wanted: Sequence[Row]
    found: Sequence[Row]
    kept: Sequence[Row]
    missing: Sequence[Any]


def state_of(wanted: Sequence[Row], found: Sequence[Row], *key: str) -> State:
    """Find inputs without a valid row, and make a ``State``. Columns ``key`` identify an input."""

    def name(row: Row) -> tuple[str, ...]:
        return tuple(row[column] for column in key)

    text_id = {name(row): row["text_id"] for row in wanted}
    kept = [row for row in found if text_id.get(name(row)) == row["text_id"]]
    kept_names = {name(row) for row in kept}
    return State(wanted, found, kept, [row for row in wanted if name(row) not in kept_names])


@dataclass(frozen=True)
class NewRows:
    """The rows that a step has computed and will publish.

    ``rows`` have the columns of the step's table except partition columns and ``run_id``.
    ``rejects`` have the columns of table ``reject`` except ``stage``, ``subject`` and ``run_id``.
    """

    rows: Sequence[Row]
    rejects: Sequence[Row] = ()


@dataclass(frozen=True)
class StepCounts:
    """Counts of a step's inputs: ``n_wanted = n_done + n_rejected``.

    Attributes:
        partition: values of the rows' partition columns, such as ``benchmark`` and ``model_key``.
        model: name of the model that computed the rows.
        n_done: number of inputs that have a row.
        n_new: number of inputs that got a row in this run.
    """

    partition: Mapping[str, str]
    model: str
    n_wanted: int
    n_done: int
    n_new: int
    n_rejected: int

    @property
    def model_key(self) -> str:
        return self.partition["model_key"]


class Step(ABC):
    """Base class of steps. A step computes results with a ``resource``, such as an open model."""

    #: The table for the step's rows, the columns they are sorted by, and the stage in ``reject``.
    table: ClassVar[str]
    order: ClassVar[tuple[str, ...]]
    stage: ClassVar[str]
    #: Those columns of an input's rows that identify the input.
    key: ClassVar[tuple[str, ...]]
    #: A verb for the step and the unit that it counts, for the progress bar.
    verb: ClassVar[str]
    unit: ClassVar[str]
    #: The class of the results in chunk files: a dataclass.
    result_type: ClassVar[type[Any]]

    @property
    @abstractmethod
    def label(self) -> str:
        """Name of the step's input, for the progress bar."""

    def check_resource(self, resource: Any) -> None:
        """Raise ``UsageProblem`` if the step can't be computed with this resource."""

    @abstractmethod
    def name(self, resource: Any) -> str:
        """Return a name of the resource for error messages, such as `model gpt2`."""

    @abstractmethod
    def partition(self, resource: Any) -> dict[str, str]:
        """Return the values that the step's rows have in the partition columns of ``table``."""

    @abstractmethod
    def state(self, store: Store, resource: Any) -> State:
        """Read the step's current rows from the warehouse, and find the items without a row."""

    @abstractmethod
    def chunks(self, missing: Sequence[Any]) -> Iterator[Chunk]:
        """Divide the missing items into chunks. The chunks depend only on these items."""

    def place(self, resource: Any) -> tuple[str, ...]:
        """Return the path of the step's chunk files under ``_work``, split into components."""
        return (self.stage, *self.partition(resource).values())

    def plan(self, store: Store, resource: Any, state: State) -> ChunkPlan:
        """Divide a state's missing items into chunks. Nothing is written or computed yet."""
        directory = store.work_directory(*self.place(resource), create=False)
        chunks = {
            directory / f"{chunk.name}.parquet": chunk for chunk in self.chunks(state.missing)
        }
        return ChunkPlan(directory, chunks, self.result_type)

    def load(self, resource: Any) -> None:
        """Load what ``compute`` needs. This is called only if items are missing."""

    @abstractmethod
    def compute(self, resource: Any, items: Sequence[Any]) -> Sequence[Any]:
        """Return the results of a chunk's items, in the order of the items."""

    @abstractmethod
    def new_rows(self, resource: Any, state: State, results: Mapping[Any, Any]) -> NewRows:
        """Make rows to publish from the results of all missing items."""

    def publish_before(self, done: ComputedStep) -> None:
        """Publish rows of other tables first, in the same commit as the step's own rows."""

    @abstractmethod
    def outcome(self, done: ComputedStep) -> StepCounts:
        """Count how many inputs are done or rejected after the step."""


@dataclass(frozen=True)
class ComputedStep:
    """A step whose chunks are all computed, with the rows that are ready to publish."""

    store: Store
    resource: Any
    state: State
    results: Mapping[Any, Any]
    new: NewRows
    run_id: str
