"""The base class of resumable steps, which compute the missing rows of a table.

A step finds missing items, computes them in chunks, and makes rows to publish. It has only a few
plain fields, so that it can be sent to another process. It computes with a resource, such as an
open model, which only the step knows how to use. ``runner`` runs steps.

The results of each chunk are stored in a file, so a killed worker loses at most one chunk.
"""

from __future__ import annotations

import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.warehouse.paths import opened
from plumbline.warehouse.storage.data_files import write_file
from plumbline.warehouse.storage.locks import claimed

if TYPE_CHECKING:
    from plumbline.warehouse.storage.store import Store

Row = dict[str, Any]
_WAIT_S = 0.2


@dataclass(frozen=True)
class Chunk:
    """Items that are computed together. Each is a string or a dataclass of plain values.

    ``n_units`` is the size of the chunk in the step's own unit, such as pairs or samples.
    """

    items: Sequence[Any]
    n_units: int

    @property
    def name(self) -> str:
        """Hash of the items (16 hex digits), the same in all workers and later runs."""
        text = json.dumps(list(self.items), default=astuple)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class ChunkPlan:
    """Chunks by the path of their result files. See ``Step`` for ``result_type``."""

    directory: Path
    chunks: Mapping[Path, Chunk]
    result_type: type[Any]

    @property
    def n_units(self) -> int:
        return sum(chunk.n_units for chunk in self.chunks.values())

    def n_left(self) -> int:
        return sum(self.chunks[path].n_units for path in self.todo())

    def todo(self) -> list[Path]:
        existing = {path.name for path in self.directory.glob("*.parquet")}
        return [path for path in self.chunks if path.name not in existing]

    def work(
        self, compute: Callable[[Sequence[Any]], Sequence[Any]], tell: Callable[[int], None]
    ) -> None:
        """Compute one chunk after another, until all have a file or the directory is removed.

        Skips chunks that another worker has claimed. After each chunk, even a skipped one, calls
        ``tell`` with ``n_left()``.
        """
        while (todo := self.todo()) and self.directory.is_dir():
            n_done = 0
            for path in todo:
                # Keep the lock file outside the directory, which is removed after publishing.
                name = hashlib.sha256(f"{self.directory.name}/{path.name}".encode()).hexdigest()
                with claimed(self.directory.with_name(f"{name[:16]}.claim")) as is_claimed:
                    if is_claimed and self.directory.is_dir() and not path.exists():
                        write_results(path, compute(self.chunks[path].items), self.result_type)
                        n_done += 1
                tell(self.n_left())
            if not n_done:
                time.sleep(_WAIT_S)

    def results(self) -> dict[Any, Any] | None:
        """Return the result of each item, or ``None`` if a file is missing or damaged.

        A damaged file (after a power cut) is removed, so that its chunk will be computed again.
        """
        by_item: dict[Any, Any] = {}
        is_complete = True
        for path, chunk in self.chunks.items():
            results = _read(path, self.result_type)
            if results is None or len(results) != len(chunk.items):
                path.unlink(missing_ok=True)
                is_complete = False
            else:
                by_item.update(zip(chunk.items, results, strict=True))
        return by_item if is_complete else None


def write_results(path: Path, results: Sequence[object], result_type: type[Any]) -> None:
    """Write the results of a chunk to a file, which appears only when it is complete."""
    schema = result_type.SCHEMA
    columns = {name: [getattr(result, name) for result in results] for name in schema.names}
    write_file(path, pa.table(columns, schema=schema))


def _read(path: Path, result_type: type[Any]) -> list[Any] | None:
    try:
        with opened(path) as file:
            rows = pq.read_table(
                file, schema=result_type.SCHEMA, page_checksum_verification=True
            ).to_pylist()
    except (OSError, pa.ArrowException):
        return None
    return [result_type(**row) for row in rows]


@dataclass(frozen=True)
class State:
    """The rows that a step has in the warehouse, and the items that still need a row.

    Attributes:
        wanted: the step's inputs, one row each with its ``text_id``.
        found: the step's rows in its table.
        kept: rows in ``found`` that are still valid, since their input has the same ``text_id``.
        missing: items to compute: inputs (or their samples or questions) without a valid row.
    """

    wanted: Sequence[Row]
    found: Sequence[Row]
    kept: Sequence[Row]
    missing: Sequence[Any]


def state_of(wanted: Sequence[Row], found: Sequence[Row], *key: str) -> State:
    """Make the state of a step with one item per input. Columns ``key`` identify an input."""

    def name(row: Row) -> tuple[str, ...]:
        return tuple(row[column] for column in key)

    text_id = {name(row): row["text_id"] for row in wanted}
    kept = [row for row in found if text_id.get(name(row)) == row["text_id"]]
    kept_names = {name(row) for row in kept}
    return State(wanted, found, kept, [row for row in wanted if name(row) not in kept_names])


@dataclass(frozen=True)
class NewRows:
    """The rows that a step has computed and will publish.

    ``rows`` belong to the step's table and lack its partition columns and run. ``rejects`` belong
    to ``reject`` and lack stage, subject and run.
    """

    rows: Sequence[Row]
    rejects: Sequence[Row] = ()


@dataclass(frozen=True)
class StepCounts:
    """How many of a step's inputs are done or rejected: ``n_wanted = n_done + n_rejected``.

    Attributes:
        partition: partition of the step's rows, such as their benchmark and ``model_key``.
        model: name of the model that computed them.
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
    """Base class of steps. ``resource`` is what a step computes with, such as an open model."""

    #: The table for the step's rows, the columns they are sorted by, and the stage in ``reject``.
    table: ClassVar[str]
    order: ClassVar[tuple[str, ...]]
    stage: ClassVar[str]
    #: The columns that identify an input, among those of its rows.
    key: ClassVar[tuple[str, ...]]
    #: A verb for the step and the unit that it counts, for the progress bar.
    verb: ClassVar[str]
    unit: ClassVar[str]
    #: The class of the results in chunk files: a dataclass that has the files' ``SCHEMA``.
    result_type: ClassVar[type[Any]]

    @property
    @abstractmethod
    def label(self) -> str:
        """Name of the step's input, for the progress bar."""

    def check_resource(self, resource: Any) -> None:
        """Raise ``UsageProblem`` if the step can't be computed with this resource."""

    @abstractmethod
    def name(self, resource: Any) -> str:
        """Return what error messages call the resource, such as `model gpt2`."""

    @abstractmethod
    def partition(self, resource: Any) -> dict[str, str]:
        """Return the partition (column values) of ``table`` to which the step's rows belong."""

    def reject_partition(self, resource: Any) -> dict[str, str]:
        """Return the partition of ``reject`` to which the step's rejects belong."""
        return {"stage": self.stage, "subject": "/".join(self.partition(resource).values())}

    @abstractmethod
    def state(self, store: Store, resource: Any) -> State:
        """Read the step's current rows from the warehouse, and find the items without a row."""

    @abstractmethod
    def chunks(self, missing: Sequence[Any]) -> Iterator[Chunk]:
        """Divide the missing items into chunks. The chunks depend only on these items."""

    def place(self, resource: Any) -> tuple[str, ...]:
        """Return the path, under ``_work``, of the directory with the step's unpublished chunks."""
        return (self.stage, *self.partition(resource).values())

    def plan(self, store: Store, resource: Any, state: State) -> ChunkPlan:
        """Plan the chunks for the missing items of a state. This writes nothing."""
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
        """Publish related rows of other tables, in the same commit as the step's own rows."""

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
