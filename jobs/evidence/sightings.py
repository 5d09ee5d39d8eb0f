"""Occurrences of words near targets, from one pass over a corpus's documents.

All evidence about a word comes from its occurrences and the targets less than a window away from
them. So one pass stores little: a row for each document, and one for each word in a document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plumbline.jobs.counting.document_words import Documents, Evidence
from plumbline.warehouse.cores import n_cores

Ints = NDArray[np.int64]
T = TypeVar("T")
#: Greatest number of sources with a row of their own; documents of others count under OTHER.
MOST_SOURCES = 1000
#: More sources than any corpus has, so that each has its row.
ALL_SOURCES = 1 << 62
OTHER = "other"
#: Source name of documents that name none.
UNNAMED = "(none)"


@dataclass(frozen=True)
class Inquiry:
    """Words and targets to look for in a corpus.

    Attributes:
        words: distinct words to find.
        female, male: the targets of each side; no word is on both.
        listed: all targets of the corpus, which don't count as collocates.
        rule, window: how co-occurrences were counted.
        vocabulary: the words of the corpus by id, sorted; then the phrase, if there is one.
        phrase: the words of a phrase, which is then the only item of ``words``; each of its
            occurrences counts as one word.
        near: if given, an occurrence of the phrase counts only with one of these words less than
            a window before its first or after its last word.
    """

    words: tuple[str, ...]
    female: tuple[str, ...]
    male: tuple[str, ...]
    listed: tuple[str, ...]
    rule: str
    window: int
    vocabulary: pa.StringArray
    phrase: tuple[str, ...] = ()
    near: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets of both sides, each once."""
        return tuple(dict.fromkeys(self.female + self.male))

    @property
    def sides(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The female and the male targets."""
        return self.female, self.male

    @property
    def steps(self) -> tuple[int, ...]:
        """Distances less than a window: negative to the left, positive to the right."""
        return (*range(1 - self.window, 0), *range(1, self.window))

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """A hash of each word's letters, by id; the last hash is for words left out (id -1)."""
        digests = (blake2b(w.encode(), digest_size=8).digest() for w in self.vocabulary.to_pylist())
        return np.frombuffer(b"".join([*digests, bytes(8)]), np.uint64)

    def ids(self, words: pa.StringArray) -> NDArray[np.int32]:
        """Ids of words, -1 for words that the corpus left out."""
        indices = pc.index_in(words.cast(self.vocabulary.type), value_set=self.vocabulary)
        ids: NDArray[np.int32] = indices.fill_null(-1).to_numpy().astype(np.int32)
        return ids

    def table(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Array from id to index in ``words``, -1 for other words; the last item is for id -1."""
        table = np.full(len(self.vocabulary) + 1, -1, np.int32)
        ids = self.ids(pa.array(words, pa.string()))
        table[ids[ids >= 0]] = np.flatnonzero(ids >= 0)
        return table


def joined(question: Inquiry, documents: Documents) -> Documents:
    """The documents with each counted occurrence of the phrase as one value.

    Of overlapping occurrences only the first is considered, even if it then has no ``near`` word.
    Without a phrase the documents are unchanged.
    """
    n = len(question.phrase)
    if not n:
        return documents
    values, offsets = documents.values, documents.offsets
    ids = question.ids(pa.array(question.phrase, pa.string()))
    match = np.flatnonzero(values == ids[0])
    match = match[match + n <= offsets[np.searchsorted(offsets, match, side="right")]]
    for step in range(1, n):
        match = match[values[match + step] == ids[step]]
    starts: list[int] = []
    for at in match.tolist():
        if not starts or at >= starts[-1] + n:
            starts.append(at)
    start = np.array(starts, np.int64)
    if question.near:
        start = start[_have_near(question, documents, start)]
    values, is_kept = values.copy(), np.ones(values.size, np.bool_)
    values[start] = len(question.vocabulary) - 1
    is_kept[(start[:, None] + np.arange(1, n)).ravel()] = False
    kept = np.flatnonzero(is_kept)
    ends = np.concatenate([[0], np.cumsum(is_kept)])[offsets]
    place = kept - np.repeat(offsets[:-1], np.diff(ends))
    return documents._replace(values=values[kept], offsets=ends, place=place)


def _have_near(question: Inquiry, documents: Documents, start: Ints) -> NDArray[np.bool_]:
    """Mask of the phrase's occurrences (by their starts) with a ``near`` word in the window."""
    offsets, end = documents.offsets, start + len(question.phrase)
    document = np.searchsorted(offsets, start, side="right") - 1
    first = np.maximum(start - question.window + 1, offsets[document])
    last = np.minimum(end + question.window - 1, offsets[document + 1])
    is_near = question.table(question.near)[documents.values] >= 0
    before = np.concatenate([[0], np.cumsum(is_near)])
    has_near: NDArray[np.bool_] = before[start] - before[first] + before[last] - before[end] > 0
    return has_near


@dataclass(frozen=True)
class DocumentTable:
    """Every document of a corpus, shard after shard.

    Attributes:
        shard, row: index of the document's shard, and the line or row there from 1.
        source: index of the document's source in ``sources``.
        n_kept: number of words that the tokenizer kept, rare ones that the corpus left out (id -1)
            included; an occurrence of the phrase is one word.
        n_target: int64[n, target], occurrences of each target.
        mark: hash of these words in order, before phrases are joined; equal for copies of one
            document. All words left out hash alike.
        sources: names of the sources.
    """

    shard: Ints
    row: Ints
    source: Ints
    n_kept: Ints
    n_target: Ints
    mark: NDArray[np.uint64]
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Sightings:
    """Documents that hold words of an inquiry: one row per document and word.

    Attributes:
        question: the words and targets.
        documents: all documents of the corpus.
        document, word: the document and the word, by index.
        n_word: occurrences of the word in the document.
        n_near: int64[n, target], co-occurrences with each target under the counting rule.
    """

    question: Inquiry
    documents: DocumentTable
    document: Ints
    word: Ints
    n_word: Ints
    n_near: Ints


@dataclass(frozen=True)
class Meetings:
    """Occurrences of an inquiry's words in some documents, and the targets near them.

    Attributes:
        documents: the documents, with ids as values.
        at: index of each occurrence in ``documents.values``.
        document, word: indices of each occurrence's document and word.
        occurrence, target, target_at: for each meeting of an occurrence with a target less than a
            window away: indices of the occurrence, the target, and the target's place in values.
    """

    documents: Documents
    at: Ints
    document: Ints
    word: Ints
    occurrence: Ints
    target: Ints
    target_at: Ints


def meetings(question: Inquiry, documents: Documents) -> Meetings:
    """Find the words of an inquiry, and the targets near them."""
    ids = documents.values
    words, targets = question.table(question.words), question.table(question.targets)
    word = words[ids]
    at = np.flatnonzero(word >= 0)
    document = np.searchsorted(documents.offsets, at, side="right") - 1
    start, end = documents.offsets[document], documents.offsets[document + 1]
    parts = []
    for step in question.steps:
        inside = np.flatnonzero((at + step >= start) & (at + step < end))
        target = targets[ids[at[inside] + step]]
        near = inside[target >= 0]
        parts.append((near, target[target >= 0], at[near] + step))
    met = (np.concatenate(x).astype(np.int64) for x in zip(*parts, strict=True))
    return Meetings(documents, at, document, word[at].astype(np.int64), *met)


def neighbours(question: Inquiry, met: Meetings, occurrence: Ints) -> tuple[Ints, Ints]:
    """Words less than a window away from some occurrences: index of the occurrence, id of the word.

    Targets and words that the corpus left out don't count.
    """
    ids, offsets = met.documents.values, met.documents.offsets
    is_target = question.table(question.listed) >= 0
    at, document = met.at[occurrence], met.document[occurrence]
    parts = []
    for step in question.steps:
        inside = np.flatnonzero(
            (at + step >= offsets[document]) & (at + step < offsets[document + 1])
        )
        other = ids[at[inside] + step]
        counted = (other >= 0) & ~is_target[other]
        parts.append((occurrence[inside][counted], other[counted].astype(np.int64)))
    near, other = (np.concatenate(x) for x in zip(*parts, strict=True))
    return near, other


def near_counts(question: Inquiry, met: Meetings, group: Ints, n_groups: int) -> Ints:
    """Co-occurrences of each group of occurrences with each target, int64[group, target].

    ``group`` has the group of each occurrence; a group is one word in one document. If the word is
    itself a target, two of its occurrences near each other are one co-occurrence under ``pairs``.
    """
    n = len(question.targets)
    if question.rule == "pairs":
        values = met.documents.values
        is_same_word = values[met.at[met.occurrence]] == values[met.target_at]
        once = ~is_same_word | (met.target_at > met.at[met.occurrence])
        cell = group[met.occurrence[once]] * n + met.target[once]
        return np.bincount(cell, minlength=n_groups * n).reshape(n_groups, n)
    document = met.document[met.occurrence]
    first, end = met.documents.offsets[document], met.documents.offsets[document + 1]
    here, there = met.at[met.occurrence], met.target_at
    # A document shorter than a window is one window.
    low = np.maximum(np.maximum(here, there) - question.window + 1, first)
    high = np.minimum(np.minimum(here, there), np.maximum(end - question.window, first))
    cell = group[met.occurrence] * n + met.target
    windows = [  # (group and target, start) of each window that holds both
        np.stack([cell[low + k <= high], (low + k)[low + k <= high]])
        for k in range(question.window)
    ]
    distinct = np.unique(np.concatenate(windows, axis=1), axis=1)[0]
    return np.bincount(distinct, minlength=n_groups * n).reshape(n_groups, n)


#: A function of a shard's index, the meetings in some of its documents, and these documents' marks.
#: Several threads call it.
Watcher = Callable[[int, Meetings, NDArray[np.uint64]], None]


def look(
    evidence: Evidence,
    question: Inquiry,
    watch: Watcher | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
    *,
    most_sources: int | None = None,
) -> Sightings:
    """Find the words of an inquiry in all documents of a corpus; shards are read in parallel.

    Args:
        progress: called with (shards done, shards).
        most_sources: sources with a row of their own, ``MOST_SOURCES`` by default.
    """

    def look_at(shard: int, _: int, documents: Documents) -> _BatchColumns:
        met = meetings(question, joined(question, documents))
        marks = document_marks(documents, question.keys)
        if watch:
            watch(shard, met, marks)
        return _part(question, met, shard, marks)

    parts = read_shards(evidence, question, look_at, progress)
    return _put_together(question, parts, MOST_SOURCES if most_sources is None else most_sources)


def read_shards(
    evidence: Evidence,
    question: Inquiry,
    read: Callable[[int, int, Documents], T],
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[T]:
    """Results of ``read`` for batches of all documents, in order; shards are read in parallel.

    ``read`` gets the shard's index, the number of its documents before the batch, and the batch.
    """
    done = 0

    def read_shard(index: int) -> list[T]:
        nonlocal done
        results, n_before = [], 0
        for documents in evidence.documents(evidence.shards[index], question.ids):
            results.append(read(index, n_before, documents))
            n_before += len(documents.row)
        done += 1
        progress(done, len(evidence.shards))
        return results

    with ThreadPoolExecutor(n_cores()) as pool:
        parts = pool.map(read_shard, range(len(evidence.shards)))
        return [result for results in parts for result in results]


def mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of 64-bit numbers, one to one (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class _BatchColumns(NamedTuple):
    """Columns of ``DocumentTable`` and ``Sightings`` for some documents of a shard."""

    shard: Ints
    row: Ints
    source: pa.StringArray
    n_kept: Ints
    n_target: Ints
    mark: NDArray[np.uint64]
    document: Ints
    word: Ints
    n_word: Ints
    n_near: Ints


def document_marks(documents: Documents, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of each document's words and their places."""
    n = np.diff(documents.offsets)
    place = np.arange(documents.values.size) - np.repeat(documents.offsets[:-1], n) + 1
    with np.errstate(over="ignore"):
        placed = keys[documents.values] + place.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed(placed), dtype=np.uint64)])
        total = sums[documents.offsets[1:]] - sums[documents.offsets[:-1]]
        return mixed(total + n.astype(np.uint64))


def _part(question: Inquiry, met: Meetings, shard: int, marks: NDArray[np.uint64]) -> _BatchColumns:
    documents, n_words = met.documents, len(question.words)
    cells, group = np.unique(met.document * n_words + met.word, return_inverse=True)
    document, word = np.divmod(cells, n_words)
    return _BatchColumns(
        np.full(len(documents.row), shard),
        documents.row,
        documents.source.fill_null(UNNAMED),
        np.diff(documents.offsets),
        _target_counts(question, documents),
        marks,
        document,
        word,
        np.bincount(group, minlength=cells.size),
        near_counts(question, met, group, cells.size),
    )


def _target_counts(question: Inquiry, documents: Documents) -> Ints:
    """Occurrences of each target in each document, int64[document, target]."""
    n = len(question.targets)
    target = question.table(question.targets)[documents.values]
    at = np.flatnonzero(target >= 0)
    document = np.searchsorted(documents.offsets, at, side="right") - 1
    cells = document * n + target[at]
    return np.bincount(cells, minlength=len(documents.row) * n).reshape(len(documents.row), n)


def _put_together(
    question: Inquiry, parts: Sequence[_BatchColumns], most_sources: int
) -> Sightings:
    nothing = np.empty(0, np.int64)
    none = Documents(nothing, np.zeros(1, np.int64), nothing, pa.array([], pa.string()))
    empty = _part(question, meetings(question, none), 0, nothing.astype(np.uint64))
    parts = [empty, *parts]
    names, source = source_index([part.source for part in parts], most_sources)
    first = np.cumsum([0, *(len(part.row) for part in parts)])
    document = [part.document + start for part, start in zip(parts, first, strict=False)]

    def columns(*names: str) -> Iterator[NDArray[Any]]:
        return (np.concatenate([getattr(part, name) for part in parts]) for name in names)

    shard, row, n_kept, n_target, mark = columns("shard", "row", "n_kept", "n_target", "mark")
    table = DocumentTable(shard, row, source, n_kept, n_target, mark, names)
    word_columns = columns("word", "n_word", "n_near")
    return Sightings(question, table, np.concatenate(document), *word_columns)


def source_index(columns: Sequence[pa.StringArray], most: int) -> tuple[tuple[str, ...], Ints]:
    """Names of sources as they appear, OTHER after ``most``; index of each document's source."""
    encoded = pa.chunked_array(columns, pa.string()).combine_chunks().dictionary_encode()
    names = encoded.dictionary.to_pylist()
    index = encoded.indices.to_numpy().astype(np.int64)
    if len(names) > most:
        names, index = [*names[:most], OTHER], np.minimum(index, most)
    return tuple(names), index
