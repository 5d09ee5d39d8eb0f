"""Every option of every command, with values that nobody should give."""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from pydantic import AfterValidator

from plumbline.pipelines.command import fields, registry
from plumbline.pipelines.command.base import Command, Parameter, class_of, parameters
from plumbline.pipelines.command.registry import name_of
from plumbline.pipelines.command.settings import made
from plumbline.warehouse.errors import PlumblineError

#: Values of commands that need one of several.
NEEDED: dict[str, dict[str, object]] = {
    "score choose": {"model": "a"},
    "why": {"words": ("a",)},
    "reproduce": {"paper": "fairpair"},
}
#: Checked types of fields, by what they check.
CHECKED = {
    check: kind
    for kind in (
        *(fields.InputFile, fields.InputDirectory, fields.InputPath),
        *(fields.OutputFile, fields.OutputDirectory),
    )
    for check in get_args(kind)
    if isinstance(check, AfterValidator)
}
COMMANDS = tuple(registry.targets())
NUMBERS = (10**20, -(10**20), int("9" * 400), math.inf, -math.inf, math.nan, 1e300, -1e300)
TEXTS = ("", " ", "\0", "\ud800", "\x1b[2J", "a" * 100_000, "9" * 5_000, "/proc", "-1", "nan,inf")
OTHER = (None, True, 1, 0.5, b"a", [], [[]], {}, ["a", None], {"a": 1}, object())


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file, a pipe, a directory and a link to nowhere."""
    where = tmp_path_factory.mktemp("places")
    (where / "file").write_text('{"text": "She is a nurse."}\n')
    os.mkfifo(where / "pipe")
    (where / "directory").mkdir()
    (where / "link").symlink_to("nowhere")
    return where


def marks(kind: type, one: Parameter) -> list[object]:
    """What stands in the annotation of a parameter's field, in its unions too."""
    return list(_within(get_type_hints(kind, include_extras=True)[one.name]))


def _within(hint: object) -> Iterator[object]:
    yield hint
    for part in (*get_args(hint), *getattr(hint, "__metadata__", ())):
        yield from _within(part)


def checked(kind: type, one: Parameter) -> object:
    """The checked type of a path, if it has one."""
    return next((CHECKED[m] for m in marks(kind, one) if isinstance(m, AfterValidator)), None)


def required(kind: type[Command], places: Path) -> dict[str, Any]:
    """Valid values for what a command needs."""
    given = {p.name: _valid(kind, p, places) for p in parameters(kind) if p.default is ...}
    return given | NEEDED.get(name_of(kind), {})


def _valid(kind: type[Command], one: Parameter, places: Path) -> Any:
    if one.kind is Path:
        written = (fields.OutputFile, fields.OutputDirectory)
        is_file = checked(kind, one) is fields.InputFile
        new = checked(kind, one) in written
        return places / ("new" if new else "file" if is_file else "directory")
    if get_origin(one.kind) is tuple:
        return ("a", "b")
    return get_args(one.kind)[0] if get_origin(one.kind) is Literal else "a"


def hostile(one: Parameter, places: Path) -> Iterator[Any]:
    """Values for a parameter that nobody should give; for a list also as parts of it."""
    kinds = {*get_args(one.kind), *get_args(next(iter(get_args(one.kind)), None)), one.kind}
    values: list[Any] = [*NUMBERS, *TEXTS, *OTHER]
    if Path in kinds:
        names = ("file", "pipe", "directory", "link", "none", "file/below")
        paths = [places / name for name in names]
        paths += map(Path, ("/proc", "/proc/none", "/sys/none", "/dev/null", "/", "a" * 5_000))
        values += [*paths, *map(str, paths), "s3://", "s3://bucket", "nothing://a"]
    yield from values
    if get_origin(one.kind) is tuple:
        yield from ((value,) for value in values)


@pytest.mark.parametrize("name", COMMANDS)
def test_no_value_is_a_defect(name: str, places: Path) -> None:
    """A command, or an error that says what is wrong with it."""
    kind = class_of(name)
    given = required(kind, places)
    made(kind, given)  # else a refusal below may be that of what is taken for valid
    for one in parameters(kind):
        n_refused = 0
        for value in hostile(one, places):
            try:
                made(kind, given | {one.name: value})
            except PlumblineError:
                n_refused += 1
            except Exception as e:
                pytest.fail(f"{one.name} = {value!r:.80}: {type(e).__name__}: {e!s:.300}")
        assert n_refused, f"{one.name}: an object is no value of any"
