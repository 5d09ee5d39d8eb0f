"""Shared by commands on corpora: kinds of fields, and lines and rows for people."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.pipelines.command.base import WARNING, On, Row, planned
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.options import STRICT

if TYPE_CHECKING:
    from plumbline.jobs.association.associations import Associated
    from plumbline.warehouse.storage.store import Store

Shards: TypeAlias = Annotated[
    tuple[str, ...],
    Field(min_length=1, description="Shards: paths, addresses or quoted globs."),
    On(positional=True),
]
#: An argument.
Argument: TypeAlias = Annotated[str, Field(min_length=1), On(positional=True)]
#: An option that is given once for each value.
Several: TypeAlias = Annotated[tuple[str, ...], On(repeated=True)]
#: A number of things, one at least.
Number: TypeAlias = Annotated[int, Field(ge=1, le=10**9)]
TO_COUNT = "to count"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CorpusName:
    """The corpus that a command works on."""

    reads: ClassVar[str] = "corpus"

    corpus: Annotated[str, Field(min_length=1, description="Name of the corpus.")]

    def line(self, command: str) -> str:
        """The line of a further command on the same corpus."""
        return f"plumbline {command} --corpus {shlex.quote(self.corpus)}"

    def rows_of(self, table: str, order: str = "ALL") -> dict[str, Any]:
        """The corpus's rows of a table, as `Done` takes them."""
        query = f"FROM {table} WHERE corpus = $corpus ORDER BY {order}"
        return {"query": query, "params": {"corpus": self.corpus}}


def looked_through(store: Store | None, texts: Iterable[str]) -> Iterator[Row]:
    """The documents of corpora in a plan; of a source, CORPUS:SOURCE, those of its corpus."""
    from plumbline.jobs.corpus_lookup import corpus_row

    assert store is not None, "these commands make no warehouse"
    known = set(store.read("corpus")["corpus"].to_pylist())
    for text in texts:
        row = corpus_row(store, text if text in known else text.partition(":")[0])
        yield planned(text, "documents to look through", row["n_documents"])


def shard_row(path: Path, where: Path | None) -> Row:
    """A shard in the plan of a count, whose partial counts are in ``where`` if anywhere."""
    from plumbline.jobs.counting.partials import is_counted
    from plumbline.warehouse.input.remote_files import describe

    found = describe(path)
    size = found.n_bytes if found else 0
    try:
        what = "counted already" if where and is_counted(where, path) else TO_COUNT
    except BadInput as e:
        return planned(str(path), "can't be read", size, "bytes", str(e))
    return planned(str(path), what, size, "bytes")


def lost(of: CorpusName, done: Associated) -> Iterator[str]:
    """Words of a list without rows, and what was made from older deltas and is gone."""
    if done.rare:
        yield f"No rows: {', '.join(done.rare)} (not in the corpus, or rarer than its --min-count)"
    if done.gone:
        yield f"No longer there: the contrasts {', '.join(done.gone)}"
    again = {
        "pair_association": of.line("benchmark constrain --benchmark NAME"),
        "seed_word": of.line("corpus words"),
    }
    for table, n_of in done.dropped.items():
        if n_of:
            yield (
                f"{WARNING}dropped {sum(n_of.values()):,} rows of `{table}` ({', '.join(n_of)}), "
                f"whose deltas changed; again, each contrast by --contrast: {again[table]}"
            )
