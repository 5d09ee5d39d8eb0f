"""The contract of a resumable step: which rows are missing, computing chunks, rows to publish.

A step is data: a few plain fields that can be sent to another process. It computes with a
resource, such as an opened model, about which only the step knows more. ``runner`` runs steps.

Missing items are computed in chunks, each with a file of its results: a killed worker loses at
most one chunk.
"""

from __future__ import annotations

import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.warehouse.paths import opened
from plumbline.warehouse.storage.data_files import write_file
from plumbline.warehouse.storage.locks import claimed

if TYPE_CHECKING:
    from plumbline.warehouse.storage.store import Store

Row = dict[str, Any]
Outcome = TypeVar("Outcome")
_WAIT_S = 0.2


@dataclass(frozen=True)
class Chunk:
    """Items that are computed together, each a string or a dataclass of plain values.

    ``n_units``: number of the step's units (pairs, samples, ...) in this chunk.
    """

    items: Sequence[Any]
    n_units: int

    @property
    def name(self) -> str:
        """Hash of the items (16 hex digits): all workers and later runs agree on it."""
        text = json.dumps(list(self.items), default=astuple)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class ChunkPlan:
    """Chunks by the file for their results; ``result_type``: see ``Step``."""

    directory: Path
    chunks: Mapping[Path, Chunk]
    result_type: type[Any]

    @classmethod
    def of(cls, chunks: Iterable[Chunk], directory: Path, result_type: type[Any]) -> ChunkPlan:
        """The plan for some chunks with their files in ``directory``."""
        return cls(directory, {directory / f"{c.name}.parquet": c for c in chunks}, result_type)

    @property
    def n_units(self) -> int:
        """Number of units of all chunks."""
        return sum(chunk.n_units for chunk in self.chunks.values())

    def n_left(self) -> int:
        """Number of units that no worker has computed yet."""
        return sum(self.chunks[path].n_units for path in self.todo())

    def todo(self) -> list[Path]:
        """Files that don't exist yet."""
        existing = {path.name for path in self.directory.glob("*.parquet")}
        return [path for path in self.chunks if path.name not in existing]

    def work(
        self, compute: Callable[[Sequence[Any]], Sequence[Any]], tell: Callable[[int], None]
    ) -> None:
        """Compute chunk by chunk until all have a file, or the directory is removed.

        Skips chunks that another worker has claimed. Calls ``tell`` with ``n_left()`` after each
        chunk, computed or skipped.
        """
        while (todo := self.todo()) and self.directory.is_dir():
            n_done = 0
            for path in todo:
                # The claim is outside the directory, which is removed after publishing.
                name = hashlib.sha256(f"{self.directory.name}/{path.name}".encode()).hexdigest()
                with claimed(self.directory.with_name(f"{name[:16]}.claim")) as is_claimed:
                    if is_claimed and self.directory.is_dir() and not path.exists():
                        write_results(path, compute(self.chunks[path].items), self.result_type)
                        n_done += 1
                tell(self.n_left())
            if not n_done:
                time.sleep(_WAIT_S)

    def results(self) -> dict[Any, Any] | None:
        """The result of each item; ``None`` if a file is missing or damaged.

        A damaged file (after a power cut) is removed: its chunk will be computed again.
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

    def published_in_turn(self) -> AbstractContextManager[bool]:
        """A lock: one process at a time publishes and removes the directory."""
        return claimed(self.directory.with_name(f"{self.directory.name}.claim"), wait=True)


def write_results(path: Path, results: Sequence[object], result_type: type[Any]) -> None:
    """Write the results of a chunk to a file that appears only when complete."""
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
    """A step's rows in the warehouse, and its items without a row.

    Attributes:
        wanted: the step's inputs, one row each with its ``text_id``.
        found: rows of the step's table.
        kept: rows in ``found`` that are still valid: their input has the same ``text_id``.
        missing: items to compute: inputs (or their samples or questions) without a valid row.
    """

    wanted: Sequence[Row]
    found: Sequence[Row]
    kept: Sequence[Row]
    missing: Sequence[Any]


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
        """Rows from the results of all missing items."""

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
