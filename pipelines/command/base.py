"""A command as data: its fields are its arguments and options, its docstring is its help.

From the class come the command line, the settings of its table in a TOML file and its environment
variables, the recorded run and the Python method; see `docs/design.md`.
"""

from __future__ import annotations

import dataclasses
import inspect
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import Field
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo

from plumbline.pipelines.command.registry import name_of, targets
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.paths import address

if TYPE_CHECKING:
    from plumbline.pipelines.stages import Stages
    from plumbline.warehouse.storage.store import Store

#: Warehouse of the results unless a command or the settings name another.
DEFAULT_WAREHOUSE = Path("out/warehouse")
#: Start of a line of ``Done.said`` that is a warning in Python.
WARNING = "Warning: "
#: An upper bound beyond this is left out of the help.
_MANY = 1_000_000_000
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
        separator: between the values of a list given as one text; a blank means any whitespace.
    """

    positional: bool = False
    repeated: bool = False
    variable: str = ""
    metavar: str = ""
    name: str = ""
    separator: str = ","


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
        wrote: names of tables, in ``warehouse`` if that isn't the command's own.
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
    warehouse: Path | None = None
    next: str = ""
    query: str = ""
    params: Mapping[str, object] = field(default_factory=dict)
    failed: Exception | None = None


class Context:
    """A running command's store, recorded run and stages of work."""

    def __init__(self, store: Store | None, run_id: str, stages: Stages) -> None:
        self._store = store
        self.run_id = run_id
        self.stages = stages

    @property
    def store(self) -> Store:
        """The command's warehouse, open."""
        assert self._store is not None, "the command's class says that it opens no warehouse"
        return self._store

    def stage(self, name: str, work: Callable[..., _Result], *given: Any) -> _Result:
        """Run, announce and time a stage, under Prefect as a task; returns its result."""
        return self.stages.run(name, work, *given)

    def retried(self, name: str, work: Callable[..., _Result], *given: Any) -> _Result:
        """Run a stage; after a transient error, run it again."""
        return self.stages.retried(name, work, *given)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Command:
    """A command on a warehouse. Subclasses are frozen pydantic dataclasses with ``kw_only``.

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
    #: Options that a settings file and variables set, not the command line: few users need them.
    settings_only: ClassVar[tuple[str, ...]] = ()
    #: Inherited fields that are not options of this command.
    without: ClassVar[tuple[str, ...]] = ()

    warehouse: Annotated[
        Path,
        Field(description="Directory of the warehouse, or s3://BUCKET/DIR."),
        On(variable="PLUMBLINE_WAREHOUSE", metavar="DIRECTORY"),
    ] = DEFAULT_WAREHOUSE

    @classmethod
    def of_settings(cls, content: Mapping[str, Any], file: str) -> Mapping[str, object]:
        """Options in its table of a settings file, without the tables of its subcommands."""
        name, table = name_of(cls), content
        for word in name.split():
            table = table.get(word.replace("-", "_"), {}) if isinstance(table, Mapping) else {}
        if not isinstance(table, Mapping):
            fix = f"write [{name.replace(' ', '.')}]"
            raise UsageProblem(f"{file}: {name}", "isn't a table", fix)
        commands = targets()
        return {k: v for k, v in table.items() if f"{name} {k}".replace("_", "-") not in commands}

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


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A field of a command as an argument or option; ``default`` is ``...`` if it is required.

    A field that is a class of options gives one parameter per option; ``path`` leads to the option.
    """

    name: str
    kind: Any
    default: Any
    about: str
    on: On
    path: tuple[str, ...] = ()

    @property
    def option(self) -> str:
        """The option's name on the command line."""
        return f"--{self.on.name or self.name.replace('_', '-')}"

    @property
    def is_list(self) -> bool:
        """True if several values are given, not one text with separators."""
        repeats = self.on.repeated or self.on.positional or get_args(self.kind)[:1] != (str,)
        return get_origin(self.kind) is tuple and repeats

    @property
    def is_path(self) -> bool:
        """True if the value is a path, be it optional or not."""
        return Path in (self.kind, *get_args(self.kind))

    @property
    def needs_text(self) -> bool:
        """True if the value is a text or several, of which an empty one may be meant."""
        return self.kind in (str, tuple[str, ...])

    def value(self, given: Any) -> Any:
        """Convert a value of the command line, a variable, a file or Python to the field's type."""
        if get_origin(self.kind) is not tuple:
            return self._converted(given)
        if isinstance(given, str | Path):
            between = None if self.on.separator == " " else self.on.separator
            text = str(given)
            given = [text] if self.is_list else map(str.strip, text.split(between))
        elif not isinstance(given, list | tuple):
            return given
        return tuple(self._converted(part) for part in given if part != "")

    def _converted(self, given: Any) -> Any:
        """Convert text to a path or a path to text, as the field's type needs."""
        if isinstance(given, str | Path) and self.is_path:
            return address(given) or Path(given)
        return str(given) if isinstance(given, Path) and not self.is_path else given

    def words(self, value: Any) -> list[str]:
        """The words that pass a value on a command line."""
        if self.on.positional:
            return [str(v) for v in (value if self.is_list else [value])]
        if self.is_list:
            return [word for v in value for word in (self.option, str(v))]
        if isinstance(value, bool):
            return [self.option if value else f"--no-{self.option[2:]}"]
        is_tuple = isinstance(value, tuple)
        return [self.option, self.on.separator.join(value) if is_tuple else str(value)]


