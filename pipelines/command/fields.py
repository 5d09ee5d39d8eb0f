"""Field types with checks, and options, that several commands use."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from plumbline.pipelines.command.base import On
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.paths import Address, check_input, check_output


def _read(path: Path, **allowed: bool) -> Path:
    """Check a path that is read; an address is checked when it is opened."""
    if not isinstance(path, Address):
        check_input(path, **allowed)
    return path


def _written(path: Path, directory: bool = False) -> Path:
    check_output(path, directory=directory)
    return path


InputFile: TypeAlias = Annotated[Path, AfterValidator(_read)]
InputDirectory: TypeAlias = Annotated[
    Path, AfterValidator(partial(_read, file=False, directory=True))
]
#: A file or a directory that is read.
InputPath: TypeAlias = Annotated[Path, AfterValidator(partial(_read, directory=True))]
#: A file that is written; an existing one is replaced.
OutputFile: TypeAlias = Annotated[Path, AfterValidator(_written)]
#: A directory that is written to; created if it is missing.
OutputDirectory: TypeAlias = Annotated[Path, AfterValidator(partial(_written, directory=True))]
Seed: TypeAlias = Annotated[int, Field(ge=0, le=(1 << 32) - 1)]
#: Patterns of benchmarks.
Benchmarks: TypeAlias = Annotated[
    tuple[str, ...],
    Field(description="Only these benchmarks, a pattern such as 'ages*'; repeatable."),
    On(repeated=True, metavar="PATTERN"),
]
#: An argument: a benchmark in the warehouse.
BenchmarkName: TypeAlias = Annotated[
    str, Field(min_length=1, description="A benchmark in the warehouse."), On(positional=True)
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class DataOption:
    """Directory of released benchmarks and prompts."""

    data: Annotated[
        Path | None,
        Field(description="Directory of released benchmarks and prompts."),
        On(variable="PLUMBLINE_DATA"),
    ] = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ContrastOption:
    """The contrast that words lean along."""

    contrast: Annotated[
        str, Field(min_length=1, description="Pair such as she/he, or the name of a word list.")
    ] = "she/he"
