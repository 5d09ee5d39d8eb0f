"""Field types with checks, and options, that several commands use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from plumbline.pipelines.command.base import On
from plumbline.warehouse import regular_files
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.paths import Address

#: Checks of outputs, which refuse addresses: files are written to this machine only.
_OF_OUTPUTS = (regular_files.check_output_file, regular_files.check_output_directory)


def _checked(check: Callable[[Path], None]) -> AfterValidator:
    """Check a path now; an address that is read is checked when it is opened."""

    def checked(path: Path) -> Path:
        if not isinstance(path, Address) or check in _OF_OUTPUTS:
            check(path)
        return path

    return AfterValidator(checked)


InputFile: TypeAlias = Annotated[Path, _checked(regular_files.check_input)]
InputDirectory: TypeAlias = Annotated[Path, _checked(regular_files.check_input_directory)]
#: A file or a directory that is read.
InputPath: TypeAlias = Annotated[Path, _checked(regular_files.check_input_path)]
#: A file that is written; an existing one is replaced.
OutputFile: TypeAlias = Annotated[Path, _checked(regular_files.check_output_file)]
#: A directory that is written to; created if it is missing.
OutputDirectory: TypeAlias = Annotated[Path, _checked(regular_files.check_output_directory)]
ReportDirectory: TypeAlias = Annotated[
    OutputDirectory, Field(description="Directory of the report.")
]
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
