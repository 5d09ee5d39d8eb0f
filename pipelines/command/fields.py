"""Types of fields that several commands have, with what they refuse, and the options they share."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from plumbline.pipelines.command.base import On
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.paths import Address

#: Kernels keep no file of ours there.
_NOT_ON_DISK = ("/proc", "/sys", "/dev")


def _kind(path: Path) -> int | None:
    """The kind of file that a path is, as of ``stat``; ``None`` where there is none."""
    try:
        return stat.S_IFMT(os.stat(path).st_mode)
    except (OSError, ValueError):
        return None


def _input(path: Path) -> Path:
    if not isinstance(path, Address):
        kind = _kind(path)
        if kind is None:
            raise UsageProblem(f"file {path}", "doesn't exist", "give the path of a file")
        if kind != stat.S_IFREG:
            raise UsageProblem(f"file {path}", "is no regular file", "give the path of a file")
    return path


def _output(path: Path) -> Path:
    if isinstance(path, Address):
        return path
    if str(Path(os.path.abspath(path))).startswith(tuple(f"{place}/" for place in _NOT_ON_DISK)):
        raise UsageProblem(f"output {path}", "is no place for files", "give another path")
    above = next((p for p in Path(os.path.abspath(path)).parents if _kind(p) is not None), None)
    if above is not None and _kind(above) != stat.S_IFDIR:
        raise UsageProblem(f"output {path}", f"{above} is a file", "give another path")
    return path


def _output_file(path: Path) -> Path:
    if not isinstance(path, Address) and _kind(path) not in (None, stat.S_IFREG):
        raise UsageProblem(f"output {path}", "is there, and is no regular file", "give a file")
    return _output(path)


def _output_directory(path: Path) -> Path:
    if not isinstance(path, Address) and _kind(path) not in (None, stat.S_IFDIR):
        raise UsageProblem(f"output {path}", "is no directory", "give a directory, or a new name")
    return _output(path)


#: A file that is read; an address is looked at when it is read.
InputFile: TypeAlias = Annotated[Path, AfterValidator(_input)]
#: A file that is written, anew where it is there.
OutputFile: TypeAlias = Annotated[Path, AfterValidator(_output_file)]
#: A directory that is written to, made where it is missing.
OutputDirectory: TypeAlias = Annotated[Path, AfterValidator(_output_directory)]
#: A seed of what is drawn.
Seed: TypeAlias = Annotated[int, Field(ge=0, le=(1 << 32) - 1)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class DataOption:
    """Where released benchmarks and prompts are."""

    data: Annotated[
        Path | None,
        Field(description="Directory of released benchmarks and prompts."),
        On(variable="PLUMBLINE_DATA"),
    ] = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ContrastOption:
    """Which way words lean."""

    contrast: Annotated[
        str, Field(min_length=1, description="Pair such as she/he, or the name of a word list.")
    ] = "she/he"
