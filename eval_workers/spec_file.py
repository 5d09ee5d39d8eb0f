"""Options from a TOML file whose keys are the fields of a frozen dataclass, and from a command."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from plumbline.warehouse.errors import BadInput, UsageProblem

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: A frozen dataclass whose ``__post_init__`` may raise ``UsageProblem``.
Spec = TypeVar("Spec", bound=Any)

_KINDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def load(spec: Spec, path: Path | None, given: Mapping[str, object]) -> Spec:
    """``spec`` with the keys of a file, if one is named, and what is ``given`` in place of both.

    ``None`` in ``given`` counts as not given. Raises ``UsageProblem`` for a file that isn't there
    and for keys and values that can't be, ``BadInput`` for a file that is no TOML; both name it.

    >>> from plumbline.eval_workers.backends.sampling import SamplingOptions
    >>> load(SamplingOptions(), None, {"seed": 7, "top_k": None}).seed
    7
    """
    if path is not None:
        spec = _checked(spec, _typed(type(spec), path, _read(path)), f"config {path}: ")
    return _checked(spec, {k: v for k, v in given.items() if v is not None}, "")


def _checked(spec: Spec, values: Mapping[str, Any], where: str) -> Spec:
    try:
        return replace(spec, **values)
    except UsageProblem as e:
        what, problem, fix = e.args
        raise UsageProblem(f"{where}{what}", problem, fix) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise UsageProblem(f"config {path}", "no such file") from None
    except (OSError, ValueError) as e:
        raise BadInput(f"config {path}", f"can't be read: {e}", "save it as TOML in UTF-8") from e


def _typed(kind: type[Any], path: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    known = [f.name for f in fields(kind)]
    kinds = get_type_hints(kind)
    typed = {}
    for key, value in values.items():
        if key not in known:
            raise UsageProblem(f"config {path}", f"no key {key!r}", f"known: {', '.join(known)}")
        wanted, fits = _fits(kinds[key], value)
        if not fits:
            raise UsageProblem(f"config {path}", f"{key} is {value!r}", f"expected {wanted}")
        typed[key] = tuple(value) if isinstance(value, list) else value
    return typed


def _fits(kind: Any, value: object) -> tuple[str, bool]:
    """What is expected of a value of this kind, and whether it is that.

    >>> _fits(float, 3), _fits(int, True), _fits(int | None, "3")
    (('a number', True), ('a whole number', False), ('a whole number', False))
    """
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind))), value in get_args(kind)
    if get_origin(kind) is tuple:
        is_list = isinstance(value, list) and all(isinstance(v, str) for v in value)
        return "a list of texts", is_list
    (plain,) = [k for k in (get_args(kind) or (kind,)) if k is not type(None)]
    allowed = (int, float) if plain is float else (plain,)
    return _KINDS[plain], type(value) in allowed
