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
    """Check that a path can be read. Addresses such as s3:// are checked when they are opened."""
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
    Field(min_length=1, description="Benchmark name; repeatable."),
    On(repeated=True),
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class DataOption:
    """The option for the directory of released benchmarks and prompts."""

    data: Annotated[
        Path | None,
        Field(description="Directory of released benchmarks and prompts."),
        On(variable="PLUMBLINE_DATA"),
    ] = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class OutOption:
    """The option for the directory of all output; the warehouse is inside it by default."""

    out: Annotated[
        OutputDirectory, Field(description="Directory for everything that is written.")
    ] = Path("out")

    @classmethod
    def usual(cls, given: Mapping[str, object]) -> Mapping[str, object]:
        """If ``out`` is given, return a directory inside it as the default warehouse."""
        out = given.get("out")
        return {"warehouse": Path(str(out)) / DEFAULT_WAREHOUSE.name} if out else {}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ContrastOption:
    """The option for the target words to compare, such as she and he."""

    contrast: Annotated[
        str, Field(min_length=1, description="Words to compare: a pair (she/he) or a word list.")
    ] = "she/he"


Shards: TypeAlias = Annotated[
    tuple[str, ...],
    Field(min_length=1, description="Text files (shards): paths, s3:// addresses or quoted globs."),
    On(positional=True),
]
#: An option that is repeated for each of its values.
Several: TypeAlias = Annotated[tuple[str, ...], On(repeated=True)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CorpusName:
    """The option for the corpus that a command works on."""

    reads: ClassVar[str] = "corpus"

    corpus: Annotated[str, Field(min_length=1, description="Name of the corpus.")]

    def line(self, command: str) -> str:
        """Return the command line that runs ``command`` on the same corpus."""
        return f"plumbline {command} --corpus {shlex.quote(self.corpus)}"

    def rows_of(self, table: str, order: str = "ALL") -> dict[str, Any]:
        """Return ``query`` and ``params`` of ``Done``. The query selects the corpus's rows."""
        query = f"FROM {table} WHERE corpus = $corpus ORDER BY {order}"
        return {"query": query, "params": {"corpus": self.corpus}}
