"""Options of commands: each declared once, as an annotated field of a frozen pydantic dataclass.

The field's type, bounds, default and description are those of the command's option, of the key in a
TOML file and of what a run records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.text.toml_file import read

#: Configuration of these dataclasses: the text "3" is not a number, and no other key is allowed.
STRICT = ConfigDict(strict=True, extra="forbid")
#: A frozen dataclass of options.
Options = TypeVar("Options", bound=Any)


def make(kind: type[Options], values: Mapping[str, object], where: str = "") -> Options:
    """Options of a kind. Raises ``UsageProblem`` that begins with ``where`` for invalid values.

    >>> from plumbline.eval_workers.options import ModelOptions
    >>> make(ModelOptions, {"batch_tokens": 0}, "models.toml: ")
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.UsageProblem: models.toml: batch_tokens = 0: should be greater than 0
    """
    try:
        made: Options = kind(**values)
        return made
    except ValidationError as e:
        error = e.errors()[0]
        name = str(error["loc"][0])
        if error["type"] == "unexpected_keyword_argument":
            known = ", ".join(field.name for field in fields(kind))
            raise UsageProblem(f"{where}key {name!r}", "is unknown", f"known: {known}") from None
        if error["type"] in ("too_short", "string_too_short") and not error["input"]:
            raise UsageProblem(f"{where}{name}", "is empty") from None
        problem = error["msg"].removeprefix("Input ")
        raise UsageProblem(f"{where}{name} = {values.get(name)!r}", problem) from None
    except UsageProblem as e:
        what, problem, fix = e.args
        raise UsageProblem(f"{where}{what}", problem, fix) from None


def changed(options: Options, values: Mapping[str, object], where: str = "") -> Options:
    """The same options but for ``values``. Raises as :func:`make`.

    >>> from plumbline.eval_workers.options import ModelOptions
    >>> changed(ModelOptions(), {"dtype": "bfloat16"}).dtype
    'bfloat16'
    """
    same = {field.name: getattr(options, field.name) for field in fields(options)}
    return make(type(options), {**same, **values}, where)


def part(kind: type[Options], larger: object) -> Options:
    """The options of a kind among larger options.

    >>> from plumbline.eval_workers.fairpair.spec import FairPairSpec
    >>> from plumbline.eval_workers.options import ModelOptions
    >>> part(ModelOptions, FairPairSpec(dtype="float16")) == ModelOptions(dtype="float16")
    True
    """
    return make(kind, {field.name: getattr(larger, field.name) for field in fields(kind)})


def load(options: Options, path: Path | None, given: Mapping[str, object]) -> Options:
    """``options``, changed by the keys of a TOML file, if there is one, then by what is ``given``.

    ``None`` in ``given`` counts as not given. Raises ``UsageProblem`` for a file that doesn't exist
    and for unknown keys and invalid values, ``BadInput`` for a file that is not TOML; both name it.

    >>> from plumbline.eval_workers.options import ModelOptions
    >>> load(ModelOptions(), None, {"device": "cpu", "dtype": None}).device
    'cpu'
    """
    if path is not None:
        options = changed(options, _read(path), f"config {path}: ")
    return changed(options, {k: v for k, v in given.items() if v is not None})


@dataclass(frozen=True)
class Option:
    """One option: its name, the fields that lead to it, its type, default and what it means."""

    name: str
    path: tuple[str, ...]
    kind: Any
    default: Any
    description: str


def declared(kind: type, path: tuple[str, ...] = (), usual: object = None) -> dict[str, Option]:
    """The options that a dataclass declares, by name; those of a dataclass in it after its name.

    ``usual``: an instance whose values are the defaults, instead of those of the class.

    >>> from plumbline.pipelines.settings import Settings
    >>> declared(Settings)["dtype"].description, declared(Settings)["fairpair_n"].path
    ('Type of the weights.', ('fairpair', 'n'))
    """
    found: dict[str, Option] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if get_origin(hint) is not Annotated:  # not an option, such as what a request is about
            continue
        inner, *marks = get_args(hint)
        (about,) = (mark for mark in marks if isinstance(mark, FieldInfo))
        default, whole = getattr(usual or kind, name, None), (*path, name)
        if is_dataclass(inner):
            found |= declared(cast(type, inner), whole, default)
        else:
            joined = "_".join(whole)
            found[joined] = Option(joined, whole, inner, default, str(about.description))
    return found


def words(options: object) -> list[str]:
    """The words of a command line that give these options; what is a default is left out.

    >>> from plumbline.eval_workers.options import ModelOptions
    >>> words(ModelOptions(dtype="float16", per_token=True))
    ['--dtype', 'float16', '--per-token']
    """
    usual = type(options)()
    found = []
    for name, value in asdict(options).items():  # type: ignore[call-overload]
        if value != getattr(usual, name):
            found += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return found


def _read(path: Path) -> dict[str, object]:
    found = read(path, f"config {path}")
    return {k: tuple(v) if isinstance(v, list) else v for k, v in found.items()}
