"""A command as data: its fields are its arguments and options, its docstring is its help.

From the class come the command line, the settings of its table in a TOML file and its environment
variables, the recorded run and the Python method; see `docs/design.md`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, dataclass_transform

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.pipelines.command.registry import name_of, targets
from plumbline.warehouse.errors import BadInput, UsageProblem, did_you_mean
from plumbline.warehouse.options import STRICT

if TYPE_CHECKING:
    from plumbline.warehouse.storage.store import Store

#: Warehouse of the results unless a command or the settings name another.
DEFAULT_WAREHOUSE = Path("out/warehouse")
#: Start of a line of ``Done.said`` that is a warning in Python.
WARNING = "Warning: "
Row = Mapping[str, Any]
_Result = TypeVar("_Result")


@dataclasses.dataclass(frozen=True)
class On:
    """A field's place on the command line, as a mark in its ``Annotated``.

    Attributes:
        positional: True for an argument, False for an option.
        repeated: True if an option is given once for each value, not once with commas.
        variable: environment variable, instead of the one named by command and field.
        metavar: placeholder for the value in the help.
        name: name of the option if the field has another; `from` can't name a field.
    """

    positional: bool = False
    repeated: bool = False
    variable: str = ""
    metavar: str = ""
    name: str = ""


def planned(subject: str, what: str, amount: object, unit: str = "", note: str = "") -> Row:
    """A row of a plan: subject, quantity, amount, unit and a remark."""
    return {"subject": subject, "what": what, "amount": amount, "unit": unit, "note": note}


@dataclasses.dataclass(frozen=True)
class Done:
    """The result of a command.

    Attributes:
        rows: one row for each thing worked on; names of columns include their units.
        most: limit on the rows that a terminal shows, 0 for none; JSON, CSV and Python have all.
        table: rows for Python, JSON and CSV if ``rows`` is empty and a table is printed as text.
        said: lines for people, beyond the rows; in Python a line that begins with ``WARNING``
            is a warning.
        wrote: names of the tables that the run wrote; ``execute_on`` fills it.
        files: paths of files that were written.
        next: the command line that comes next; empty for none.
        query: SQL for the rows that the command made, with ``params``; Python returns these rows.
        failed: the error that is raised after the result is printed.
    """

    rows: Sequence[Row] = ()
    most: int = 0
    table: Sequence[Row] = ()
    said: Sequence[str] = ()
    wrote: Sequence[str] = ()
    files: Sequence[str] = ()
    next: str = ""
    query: str = ""
    params: Mapping[str, object] = field(default_factory=dict)
    failed: Exception | None = None


class Context:
    """A running command's store and recorded run."""

    def __init__(self, store: Store | None, run_id: str) -> None:
        self._store = store
        self.run_id = run_id

    @property
    def store(self) -> Store:
        """The command's warehouse, open."""
        assert self._store is not None, "the command's class says that it opens no warehouse"
        return self._store

    def stage(self, name: str, work: Callable[..., _Result], *given: Any) -> _Result:
        """Do a stage of the work and return its result; a long one shows its elapsed time."""
        from plumbline.warehouse.text.progress import progress

        with progress(name):
            return work(*given)

    def retried(self, name: str, work: Callable[..., _Result], *given: Any) -> _Result:
        """Do a stage; after a transient error, do it again."""
        from plumbline.pipelines.command.failures import with_retries

        result: _Result = self.stage(name, with_retries, partial(work, *given))
        return result


