"""The arguments and options of a command, read from the fields of its class."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

from plumbline.pipelines.command.base import Command, On
from plumbline.warehouse.paths import address


@dataclass(frozen=True)
class Parameter:
    """A field of a command as an argument or option; ``default`` is ``...`` if it is required."""

    name: str
    kind: Any
    default: Any
    about: str
    on: On

    @property
    def option(self) -> str:
        """The option's name on the command line."""
        return f"--{self.on.name or self.name.replace('_', '-')}"

    @property
    def is_list(self) -> bool:
        """True if each value is typed by itself, not all in one text with commas."""
        repeats = self.on.repeated or self.on.positional or get_args(self.kind)[:1] != (str,)
        return get_origin(self.kind) is tuple and repeats

    @property
    def is_path(self) -> bool:
        """True if the value is a path, required or optional."""
        return Path in (self.kind, *get_args(self.kind))

    def value(self, given: Any) -> Any:
        """Convert a value to the field's type, whether typed, from a file or from Python."""
        if get_origin(self.kind) is not tuple:
            return self._converted(given)
        if isinstance(given, str | Path):
            given = [str(given)] if self.is_list else map(str.strip, str(given).split(","))
        elif not isinstance(given, list | tuple):
            return given
        return tuple(self._converted(part) for part in given if part != "")

    def _converted(self, given: Any) -> Any:
        """Convert text to a path or a path to text, depending on the field's type."""
        if isinstance(given, str | Path) and self.is_path:
            return address(given) or Path(given)
        return str(given) if isinstance(given, Path) and not self.is_path else given


def parameters(kind: type[Command]) -> tuple[Parameter, ...]:
    """Return a command's parameters: arguments before options, then required before optional.

    Within each of these groups, fields of the class itself come first, the warehouse last.
    """
    return tuple(p for p in all_fields(kind) if p.name not in kind.without)


#: Cache of ``all_fields``: reading a command's type hints takes milliseconds.
_FIELDS: dict[type, tuple[Parameter, ...]] = {}


def all_fields(kind: type[Command]) -> tuple[Parameter, ...]:
    """Return ``parameters`` and the fields in ``without``, which are no command-line options."""
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
