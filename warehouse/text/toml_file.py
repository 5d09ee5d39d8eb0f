"""Read TOML files that users write. Each error is one line that names the file and the key.

A class decorated with ``toml_table`` describes a TOML table: its keys and their types.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import field
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)
from pydantic.dataclasses import dataclass

from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.options import STRICT, fault
from plumbline.warehouse.paths import content
from plumbline.warehouse.plugins import Registry

Kind = TypeVar("Kind")
if TYPE_CHECKING:
    from typing import dataclass_transform

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def toml_table(kind: type[Kind]) -> type[Kind]: ...
else:
    toml_table = dataclass(frozen=True, config=STRICT)


def _split(value: object) -> object:
    return tuple(value.split()) if isinstance(value, str) else value


def _split_set(value: object) -> object:
    return frozenset(value.split()) if isinstance(value, str) else value


def _several(value: object) -> object:
    return tuple(value) if isinstance(value, list) else (value,)


#: A non-empty text: ``Text`` as written, ``Stripped`` without the blanks around it.
Text: TypeAlias = Annotated[str, Field(min_length=1)]
Stripped: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
#: A list of texts.
Texts: TypeAlias = tuple[str, ...]
#: Words. The file has them as one text, separated by blanks.
Words: TypeAlias = Annotated[frozenset[str], BeforeValidator(_split_set)]
WordsInOrder: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_split)]
#: For a field that is a tuple: the file may give one value or a list of values.
OneOrMore = BeforeValidator(_several)
#: A finite number, at least 0.
Amount: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def one_of(*names: str) -> AfterValidator:
    """Return a validator that accepts only ``names``. Use it for texts and for a table's keys."""

    def check(text: str) -> str:
        if text not in names:
            raise ValueError(", ".join(names))
        return text

    return AfterValidator(check)


def load(kind: type[Kind], source: Path | Traversable | str, what: str, **fixed: object) -> Kind:
    """Make an object of the dataclass ``kind`` from a TOML file or TOML text.

    A ``source`` of type ``str`` is TOML text. Any other ``source`` is a file. Messages call it
    ``what``. ``fixed`` sets fields that the file must not set. Raises ``UsageProblem`` if the file
    doesn't exist. Raises ``BadInput``, with the key and the expected value, for invalid content.
    """
    content = parsed(source if isinstance(source, str) else read_text(source, what), what)
    return checked(kind, content, what, **fixed)


def checked(kind: type[Kind], content: Mapping[str, Any], what: str, **fixed: object) -> Kind:
    """Make an object of ``kind`` from a file's content. Raises ``BadInput`` like :func:`load`."""
    for key in fixed.keys() & content.keys():
        raise BadInput(f"{what}: key {key!r}", "is unknown")
    try:  # Pass JSON: in strict mode, pydantic accepts a list as a tuple only from JSON.
        text = json.dumps({**content, **fixed}, skipkeys=True, default=_table_of)
        return TypeAdapter(kind).validate_json(text)
    except RecursionError as e:
        raise BadInput(what, "is nested too deeply") from e
    except UsageProblem as e:
        name, problem, fix = e.args
        raise BadInput(f"{what}: {name}", problem, fix) from e
    except ValidationError as e:
        known = [name for name in getattr(kind, "__pydantic_fields__", {}) if name not in fixed]
        subject, problem, fix = fault(e, known)
        raise BadInput(f"{what}: {subject}" if subject else what, problem, fix) from e


def _table_of(value: object) -> dict[str, str]:
    """Convert a date or time to a dictionary, which makes text fields reject the value."""
    return {type(value).__name__: str(value)}


def read(file: Path | Traversable, what: str = "") -> dict[str, Any]:
    """Read a TOML file. Messages call it ``what``.

    Raises ``UsageProblem`` if the file doesn't exist, ``BadInput`` if it isn't TOML in UTF-8.
    """
    what = what or str(file)
    return parsed(read_text(file, what), what)


def read_text(file: Path | Traversable, what: str, fix: str = "") -> str:
    """Read a UTF-8 file. Messages call it ``what``. ``fix`` is advice for a missing file.

    Raises ``UsageProblem`` if the file is missing, ``BadInput`` if it is unreadable.
    """
    try:
        return (content(file) if isinstance(file, Path) else file.read_bytes()).decode()
    except FileNotFoundError:
        raise UsageProblem(what, "no such file", fix or "check the path") from None
    except (OSError, UnicodeDecodeError) as e:
        raise BadInput(what, f"can't be read: {e}", "save it as UTF-8") from e


def named_text(parts: Registry, name: str) -> tuple[str, str, str]:
    """Find a file by its registered name, or by a path that ends in ``.toml``.

    Returns the name, the file's text, and a subject for messages, such as ``language fr``. If
    ``name`` is a path, the returned name is the path's stem. Raises the errors of ``read_text`` and
    ``Registry.text``. Also raises ``UsageProblem`` if the stem is a registered name.
    """
    path, what = Path(name), f"{parts.noun} {name}"
    if path.suffix != ".toml":
        return name, parts.text(name), what
    text = read_text(path, what)
    if path.stem in parts.names():
        raise UsageProblem(what, f"the name {path.stem} is taken", "rename it")
    return path.stem, text, what


def parsed(text: str, what: str) -> dict[str, Any]:
    """Parse a TOML text. Raises ``BadInput`` if it isn't valid TOML."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as e:
        raise BadInput(what, f"is not valid TOML: {e}") from e
