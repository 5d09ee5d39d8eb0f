"""The contract of a resumable step: missing rows, computing chunks, rows to publish.

A step is data: a few plain fields that can be sent to another process. Steps score pairs, sample
continuations, request choices, or measure disclosure. ``work.runner`` runs them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from plumbline.eval_workers.models.scoring_contract import GIVEN_EMPTY, LOG_LIKELIHOOD, TextScore
from plumbline.eval_workers.work.claimed_chunks import Chunk
from plumbline.warehouse.errors import UsageProblem

if TYPE_CHECKING:
    from plumbline.eval_workers.models.model_options import ModelOptions
    from plumbline.eval_workers.models.scoring_contract import Identity
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
    """The state of a step whose items are its inputs; the columns ``key`` identify an input.

    >>> wanted = [{"pair_id": "1", "text_id": "a"}, {"pair_id": "2", "text_id": "b"}]
    >>> found = [{"pair_id": "1", "text_id": "a"}, {"pair_id": "2", "text_id": "old"}]
    >>> state = state_of(wanted, found, "pair_id")
    >>> [row["pair_id"] for row in state.kept], [row["pair_id"] for row in state.missing]
    (['1'], ['2'])
    """

    def name(row: Row) -> tuple[str, ...]:
        return tuple(row[column] for column in key)

    text_id = {name(row): row["text_id"] for row in wanted}
    kept = [row for row in found if text_id.get(name(row)) == row["text_id"]]
    kept_names = {name(row) for row in kept}
    return State(wanted, found, kept, [row for row in wanted if name(row) not in kept_names])


@dataclass(frozen=True)
class Made:
    """Rows made from the results.

    ``rows`` are new rows of the step's table without partition, model and run; ``rejects`` are
    rows of ``reject`` without stage, subject and run.
    """

    rows: Sequence[Row]
    rejects: Sequence[Row]


class Step(ABC, Generic[Outcome]):
    """One step on one model; ``model`` is the opened backend, ``identity`` its identity."""

    #: The table of the step's rows, the columns that sort them, and the step's stage in ``reject``.
    table: ClassVar[str]
    order: ClassVar[tuple[str, ...]]
    stage: ClassVar[str]
    #: The step's verb and the unit that it counts, for the progress bar.
    verb: ClassVar[str]
    unit: ClassVar[str]
    #: The type of a result, see ``claimed_chunks.SCHEMAS``.
    kind: ClassVar[type] = TextScore
    #: Measures of the models that can run the step: most steps need log p of next tokens.
    measures: ClassVar[tuple[str, ...]] = (LOG_LIKELIHOOD,)

    @property
    @abstractmethod
    def label(self) -> str:
        """Name of the step's input, for the progress bar."""

    def check(self, store: Store, options: ModelOptions) -> None:
        """Raise ``UsageProblem`` for invalid input; called before a model is opened."""

    def check_measure(self, identity: Identity) -> None:
        """Raise ``UsageProblem`` for a model whose measure isn't in ``measures``."""
        if identity.measure not in self.measures:
            problem = f"gives a sentence's {identity.measure}, and {self.stage} needs a model that "
            also = " and `plumbline fairpair run`" if identity.measure == GIVEN_EMPTY else ""
            fix = f"give a causal model; what this one can do is `plumbline score`{also}"
            raise UsageProblem(f"model {identity.model}", f"{problem}predicts next tokens", fix)

    @abstractmethod
    def partition(self, identity: Identity) -> dict[str, str]:
        """The partition of ``table`` in which the step's rows are published, by column."""

    def place(self, model: Any) -> tuple[str, ...]:
        """Directory of the step's chunks under ``_work``, until they are published."""
        return (self.stage, *self.partition(model.identity).values())

    @abstractmethod
    def state(self, store: Store, model: Any) -> State:
        """The step's rows in the warehouse now, and the items without a row."""

    @abstractmethod
    def chunks(self, missing: Sequence[Any]) -> Iterator[Chunk]:
        """Chunks of the missing items; they depend only on these items."""

    @abstractmethod
    def compute(self, model: Any, items: Sequence[Any]) -> Sequence[Any]:
        """The results of a chunk's items, in their order (loads the weights)."""

    @abstractmethod
    def made(self, model: Any, state: State, results: Mapping[Any, Any]) -> Made:
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
    model: Any
    state: State
    results: Mapping[Any, Any]
    made: Made
    run_id: str
