"""The index of a corpus's kept documents: where the words of a query and its targets are.

All evidence about words comes from here. One pass over the documents finds each occurrence of a
word and the targets less than a window away (``Occurrences``). It keeps a row for each document,
and one for each word and target that co-occur in a document (``Index``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plumbline.jobs.counting.document_words import Documents, Evidence
from plumbline.jobs.evidence.queries import Query
from plumbline.warehouse.cores import n_cores

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Hashes = NDArray[np.uint64]
T = TypeVar("T")
#: Greatest number of sources with a row of their own; documents of others count under OTHER.
MOST_SOURCES = 1000
OTHER = "other"
#: Source name of documents that name none.
UNNAMED = "(none)"


class CoOccurrences(NamedTuple):
    """Co-occurrences ``n`` in sampling units: a row per unit, word and target, in this order.

    Attributes:
        unit, word, target: indices of the document or source, the word and the target.
        n: number of co-occurrences, above 0.
        n_target: int64[unit, target], occurrences of the targets in each unit.
        source: int64[unit], the source of each unit.
    """

    unit: Ints
    word: Ints
    target: Ints
    n: Ints
    n_target: Ints
    source: Ints

    def within(self, keep: Bools) -> CoOccurrences:
        """The co-occurrences in some of the units."""
        rows, number = keep[self.unit], np.cumsum(keep) - 1
        word, target, n = self.word[rows], self.target[rows], self.n[rows]
        unit = number[self.unit[rows]]
        return CoOccurrences(unit, word, target, n, self.n_target[keep], self.source[keep])

    def of_words(self, words: Ints) -> CoOccurrences:
        """The co-occurrences of some words, which get new indices; the units stay."""
        number = np.full(max(self.word.max(initial=0), words.max(initial=0)) + 1, -1)
        number[words] = np.arange(words.size)
        word = number[self.word]
        unit, target, n = (x[word >= 0] for x in (self.unit, self.target, self.n))
        return self._replace(unit=unit, word=word[word >= 0], target=target, n=n)

    def by(self, clusters: str) -> CoOccurrences:
        """The co-occurrences by cluster: ``document``, or ``source`` for sums over documents."""
        if clusters == "document":
            return self
        sources, unit = np.unique(self.source, return_inverse=True)
        shape = sources.size, self.word.max(initial=0) + 1, self.n_target.shape[1]
        cells = np.ravel_multi_index((unit[self.unit], self.word, self.target), shape)
        distinct, row = np.unique(cells, return_inverse=True)
        n_target = np.zeros((sources.size, self.n_target.shape[1]), np.int64)
        np.add.at(n_target, unit, self.n_target)
        n = np.bincount(row, self.n, distinct.size).astype(np.int64)
        unit, word, target = np.unravel_index(distinct, shape)
        return CoOccurrences(unit, word, target, n, n_target, sources)

    def each_source(self) -> Iterator[CoOccurrences]:
        """The co-occurrences in the units of each source, in the order of the sources."""
        order = np.argsort(self.source, kind="stable")
        place = np.argsort(order)
        row_source = self.source[self.unit]
        rows = np.argsort(row_source, kind="stable")
        sources = np.unique(self.source)
        of_units, of_rows = (
            np.searchsorted(x, np.append(sources, x.max(initial=0) + 1))
            for x in (self.source[order], row_source[rows])
        )
        for k in range(sources.size):
            units, own = order[of_units[k] : of_units[k + 1]], rows[of_rows[k] : of_rows[k + 1]]
            unit = place[self.unit[own]] - of_units[k]
            columns = self.word[own], self.target[own], self.n[own]
            yield CoOccurrences(unit, *columns, self.n_target[units], self.source[units])


@dataclass(frozen=True)
class Index:
    """All documents of a corpus, shard after shard, and the words of a query in them.

    Attributes:
        query: the words and targets.
        sources: names of the sources.
        shard, row: index of each document's shard, and the line or row there from 1.
        n_kept: number of words that the tokenizer kept, rare ones that the corpus left out (id -1)
            included.
        text_hash: hash of these words in order; equal for copies of one document. All words left
            out hash alike.
        n_word: int64[source, word], occurrences of each word.
        pairs: co-occurrences by document.
    """

    query: Query
    sources: tuple[str, ...]
    shard: Ints
    row: Ints
    n_kept: Ints
    text_hash: Hashes
    n_word: Ints
    pairs: CoOccurrences

    @property
    def source(self) -> Ints:
        """Index of each document's source."""
        return self.pairs.source

    @property
    def n_copies(self) -> Ints:
        """Number of copies of each document, including itself."""
        _, inverse, n = np.unique(self.text_hash, return_inverse=True, return_counts=True)
        return n[inverse]