#: Cache of ``all_fields``: reading a command's type hints takes milliseconds.
_PARAMETERS: dict[type, tuple[Parameter, ...]] = {}


def parameters(kind: type[Command]) -> tuple[Parameter, ...]:
    """Arguments before options of a command, then required before optional, plain before nested.

    In each of these groups the class's own come first, and the warehouse comes last.
    """
    return tuple(p for p in all_fields(kind) if p.path[0] not in kind.without)


def typed_parameters(kind: type[Command]) -> tuple[Parameter, ...]:
    """The parameters that can be given on the command line.

    Options in a table of their own, such as ``fairpair``, are only in settings.
    """
    known = (p for p in parameters(kind) if not p.path[1:])
    return tuple(p for p in known if p.name not in kind.settings_only)


def all_fields(kind: type[Command]) -> tuple[Parameter, ...]:
    """``parameters``, and the inherited fields in ``without``, which `--config` may set."""
    if kind in _PARAMETERS:
        return _PARAMETERS[kind]
    own, last = inspect.get_annotations(kind), inspect.get_annotations(Command)

    def rank(p: Parameter) -> tuple[object, ...]:
        is_optional, name = p.default is not ..., p.path[0]
        return (not p.on.positional, is_optional, len(p.path), name in last, name not in own)

    return _PARAMETERS.setdefault(kind, tuple(sorted(_declared(kind, kind), key=rank)))


def _declared(kind: type, usual: object, path: tuple[str, ...] = ()) -> Iterator[Parameter]:
    """Parameters of a dataclass at ``path``; defaults are the attributes of ``usual``."""
    hints, plain = get_type_hints(kind, include_extras=True), get_type_hints(kind)
    for name in (f.name for f in fields(kind)):
        _, *marks = get_args(hints[name])
        inner, default, whole = plain[name], getattr(usual, name, ...), (*path, name)
        if is_dataclass(inner):
            yield from _declared(cast(type, inner), default, whole)
            continue
        described = [m.description for m in marks if isinstance(m, FieldInfo) and m.description]
        on = next((m for m in reversed(marks) if isinstance(m, On)), On())
        about = " ".join(filter(None, (described[-1], bounds(marks))))
        yield Parameter("_".join(whole), inner, default, about, on, whole)