@dataclass_transform(kw_only_default=True, frozen_default=True)
@dataclass(frozen=True, kw_only=True, config=STRICT)
class Command:
    """A command on a warehouse. Each subclass becomes a frozen pydantic dataclass by itself.

    A field is annotated with a ``Field`` that has its description, bounds and choices, and ``On``
    if needed. ``__post_init__`` raises ``UsageProblem`` for fields that don't go together.
    """

    #: True to create a missing warehouse.
    makes_warehouse: ClassVar[bool] = False
    #: True to open the warehouse before the run; it must exist unless ``makes_warehouse``.
    opens_warehouse: ClassVar[bool] = True
    #: The table that its work starts from, unless it makes a warehouse.
    reads: ClassVar[str] = ""
    #: True to record its runs; False if it only reads, or uses no table.
    records: ClassVar[bool] = True
    #: True if a settings file may have its options at the top, and ``PLUMBLINE_NAME`` sets them.
    at_top: ClassVar[bool] = False
    #: Inherited fields that few users of this command need, or none: files may set them, and they
    #: are no options of the command line.
    without: ClassVar[tuple[str, ...]] = ()

    warehouse: Annotated[
        Path,
        Field(description="Directory of the warehouse, or s3://BUCKET/DIR."),
        On(variable="PLUMBLINE_WAREHOUSE", metavar="DIRECTORY"),
    ] = DEFAULT_WAREHOUSE

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True, config=STRICT)(cls)

    @classmethod
    def usual(cls, given: Mapping[str, object]) -> Mapping[str, object]:
        """Defaults, by field, that depend on the ``given`` fields."""
        return {}

    def check(self) -> None:
        """Raise the errors that can be detected before the run; writes and records nothing."""

    def ready(self) -> None:
        """Raise the errors that prevent a run but not a plan, such as a missing key."""

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Rows of ``planned``, which `--dry-run` prints; without rows, nothing is left to do.

        Writes nothing. ``store`` is ``None`` if the command opens no warehouse, or none exists.
        """
        raise NotImplementedError

    def run(self, context: Context) -> Done:
        """Do the work."""
        raise NotImplementedError


def class_of(name: str) -> type[Command]:
    """The class of a command.

    Raises ``UsageProblem`` for an unknown name, ``BadInput`` if a package registered no command.
    """
    if name not in targets():
        fix = did_you_mean(name, targets(), f"there is {', '.join(targets())}")
        raise UsageProblem(f"command {name!r}", "is unknown", fix)
    module, _, kind = targets()[name].partition(":")
    member = getattr(import_module(module), kind, None)
    if not (isinstance(member, type) and issubclass(member, Command)):
        raise BadInput(f"command {name}", f"{module}:{kind} is no Command", "see docs/design.md")
    return member


def has_plan(kind: type[Command]) -> bool:
    """True if a command has `--dry-run`."""
    return kind.plan is not Command.plan


def plan_of(command: Command) -> Iterator[Row]:
    """The rows of a command's plan. Raises ``execute``'s errors of opening the warehouse."""
    from plumbline.warehouse.storage.store import Store

    store = Store.existing(command.warehouse) if command.opens_warehouse else None
    if store is None and command.opens_warehouse and not command.makes_warehouse:
        Store.open(command.warehouse, create=False, reads=command.reads)  # raises
    yield from command.plan(store)


def execute(command: Command, store: Store | None = None) -> Done:
    """Check and run a command; record the run if it ``records``.

    ``store`` is its warehouse if that is open already. Raises the command's errors, except
    ``Done.failed``, which is part of the result.
    """
    from plumbline.warehouse.storage.store import Store

    command.ready()
    command.check()
    if store is None and command.opens_warehouse:
        made = command.makes_warehouse
        store = Store.open(command.warehouse, create=made, reads=command.reads)
    return execute_on(store, command)


def execute_on(store: Store | None, command: Command) -> Done:
    """``execute`` without checks on an open store; ``None`` for a command that opens none."""
    if store is None or not command.records:
        return command.run(Context(store, ""))
    from plumbline.warehouse.run_records import recorded
    from plumbline.warehouse.storage.out_of_date import to_make_again

    name, values = name_of(type(command)), values_of(command)
    before, run_id, done = store.snapshot(), "", Done()
    try:
        with recorded(store, name, values) as run_id:
            done = command.run(Context(store, run_id))
            if done.failed is not None:
                raise done.failed
    except Exception:
        if done.failed is None:
            raise
    after = store.snapshot()
    units = {
        table: [unit for f in listing.files for unit in f.units]
        for table, listing in after.tables.items()
        if table != "run"
    }
    wrote = [table for table, held in units.items() if run_id in {unit.run_id for unit in held}]
    deleted = to_make_again(after.out_of_date, before.out_of_date)
    said = [*done.said, *(WARNING + line for line in deleted)]
    return dataclasses.replace(done, said=said, wrote=wrote)


def values_of(command: Command) -> dict[str, object]:
    """The fields that a run records: all but ``warehouse`` and what ``without`` has as usual."""
    values = {f.name: getattr(command, f.name) for f in fields(command) if f.name != "warehouse"}
    hidden = {name for name in command.without if values[name] == getattr(type(command), name, ...)}
    return {name: value for name, value in values.items() if name not in hidden}