@dataclass(frozen=True)
class Occurrences:
    """Occurrences of a query's words in some documents, and the targets near them.

    Attributes:
        documents: the documents, with ids as values.
        at: index of each occurrence in ``documents.values``.
        document, word: indices of each occurrence's document and word.
        occurrence, target, target_at: for each occurrence and target less than a window apart:
            indices of the occurrence and the target, and the target's place in the values.
    """

    documents: Documents
    at: Ints
    document: Ints
    word: Ints
    occurrence: Ints
    target: Ints
    target_at: Ints


def find(query: Query, documents: Documents) -> Occurrences:
    """Find the words of a query, and the targets near them."""
    ids, offsets, document = documents.values, documents.offsets, documents.document
    word, target = query.word_table[ids], query.target_table[ids]
    at, target_at = np.flatnonzero(word >= 0), np.flatnonzero(target >= 0)
    # From the fewer of the two to the others.
    forward = at.size <= target_at.size
    here, is_other = (at, target >= 0) if forward else (target_at, word >= 0)
    first, end = offsets[document[here]], offsets[document[here] + 1]
    found = []
    for step in query.steps:
        other = here + (step if forward else -step)
        inside = np.flatnonzero((other >= first) & (other < end))
        inside = inside[is_other[other[inside]]]
        found.append((here[inside], other[inside]))
    these, others = (np.concatenate(x) for x in zip(*found, strict=True))
    word_at, target_at = (these, others) if forward else (others, these)
    occurrence = np.cumsum(word >= 0)[word_at] - 1
    columns = occurrence, target[target_at].astype(np.int64), target_at
    return Occurrences(documents, at, document[at], word[at].astype(np.int64), *columns)


def co_occurrences(query: Query, found: Occurrences) -> tuple[Ints, Ints, Ints, Ints]:
    """Document, word and target, by index and in order, and how often they co-occur by the rule.

    If a word is itself a target, two of its occurrences near each other are one co-occurrence under
    ``pairs``.
    """
    n_words, n_targets = len(query.words), len(query.targets)
    shape = len(found.documents.row), n_words, n_targets
    word, document = found.word[found.occurrence], found.document[found.occurrence]
    here, there, target = found.at[found.occurrence], found.target_at, found.target
    if query.rule == "pairs":
        values = found.documents.values
        once = (values[here] != values[there]) | (there > here)
        cells = np.ravel_multi_index((document[once], word[once], target[once]), shape)
    else:
        first, end = found.documents.offsets[document], found.documents.offsets[document + 1]
        # A document shorter than a window is one window.
        low = np.maximum(np.maximum(here, there) - query.window + 1, first)
        high = np.minimum(np.minimum(here, there), np.maximum(end - query.window, first))
        windows = [np.empty(0, np.int64)]  # start, word and target of each window that holds both
        for start in (low + k for k in range(query.window)):
            cell = (start * n_words + word) * n_targets + target
            windows.append(cell[start <= high])
        start, cell = np.divmod(np.unique(np.concatenate(windows)), n_words * n_targets)
        document = np.searchsorted(found.documents.offsets, start, side="right") - 1
        cells = document * n_words * n_targets + cell
    distinct, n = np.unique(cells, return_counts=True)
    document, word, target = np.unravel_index(distinct, shape)
    return document, word, target, n


def with_phrase(query: Query, documents: Documents) -> Documents:
    """The documents with each counted occurrence of the phrase as one value.

    Of overlapping occurrences only the first is considered, even if it then has no word of the
    context. Without a phrase the documents are unchanged.
    """
    n = len(query.phrase)
    if not n:
        return documents
    values, offsets = documents.values, documents.offsets
    ids = query.ids(pa.array(query.phrase, pa.string()))
    match = np.flatnonzero(values == ids[0])
    match = match[match + n <= offsets[np.searchsorted(offsets, match, side="right")]]
    for step in range(1, n):
        match = match[values[match + step] == ids[step]]
    starts: list[int] = []
    for at in match.tolist():
        if not starts or at >= starts[-1] + n:
            starts.append(at)
    start = np.array(starts, np.int64)
    if query.context:
        start = start[_in_context(query, documents, start)]
    values, is_kept = values.copy(), np.ones(values.size, np.bool_)
    values[start] = len(query.vocabulary) - 1
    is_kept[(start[:, None] + np.arange(1, n)).ravel()] = False
    kept = np.flatnonzero(is_kept)
    ends = np.concatenate([[0], np.cumsum(is_kept)])[offsets]
    place = kept - np.repeat(offsets[:-1], np.diff(ends))
    return documents._replace(values=values[kept], offsets=ends, place=place)


def _in_context(query: Query, documents: Documents, start: Ints) -> Bools:
    """Mask of the phrase's occurrences (by their starts) with a context word in the window."""
    offsets, end = documents.offsets, start + len(query.phrase)
    document = np.searchsorted(offsets, start, side="right") - 1
    first = np.maximum(start - query.window + 1, offsets[document])
    last = np.minimum(end + query.window - 1, offsets[document + 1])
    is_context = query.table(query.context)[documents.values] >= 0
    before = np.concatenate([[0], np.cumsum(is_context)])
    found: Bools = before[start] - before[first] + before[last] - before[end] > 0
    return found


