"""The base class of all commands. A command's docstring is its help.

A command's fields are its arguments and options. Users can set a field on the command line, in a
TOML file, by an environment variable, or from Python. See `docs/design.md`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields
from importlib import import_module
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import Field
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo

from plumbline.pipelines.command.registry import name_of, targets
from plumbline.warehouse.errors import BadInput, UsageProblem, did_you_mean
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.paths import address

if TYPE_CHECKING:
    from plumbline.warehouse.storage.store import Store

#: The warehouse that commands use unless an option or the settings name another.
DEFAULT_WAREHOUSE = Path("out/warehouse")
#: A line of ``Done.said`` that starts like this becomes a warning in Python.
WARNING = "Warning: "
Row = Mapping[str, Any]
_Result = TypeVar("_Result")


@dataclasses.dataclass(frozen=True)
class On:
    """Says how a field appears on the command line. Goes into the field's ``Annotated`` type.

    Attributes:
        positional: True for an argument, False for an option.
        repeated: True if users repeat the option for each value, False if commas separate values.
        variable: environment variable for the field; default: a name like PLUMBLINE_SCORE_MODEL.
        metavar: placeholder for the value in the help.
        name: name of the option, if the field's name differs (Python fields can't be called `as`).
    """

    positional: bool = False
    repeated: bool = False
    variable: str = ""
    metavar: str = ""
    name: str = ""


def planned(subject: str, what: str, amount: object, unit: str = "", note: str = "") -> Row:
    """Return one row of the plan that `--dry-run` prints."""
    return {"subject": subject, "what": what, "amount": amount, "unit": unit, "note": note}


@dataclasses.dataclass(frozen=True)
class Done:
    """The result of a command.

    Attributes:
        rows: rows to print, with units in the column names.
        most: maximum number of rows to print (0: no limit); JSON, CSV and Python get all rows.
        table: rows for Python, JSON and CSV, if they differ from ``rows``.
        said: lines to print after the rows; in Python, a line that begins with ``WARNING``
            becomes a warning.
        wrote: names of the tables that the run wrote; ``execute_on`` sets this field.
        files: paths of the files that the run wrote.
        next: the command to suggest next; empty if there is none.
        query: SQL query (with parameters ``params``) whose rows Python gets instead of ``table``.
        failed: an error to raise after the result is printed, or ``None``.
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
    """Gives a running command its open warehouse and the id of its recorded run."""

    def __init__(self, store: Store | None, run_id: str) -> None:
        self._store = store
        self.run_id = run_id

    @property
    def store(self) -> Store:
        """The command's open warehouse."""
        assert self._store is not None, "the command's class says that it opens no warehouse"
        return self._store

    def stage(self, name: str, work: Callable[..., _Result], *given: Any) -> _Result:
        """Call ``work(*given)`` and return its result. Show the elapsed time of a long call."""
        from plumbline.warehouse.text.progress import progress

        with progress(name):
            return work(*given)


@dataclass_transform(kw_only_default=True, frozen_default=True)
@dataclass(frozen=True, kw_only=True, config=STRICT)
class Command:
    """A command that uses a warehouse. Subclasses become frozen pydantic dataclasses automatically.

    Annotate each field with a ``Field`` (description, bounds, choices) and, if needed, an ``On``.
    Define ``__post_init__`` to raise ``UsageProblem`` for options that can't be combined.
    """

    #: True to create a missing warehouse.
    makes_warehouse: ClassVar[bool] = False
    #: True to open the warehouse before the run; it must exist unless ``makes_warehouse``.
    opens_warehouse: ClassVar[bool] = True
    #: Table that the command reads. The error for a missing warehouse says how to fill this table.
    reads: ClassVar[str] = ""
    #: True to record the command's runs; False if it writes no table.
    records: ClassVar[bool] = True
    #: True if options are set at the top of a settings file and by ``PLUMBLINE_OPTION`` variables.
    at_top: ClassVar[bool] = False
    #: Inherited options that the command line hides. Settings files can still set them.
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
        """Return defaults that depend on other fields. ``given`` has the values of these fields."""
        return {}

    def check(self) -> None:
        """Raise any error that can be detected before the run. Writes and records nothing."""

    def ready(self) -> None:
        """Raise any error that prevents a run but not `--dry-run`, such as a missing API key."""

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Yield the rows that `--dry-run` prints (see ``planned``). Writes nothing.

        Yields no rows if nothing is left to do. ``store`` is ``None`` if the command opens no
        warehouse, or if the warehouse doesn't exist.
        """
        raise NotImplementedError

    def run(self, context: Context) -> Done:
        """Do the command's work, and return its result."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Parameter:
    """An argument or option of a command. ``default`` is ``...`` if a value is required."""

    name: str
    kind: Any
    default: Any
    about: str
    on: On

    @property
    def option(self) -> str:
        return f"--{self.on.name or self.name.replace('_', '-')}"

    @property
    def is_list(self) -> bool:
        """True if users give each value separately, rather than in one text with commas."""
        repeats = self.on.repeated or self.on.positional or get_args(self.kind)[:1] != (str,)
        return get_origin(self.kind) is tuple and repeats

    @property
    def is_path(self) -> bool:
        return Path in (self.kind, *get_args(self.kind))

    def value(self, given: Any) -> Any:
        """Convert a value from the command line, a file or Python to the field's type."""
        if get_origin(self.kind) is not tuple:
            return self._converted(given)
        if isinstance(given, str | Path):
            given = [str(given)] if self.is_list else map(str.strip, str(given).split(","))
        elif not isinstance(given, list | tuple):
            return given
        return tuple(self._converted(part) for part in given if part != "")

    def _converted(self, given: Any) -> Any:
        """Convert text to a path, or a path to text, if the field's type requires it."""
        if isinstance(given, str | Path) and self.is_path:
            return address(given) or Path(given)
        return str(given) if isinstance(given, Path) and not self.is_path else given


