"""The kept documents of a corpus."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from plumbline.jobs.counting.corpus_lookup import corpus_language, corpus_list, corpus_row
from plumbline.jobs.counting.corpus_options import CorpusOptions, options_of
from plumbline.jobs.counting.kept_documents import Documents, ValueOf, read_documents, readable
from plumbline.jobs.counting.partials import partials_directory, token_files
from plumbline.jobs.kernel.tokens.tokenizer import Targets
from plumbline.warehouse.errors import MissingComponent, UsageProblem
from plumbline.warehouse.storage.store import Store

#: With at least this many sources, intervals are over sources by default, else over documents.
FEWEST_SOURCES = 10


@dataclass(frozen=True)
class Shard:
    """A shard of a corpus: its name as given, and the fingerprint of the counted content."""

    name: str
    fingerprint: str


@dataclass(frozen=True)
class Evidence:
    """Kept documents of a counted corpus.

    Attributes:
        corpus: the corpus's row of table ``corpus``.
        targets, options: what it was counted with.
        directory: directory of the partial counts.
        shards: the shards that were counted, in the order given.
    """

    corpus: dict[str, Any]
    targets: Targets
    options: CorpusOptions
    directory: Path
    shards: tuple[Shard, ...]

    def documents(self, shard: Shard, value_of: ValueOf) -> Iterator[Documents]:
        """Yield the documents of a shard; see :func:`read_documents`."""
        yield from read_documents(token_files(self.directory, shard.fingerprint), value_of)

    @cached_property
    def sources(self) -> tuple[str | None, ...]:
        """Names of the documents' sources as they appear, without reading the documents.

        Raises:
            BadInput: a file is damaged.
        """
        names: dict[str | None, None] = {}
        for shard in self.shards:
            for tokens, _ in token_files(self.directory, shard.fingerprint):
                with readable(tokens):
                    column = pq.read_table(tokens, columns=["source"])["source"]
                    names.update(dict.fromkeys(column.unique().to_pylist()))
        return tuple(names)


def evidence_of(store: Store, corpus: str) -> Evidence:
    """Find the kept documents of a corpus.

    Raises:
        UsageProblem: there is no such corpus, or it was imported, or counted without evidence.
        MissingComponent: the files that counting left are not on this machine.
    """
    row = corpus_row(store, corpus)
    if row["source"] != "counted":
        problem = "was imported: its documents are not known"
        raise UsageProblem(f"corpus {corpus!r}", problem, "count text with plumbline corpus count")
    if row["source_field"] is None:
        problem = "was counted without keeping its documents"
        raise UsageProblem(f"corpus {corpus!r}", problem, "count it again, with --evidence")
    targets = Targets(corpus_list(store, row).targets, corpus_language(row).token_rules)
    options = options_of(row)
    directory = partials_directory(store, targets, options)
    ledger = store.read("corpus_shard", corpus=corpus).to_pylist()
    shards = [Shard(x["shard"], x["fingerprint"]) for x in ledger if x["status"] == "counted"]
    for shard in shards:
        if not (directory / f"{shard.fingerprint}.json").is_file():
            problem = "is not on this machine"
            fix = "run the same plumbline corpus count again here; the tables stay as they are"
            raise MissingComponent(f"evidence of {shard.name}", problem, fix)
    return Evidence(row, targets, options, directory, tuple(shards))