class _Batch(NamedTuple):
    """Columns of ``Index`` and its ``CoOccurrences`` for some documents of a shard."""

    shard: Ints
    row: Ints
    n_kept: Ints
    text_hash: Hashes
    document: Ints
    word: Ints
    target: Ints
    n: Ints
    n_target: Ints
    source: Ints


def read_index(
    evidence: Evidence,
    query: Query,
    per_batch: Callable[[int, Occurrences, Hashes], T],
    progress: Callable[[int, int], None] = lambda *_: None,
    *,
    most_sources: int | None = None,
) -> tuple[Index, list[T]]:
    """Find the words of a query in all documents of a corpus; shards are read in parallel.

    Args:
        per_batch: called in several threads with a shard's index, the occurrences in some of its
            documents, and these documents' ``text_hashes``; its results are returned in order.
        progress: called with (shards done, shards).
        most_sources: sources with a row of their own, ``MOST_SOURCES`` by default.
    """
    most = MOST_SOURCES if most_sources is None else most_sources
    named = list(dict.fromkeys(UNNAMED if x is None else x for x in evidence.sources))
    names = (*named[:most], *([OTHER] if named[most:] else ()))
    n_word, lock = np.zeros((len(names), len(query.words)), np.int64), Lock()

    def read(shard: int, documents: Documents) -> tuple[_Batch, T]:
        n_kept, hashes = np.diff(documents.offsets), text_hashes(documents, query.keys)
        documents = with_phrase(query, documents)
        found = find(query, documents)
        named_source = documents.source.fill_null(UNNAMED)
        source = pc.index_in(named_source, value_set=pa.array(named, pa.string())).to_numpy()
        source = np.minimum(source.astype(np.int64), most)
        cells = np.ravel_multi_index((source[found.document], found.word), n_word.shape)
        cells, n = np.unique(cells, return_counts=True)
        with lock:
            n_word.reshape(-1)[cells] += n
        batch = _Batch(
            np.full(len(documents.row), shard),
            documents.row,
            n_kept,
            hashes,
            *co_occurrences(query, found),
            _target_counts(query, documents),
            source,
        )
        return batch, per_batch(shard, found, hashes)

    results = read_shards(evidence, query, read, progress)
    batches = [batch for batch, _ in results]
    starts = np.cumsum([0, *(len(batch.row) for batch in batches)])
    of_corpus = (
        batch._replace(document=batch.document + start)
        for batch, start in zip(batches, starts, strict=False)
    )
    whole = _Batch(*(np.concatenate(columns) for columns in zip(*of_corpus, strict=True)))
    pairs = whole.document, whole.word, whole.target, whole.n
    counted = CoOccurrences(*pairs, whole.n_target, whole.source)
    documents = whole.shard, whole.row, whole.n_kept, whole.text_hash
    return Index(query, names, *documents, n_word, counted), [result for _, result in results]


def read_shards(
    evidence: Evidence,
    query: Query,
    read: Callable[[int, Documents], T],
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[T]:
    """Results of ``read`` for batches of all documents, in order; shards are read in parallel.

    ``read`` gets the shard's index and the batch.
    """
    done = 0

    def read_shard(index: int) -> list[T]:
        nonlocal done
        batches = evidence.documents(evidence.shards[index], query.ids)
        results = [read(index, documents) for documents in batches]
        done += 1
        progress(done, len(evidence.shards))
        return results

    with ThreadPoolExecutor(n_cores()) as pool:
        parts = pool.map(read_shard, range(len(evidence.shards)))
        return [result for results in parts for result in results]


def mixed(x: Hashes) -> Hashes:
    """A hash of 64-bit numbers, one to one (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def text_hashes(documents: Documents, keys: Hashes) -> Hashes:
    """A hash of each document's words and their places."""
    n = np.diff(documents.offsets)
    place = np.arange(documents.values.size) - np.repeat(documents.offsets[:-1], n) + 1
    with np.errstate(over="ignore"):
        placed = keys[documents.values] + place.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed(placed), dtype=np.uint64)])
        total = sums[documents.offsets[1:]] - sums[documents.offsets[:-1]]
        return mixed(total + n.astype(np.uint64))


def _target_counts(query: Query, documents: Documents) -> Ints:
    """Occurrences of each target in each document, int64[document, target]."""
    n = len(query.targets)
    target = query.target_table[documents.values]
    at = np.flatnonzero(target >= 0)
    document = np.searchsorted(documents.offsets, at, side="right") - 1
    cells = document * n + target[at]
    return np.bincount(cells, minlength=len(documents.row) * n).reshape(len(documents.row), n)
