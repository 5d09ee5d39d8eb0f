"""Read the words of a corpus's kept documents from the files that counting wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from plumbline.jobs.counting.corpus_lookup import corpus_language, corpus_lists, corpus_row
from plumbline.jobs.counting.partials import partials_directory, token_files
from plumbline.jobs.kernel.corpus_options import CorpusOptions, options_of
from plumbline.jobs.kernel.tokens.tokenizer import Targets
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem
from plumbline.warehouse.storage.store import Store

#: A function that returns a value for each word of an array.
ValueOf: TypeAlias = Callable[[pa.StringArray], NDArray[Any]]


class Documents(NamedTuple):
    """Whole documents of one shard, in order.

    Attributes:
        values: one value per kept word, such as the word's id, document after document.
        offsets: index of each document's first value in ``values``, then the length of ``values``.
        row: line number or row number of each document in its shard, from 1.
        source: name of each document's source, or NULL if its record names no source.
        place: if words of a phrase were joined into one value, each value's position in its
            document before the words were joined. ``None`` if no words were joined.
    """

    values: NDArray[Any]
    offsets: NDArray[np.int64]
    row: NDArray[np.int64]
    source: pa.StringArray
    place: NDArray[np.int64] | None = None

    def places(self, at: NDArray[np.int64], document: NDArray[np.int64]) -> NDArray[np.int64]:
        """Convert ``at``, indices in ``values``, to positions in the values' documents, from 0."""
        return at - self.offsets[document] if self.place is None else self.place[at]

    def part(self, first: int, end: int) -> Documents:
        """Return the documents from index ``first`` up to, but not including, ``end``."""
        start, stop = self.offsets[first], self.offsets[end]
        offsets = self.offsets[first : end + 1] - start
        source = self.source.slice(first, end - first)
        return Documents(self.values[start:stop], offsets, self.row[first:end], source)

    @property
    def document(self) -> NDArray[np.int64]:
        """The index of each kept word's document."""
        return np.repeat(np.arange(len(self.row)), np.diff(self.offsets))


@contextmanager
def readable(tokens: Path) -> Iterator[None]:
    """Raise ``BadInput`` if the code in a ``with`` block can't read a file of kept documents."""
    try:
        yield
    except (OSError, pa.ArrowInvalid) as e:
        fix = "count the corpus again with --replace"
        raise BadInput(f"evidence {tokens.name}", f"can't be read: {e}", fix) from e


def _values(words: pa.Table, value_of: ValueOf) -> NDArray[Any]:
    """Return an array that gives, for each word id in a file, the value of the word."""
    ids = words["word_id"].to_numpy()
    values = value_of(words["word"].combine_chunks())
    by_id = np.zeros(int(ids.max(initial=-1)) + 1, values.dtype)
    by_id[ids] = values
    return by_id


def _documents(rows: pa.Table, value: NDArray[Any]) -> Documents:
    """Convert rows of a token file to documents. A long document may span several rows."""
    tokens, source = rows["tokens"].combine_chunks(), rows["source"].combine_chunks()
    offsets = tokens.offsets.to_numpy().astype(np.int64)
    values = value[tokens.values.to_numpy()[offsets[0] : offsets[-1]]]
    return Documents(values, offsets - offsets[0], rows["source_row"].to_numpy(), source)


def _joined(
    a: Documents, a_number: NDArray[np.int64], b: Documents, b_number: NDArray[np.int64]
) -> tuple[Documents, NDArray[np.int64]]:
    """Join two batches. The first document of ``b`` may continue the last document of ``a``."""
    same = int(a_number[-1] == b_number[0])
    documents = Documents(
        np.concatenate([a.values, b.values]),
        np.concatenate([a.offsets[: len(a.row)], b.offsets[same:] + a.values.size]),
        np.concatenate([a.row, b.row[same:]]),
        pa.concat_arrays([a.source, b.source.slice(same)]),
    )
    return documents, np.concatenate([a_number, b_number[same:]])


#: Intervals use sources as clusters if there are at least this many sources, else documents.
FEWEST_SOURCES = 10


@dataclass(frozen=True)
class Shard:
    """A shard of a corpus: the name that the user gave, and the fingerprint of its content."""

    name: str
    fingerprint: str


@dataclass(frozen=True)
class Evidence:
    """Kept documents of a counted corpus.

    Attributes:
        corpus: the corpus's row of table ``corpus``.
        targets, options: the targets and options that the corpus was counted with.
        directory: directory of the partial counts.
        shards: the shards that were counted, in the order in which the user listed them.
    """

    corpus: dict[str, Any]
    targets: Targets
    options: CorpusOptions
    directory: Path
    shards: tuple[Shard, ...]

    def documents(self, shard: Shard, value_of: ValueOf) -> Iterator[Documents]:
        """Yield a shard's documents in batches, with a value for each kept word.

        Args:
            value_of: function that returns a value for each word of an array, always of one dtype.

        Raises:
            BadInput: a file is damaged.
        """
        pending: tuple[Documents, NDArray[np.int64]] | None = None
        for tokens, words in token_files(self.directory, shard.fingerprint):
            with readable(tokens):
                value = _values(pq.read_table(words, columns=["word", "word_id"]), value_of)
                file = pq.ParquetFile(tokens)
                for group in range(file.num_row_groups):
                    rows = file.read_row_group(group)
                    documents, number = _documents(rows, value), rows["document"].to_numpy()
                    if pending:
                        documents, number = _joined(*pending, documents, number)
                    # The last document may continue in the next row group.
                    n_whole = len(number) - 1
                    if n_whole:
                        yield documents.part(0, n_whole)
                    pending = documents.part(n_whole, n_whole + 1), number[n_whole:]
        if pending:
            yield pending[0]

    @cached_property
    def sources(self) -> tuple[str | None, ...]:
        """Names of the documents' sources, in order of appearance. Only source columns are read.

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

    @property
    def clusters(self) -> str:
        """What intervals use as clusters: `source` if there are enough sources, else `document`."""
        return "source" if len(self.sources) >= FEWEST_SOURCES else "document"


def evidence_of(store: Store, corpus: str) -> Evidence:
    """Find the kept documents of a corpus.

    Raises:
        UsageProblem: the corpus is unknown, was imported, or was counted without ``--evidence``.
        MissingComponent: the files of the kept documents are not on this machine.
    """
    row = corpus_row(store, corpus)
    if row["source"] != "counted":
        problem = "was imported: its documents are not known"
        raise UsageProblem(f"corpus {corpus!r}", problem, "count text with plumbline corpus count")
    if row["source_field"] is None:
        problem = "was counted without keeping its documents"
        raise UsageProblem(f"corpus {corpus!r}", problem, "count it again, with --evidence")
    targets = Targets(corpus_lists(store, row)[0].targets, corpus_language(row).token_rules)
    options = options_of(row)
    directory = partials_directory(store, targets, options)
    ledger = store.read("corpus_shard", corpus=corpus).to_pylist()
    shards = [Shard(x["shard"], x["fingerprint"]) for x in ledger if x["status"] == "counted"]
    for shard in shards:
        if not (directory / shard.fingerprint).is_dir():
            problem = "is not on this machine"
            fix = "run the same plumbline corpus count again here; the tables stay as they are"
            raise MissingComponent(f"evidence of {shard.name}", problem, fix)
    return Evidence(row, targets, options, directory, tuple(shards))
