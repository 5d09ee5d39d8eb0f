"""Types of fields, rows of plans and printed lines that several commands on corpora share."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.pipelines.command.base import On, Row, planned
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.options import STRICT

if TYPE_CHECKING:
    from plumbline.warehouse.storage.store import Store

Shards: TypeAlias = Annotated[
    tuple[str, ...],
    Field(min_length=1, description="Shards: paths, addresses or quoted globs."),
    On(positional=True),
]
#: A positional argument.
Argument: TypeAlias = Annotated[str, Field(min_length=1), On(positional=True)]
#: An option that is repeated for each of its values.
Several: TypeAlias = Annotated[tuple[str, ...], On(repeated=True)]
#: A count or limit, at least 1.
Number: TypeAlias = Annotated[int, Field(ge=1, le=10**9)]
#: State, in a plan, of a shard that has no partial counts.
TO_COUNT = "to count"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CorpusName:
    """The corpus that a command works on."""

    reads: ClassVar[str] = "corpus"

    corpus: Annotated[str, Field(min_length=1, description="Name of the corpus.")]

    def line(self, command: str) -> str:
        """The command line that runs another command on the same corpus."""
        return f"plumbline {command} --corpus {shlex.quote(self.corpus)}"

    def rows_of(self, table: str, order: str = "ALL") -> dict[str, Any]:
        """Fields of `Done` for the corpus's rows in a table: ``query`` and ``params``."""
        query = f"FROM {table} WHERE corpus = $corpus ORDER BY {order}"
        return {"query": query, "params": {"corpus": self.corpus}}


def lookup_rows(store: Store | None, names: Iterable[str]) -> Iterator[Row]:
    """Rows of a plan: documents to look through; for CORPUS:SOURCE all documents of the corpus."""
    from plumbline.jobs.counting.corpus_lookup import corpus_row

    assert store is not None, "only commands that make a warehouse plan without one"
    corpora = set(store.read("corpus")["corpus"].to_pylist())
    for name in names:
        row = corpus_row(store, name if name in corpora else name.partition(":")[0])
        yield planned(name, "documents to look through", row["n_documents"])


def shard_row(path: Path, partials: Path | None) -> Row:
    """The row of a shard in the plan of a count; ``partials``: directory of partial counts."""
    from plumbline.jobs.counting.partials import is_counted
    from plumbline.warehouse.input.remote_files import describe

    file = describe(path)
    size = file.n_bytes if file else 0
    try:
        state = "counted already" if partials and is_counted(partials, path) else TO_COUNT
    except BadInput as e:
        return planned(str(path), "can't be read", size, "bytes", str(e))
    return planned(str(path), state, size, "bytes")
