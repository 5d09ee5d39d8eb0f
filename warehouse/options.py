"""Make and check the options of a command, which are the fields of a pydantic dataclass."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from reprlib import repr as shortened
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import ConfigDict, Field, ValidationError

from plumbline.warehouse.errors import UsageProblem

#: Configuration of options classes: the text "3" isn't a number, and unknown keys are errors.
STRICT = ConfigDict(strict=True, extra="forbid")
#: Upper bound of quantities that have no natural bound; every file format can store it.
MOST = 10**12
#: A seed for random numbers.
Seed: TypeAlias = Annotated[int, Field(ge=0, le=(1 << 32) - 1)]
#: A frozen dataclass of options.
Options = TypeVar("Options", bound=Any)


def make(kind: type[Options], values: Mapping[str, object]) -> Options:
    """Make an options object of the class ``kind`` from ``values``.

    Raises ``UsageProblem`` for an invalid value, with the option, its value and the reason.
    """
    try:
        options: Options = kind(**values)
        return options
    except ValidationError as e:
        subject, problem, fix = fault(e, [field.name for field in fields(kind)])
        raise UsageProblem(subject or "options", problem, fix) from None


def fault(errors: ValidationError, known: Sequence[str]) -> tuple[str, str, str]:
    """Describe one of pydantic's errors. Return the subject, the problem and the fix as texts.

    ``known`` are the valid keys. The subject contains the wrong key and its value. The key
    ``("pairs", 0, "b")`` becomes ``pairs 1, b``. The subject is empty if several keys are wrong.
    """
    # A misspelt key can cause two errors: an unknown key and a missing key. Report the unknown key.
    error = min(errors.errors(), key=lambda x: x["type"] != "unexpected_keyword_argument")
    parts = (f" {x + 1}, " if isinstance(x, int) else f"{x}." for x in error["loc"])
    key = "".join(parts).replace(". ", " ").replace(",  ", ", ").rstrip("., ")
    message = error["msg"].removeprefix("Input ").removeprefix("Value error, ")
    message = message.replace("an instance of Path", "a path").replace("valid tuple", "list")
    if error["type"] == "unexpected_keyword_argument":
        fix = f"known: {', '.join(known)}" if len(error["loc"]) == 1 else ""
        return f"key {key!r}", "is unknown", fix
    if key.endswith(".[key]"):  # a key that the table doesn't allow
        fix = f"known: {message.removeprefix('should be ')}"
        return f"key {key.removesuffix('.[key]')!r}", "is unknown", fix
    if error["type"] in ("missing", "missing_keyword_only_argument"):
        return key, "is missing", ""
    if error["type"] in ("too_short", "string_too_short") and not error["input"]:
        return key, "is empty", "give a value"
    if error["type"] == "value_error" or not key:
        return key, message, ""
    return f"{key} = {shortened(error['input'])}", message, ""


def check_name(what: str, name: str) -> None:
    """Raise ``UsageProblem`` about ``what`` if ``name`` can't be part of a file name.

    >>> check_name("benchmark 'mine-2'", "mine-2")
    """
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        raise UsageProblem(what, "is not a valid name", "use letters, digits, - _ and .")


def changed(options: Options, values: Mapping[str, object]) -> Options:
    """Return a copy of options with new ``values``. Raises the errors of :func:`make`."""
    same = {field.name: getattr(options, field.name) for field in fields(options)}
    return make(type(options), {**same, **values})


def part(kind: type[Options], larger: object) -> Options:
    """Make options of the class ``kind``. Copy each value from the same field of ``larger``."""
    return make(kind, {field.name: getattr(larger, field.name) for field in fields(kind)})
