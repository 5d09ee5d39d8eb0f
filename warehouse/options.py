"""Options of commands; each is declared once, as a field of a frozen pydantic dataclass."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import ConfigDict, Field, ValidationError

from plumbline.warehouse.errors import UsageProblem

#: Configuration of these dataclasses: the text "3" isn't a number, and unknown keys are errors.
STRICT = ConfigDict(strict=True, extra="forbid")
#: Upper bound of quantities that have no natural bound; every file format can store it.
MOST = 10**12
#: A seed for random numbers.
Seed: TypeAlias = Annotated[int, Field(ge=0, le=(1 << 32) - 1)]
#: A frozen dataclass of options.
Options = TypeVar("Options", bound=Any)


def make(kind: type[Options], values: Mapping[str, object], where: str = "") -> Options:
    """Make options of the class ``kind``.

    Raises ``UsageProblem`` for invalid values, such as ``models.toml: batch_tokens = 0: should be
    greater than 0``. The message begins with ``where``.
    """
    try:
        options: Options = kind(**values)
        return options
    except ValidationError as e:
        error = e.errors()[0]
        if not error["loc"]:  # an error about several options together
            problem = error["msg"].removeprefix("Value error, ")
            raise UsageProblem(where.rstrip(": ") or "options", problem) from None
        name = str(error["loc"][0])
        if error["type"] in ("missing", "missing_keyword_only_argument"):
            raise UsageProblem(f"{where}{name}", "is missing") from None
        if error["type"] == "unexpected_keyword_argument":
            names = ", ".join(field.name for field in fields(kind))
            raise UsageProblem(f"{where}key {name!r}", "is unknown", f"known: {names}") from None
        if error["type"] in ("too_short", "string_too_short") and not error["input"]:
            raise UsageProblem(f"{where}{name}", "is empty", "give a value") from None
        problem = error["msg"].removeprefix("Input ").removeprefix("Value error, ")
        problem = problem.replace("an instance of Path", "a path").replace("valid tuple", "list")
        raise UsageProblem(f"{where}{name} = {values.get(name)!r}", problem) from None
    except UsageProblem as e:
        what, problem, fix = e.args
        raise UsageProblem(f"{where}{what}", problem, fix) from None


def check_name(what: str, name: str) -> None:
    """Raise ``UsageProblem`` if ``name`` can't name rows and files; the error begins with ``what``.

    >>> check_name("benchmark 'mine-2'", "mine-2")
    """
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        raise UsageProblem(what, "is not a valid name", "use letters, digits, - _ and .")


def changed(options: Options, values: Mapping[str, object]) -> Options:
    """Return a copy of options with ``values`` changed. Raises like :func:`make`."""
    same = {field.name: getattr(options, field.name) for field in fields(options)}
    return make(type(options), {**same, **values})


def part(kind: type[Options], larger: object) -> Options:
    """Make options of the class ``kind`` from the fields of ``larger`` with the same names."""
    return make(kind, {field.name: getattr(larger, field.name) for field in fields(kind)})


def words(options: object) -> list[str]:
    """Return the command-line words that set these options, leaving out defaults.

    >>> from plumbline.eval_workers.models.model_options import ModelOptions
    >>> words(ModelOptions(dtype="float16", per_token=True))
    ['--dtype', 'float16', '--per-token']
    """
    defaults = type(options)()
    line = []
    for name, value in asdict(options).items():  # type: ignore[call-overload]
        if value != getattr(defaults, name):
            line += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return line