def bounds(marks: Sequence[object]) -> str:
    """Text of a number's bounds; an upper bound beyond ``_MANY`` is left out.

    >>> bounds([Field(ge=1, le=9)]), bounds([Field(gt=0)]), bounds([Field(ge=1, le=2**63 - 1)])
    ('(1 to 9)', '(more than 0)', '(at least 1)')
    """
    known: dict[str, Any] = {}
    for mark in marks:
        for bound in mark.metadata if isinstance(mark, FieldInfo) else ():
            known |= {n: getattr(bound, n) for n in ("ge", "gt", "le", "lt") if hasattr(bound, n)}
    if known.get("le", 0) > _MANY:
        del known["le"]
    if {"ge", "le"} <= known.keys():
        return f"({known['ge']:,} to {known['le']:,})"
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    ends = [f"{words[name]} {value:,}" for name, value in known.items()]
    return f"({', '.join(ends)})" if ends else ""


def line_of(command: Command, more: Sequence[str] = (), typed: Collection[str] = ()) -> str:
    """The command line of a command, with ``more`` general options.

    Without defaults, except for the options ``typed``, which override a file's.

    >>> from plumbline.pipelines.commands.score import Score
    >>> line_of(Score(model=("m",), benchmark=("use-5", "use-10"), dtype="float16"))
    'plumbline score --benchmark use-5 --benchmark use-10 --model m --dtype float16'
    """
    kind, params = type(command), typed_parameters(type(command))
    values = {p.name: reduce(getattr, p.path, command) for p in params}
    usual = kind.usual({p.name: values[p.name] for p in params if values[p.name] != p.default})
    words = [*more]
    arguments: list[str] = []
    for p in params:
        whole, *inner = p.path
        default = reduce(getattr, inner, usual[whole]) if whole in usual else p.default
        is_needed = p.name in typed or values[p.name] != default
        given_words = p.words(values[p.name]) if is_needed else []
        (arguments if p.on.positional else words).extend(given_words)
    if any(argument.startswith("-") for argument in arguments):  # else it is taken for an option
        words, arguments = [], [*words, "--", *arguments]
    return shlex.join(["plumbline", *name_of(kind).split(), *arguments, *words])


def class_of(name: str) -> type[Command]:
    """The class of a command. Raises ``BadInput`` if a package registered something else."""
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


def execute(command: Command, stages: Stages | None = None) -> Done:
    """Run a command; record the run if it ``records``.

    Raises the command's errors, except ``Done.failed``, which is part of the result.
    """
    from plumbline.warehouse.storage.store import Store

    command.check()
    command.ready()
    store = None
    if command.opens_warehouse:
        made = command.makes_warehouse
        store = Store.open(command.warehouse, create=made, reads=command.reads)
    return execute_on(store, command, stages)


def execute_on(store: Store | None, command: Command, stages: Stages | None = None) -> Done:
    """``execute`` without checks on an open store; ``None`` for a command that opens none."""
    from plumbline.pipelines.stages import Stages

    stages = stages or Stages()
    if store is None or not command.records:
        return command.run(Context(store, "", stages))
    from plumbline.warehouse.run_records import recorded
    from plumbline.warehouse.storage.out_of_date import to_make_again

    name, values = name_of(type(command)), values_of(command)
    before = store.snapshot().out_of_date
    done: Done | None = None
    try:
        with recorded(store, name, values) as run_id:
            done = command.run(Context(store, run_id, stages))
            if done.failed is not None:
                raise done.failed
    except Exception:
        if done is None or done.failed is None:
            raise
    deleted = to_make_again(store.snapshot().out_of_date, before)
    return dataclasses.replace(done, said=[*done.said, *(WARNING + line for line in deleted)])


def values_of(command: Command) -> dict[str, object]:
    """The values of fields that a run records: all but ``warehouse`` and those in ``without``."""
    omitted = {*command.without, "warehouse"}
    return {f.name: getattr(command, f.name) for f in fields(command) if f.name not in omitted}