def parameters(kind: type[Command]) -> tuple[Parameter, ...]:
    """Return a command's parameters in the order in which the help lists them.

    Arguments come before options, and required options before optional ones. Inherited fields
    come after the class's own fields, and ``warehouse`` comes last.
    """
    return tuple(p for p in all_fields(kind) if p.name not in kind.without)


#: Cache of ``all_fields``: reading a command's type hints takes milliseconds.
_FIELDS: dict[type, tuple[Parameter, ...]] = {}


def all_fields(kind: type[Command]) -> tuple[Parameter, ...]:
    """Return all of a command's parameters, including the hidden ones in ``without``."""
    if kind in _FIELDS:
        return _FIELDS[kind]
    own, last = inspect.get_annotations(kind), inspect.get_annotations(Command)

    def rank(p: Parameter) -> tuple[object, ...]:
        return (not p.on.positional, p.default is not ..., p.name in last, p.name not in own)

    return _FIELDS.setdefault(kind, tuple(sorted(_declared(kind), key=rank)))


def _declared(kind: type[Command]) -> Iterator[Parameter]:
    hints, plain = get_type_hints(kind, include_extras=True), get_type_hints(kind)
    for name in (f.name for f in fields(kind)):
        _, *marks = get_args(hints[name])
        described = [m.description for m in marks if isinstance(m, FieldInfo) and m.description]
        on = next((m for m in reversed(marks) if isinstance(m, On)), On())
        yield Parameter(name, plain[name], getattr(kind, name, ...), described[-1], on)


def class_of(name: str) -> type[Command]:
    """Return the class of a command.

    Raises ``UsageProblem`` for an unknown name, and ``BadInput`` if a package registered
    something that isn't a ``Command``.
    """
    if name not in targets():
        fix = did_you_mean(name, targets(), f"known: {', '.join(targets())}")
        raise UsageProblem(f"command {name!r}", "is unknown", fix)
    module, _, kind = targets()[name].partition(":")
    member = getattr(import_module(module), kind, None)
    if not (isinstance(member, type) and issubclass(member, Command)):
        raise BadInput(f"command {name}", f"{module}:{kind} is no Command", "see docs/design.md")
    return member


def has_plan(kind: type[Command]) -> bool:
    return kind.plan is not Command.plan


def plan_of(command: Command) -> Iterator[Row]:
    """Yield the rows of a command's plan. Raises an error if the warehouse can't be opened."""
    from plumbline.warehouse.storage.store import Store

    store = Store.existing(command.warehouse) if command.opens_warehouse else None
    if store is None and command.opens_warehouse and not command.makes_warehouse:
        Store.open(command.warehouse, create=False, reads=command.reads)  # always raises
    yield from command.plan(store)


def execute(command: Command, store: Store | None = None) -> Done:
    """Check a command, run it, and record the run if ``command.records`` is True.

    Pass ``store`` if the command's warehouse is already open. Raises the command's errors, but
    not ``Done.failed``, which the caller must raise.
    """
    from plumbline.warehouse.storage.store import Store

    command.ready()
    command.check()
    if store is None and command.opens_warehouse:
        store = Store.open(command.warehouse, create=command.makes_warehouse, reads=command.reads)
    return execute_on(store, command)


def execute_on(store: Store | None, command: Command) -> Done:
    """Run and record a command after its checks. ``store`` is ``None`` if it needs no warehouse."""
    if store is None or not command.records:
        return command.run(Context(store, ""))
    from plumbline.warehouse.run_records import is_open, recorded
    from plumbline.warehouse.storage.out_of_date import to_make_again

    name, values, is_step = name_of(type(command)), values_of(command), is_open(store)
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
    wrote = [
        table
        for table, listing in after.tables.items()
        if table != "run" and run_id in {unit.run_id for f in listing.files for unit in f.units}
    ]
    again = f"`{done.next}`"  # don't warn about rows that the next command makes again
    deleted = to_make_again(after.out_of_date, before.out_of_date)
    deleted = [line for line in deleted if not line.endswith(again)]
    rejected = _rejected(store, run_id) if "reject" in wrote and not is_step else ()
    said = [*done.said, *(WARNING + line for line in (*rejected, *deleted))]
    return dataclasses.replace(done, said=said, wrote=wrote)


_REJECTED = """
SELECT stage, count(*) AS n, first(
    concat_ws(': ', concat_ws(', row ', source_file, source_row), reason)
    ORDER BY subject, source_file, source_row
) AS first
FROM reject WHERE run_id = $run_id GROUP BY stage ORDER BY stage
"""


def _rejected(store: Store, run_id: str) -> Iterator[str]:
    from plumbline.warehouse.query.connection import rows_of

    for row in rows_of(store, _REJECTED, {"run_id": run_id}):
        n = f"{row['n']:,} row{'s' * (row['n'] > 1)} rejected"
        yield f"{n}: table `reject`, stage `{row['stage']}`; first: {row['first']}"


def values_of(command: Command) -> dict[str, object]:
    """Return the options to record for a run. Leaves out ``warehouse`` and unset hidden options."""
    values = {f.name: getattr(command, f.name) for f in fields(command) if f.name != "warehouse"}
    hidden = {name for name in command.without if values[name] == getattr(type(command), name, ...)}
    return {name: value for name, value in values.items() if name not in hidden}
