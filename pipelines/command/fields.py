"""Options that several commands share, and types that check the values of options."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from plumbline.pipelines.command.base import DEFAULT_WAREHOUSE, On
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.paths import Address, check_input, check_output


def _read(path: Path, **allowed: bool) -> Path:
    """Check that a file or directory can be read. Skips addresses such as s3://."""
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
#: A file or directory to read.
InputPath: TypeAlias = Annotated[Path, AfterValidator(partial(_read, directory=True))]
#: A file to write; an existing file is replaced.
OutputFile: TypeAlias = Annotated[Path, AfterValidator(_written)]
#: A directory to write to; created if missing.
OutputDirectory: TypeAlias = Annotated[Path, AfterValidator(partial(_written, directory=True))]
#: Names of benchmarks in the warehouse.
BenchmarkNames: TypeAlias = Annotated[
    tuple[str, ...],
    Field(min_length=1, description="Name of a benchmark. Can be repeated."),
    On(repeated=True),
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class DataOption:
    """Adds --data: the directory of released benchmarks and prompts."""

    data: Annotated[
        Path | None,
        Field(description="Directory that holds released benchmarks and prompts."),
        On(variable="PLUMBLINE_DATA"),
    ] = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class OutOption:
    """Adds --out: the directory for all output. The default warehouse is inside this directory."""

    out: Annotated[OutputDirectory, Field(description="Directory for all output.")] = Path("out")

    @classmethod
    def usual(cls, given: Mapping[str, object]) -> Mapping[str, object]:
        """If ``out`` is given, make ``out``/warehouse the default warehouse."""
        out = given.get("out")
        return {"warehouse": Path(str(out)) / DEFAULT_WAREHOUSE.name} if out else {}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ContrastOption:
    """Adds --contrast: the target words to compare, such as she and he."""

    contrast: Annotated[
        str, Field(min_length=1, description="Words to compare: a pair (she/he), or a word list.")
    ] = "she/he"


Shards: TypeAlias = Annotated[
    tuple[str, ...],
    Field(min_length=1, description="Text files to read: paths, s3:// addresses or quoted globs."),
    On(positional=True),
]
#: An option that is repeated for each of its values.
Several: TypeAlias = Annotated[tuple[str, ...], On(repeated=True)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CorpusName:
    """Adds --corpus: the name of the corpus to work on."""

    reads: ClassVar[str] = "corpus"

    corpus: Annotated[str, Field(min_length=1, description="Name of the corpus.")]

    def line(self, command: str) -> str:
        """Return a command line that runs another command on the same corpus."""
        return f"plumbline {command} --corpus {shlex.quote(self.corpus)}"

    def rows_of(self, table: str, order: str = "ALL") -> dict[str, Any]:
        """Return the ``query`` and ``params`` that select this corpus's rows of a table."""
        query = f"FROM {table} WHERE corpus = $corpus ORDER BY {order}"
        return {"query": query, "params": {"corpus": self.corpus}}
