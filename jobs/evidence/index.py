"""Find a query's words and targets in the documents that a corpus keeps.

One pass over the documents finds each occurrence of a word, and the targets less than a window
away (``Occurrences``). An ``Index`` describes each document, and counts the co-occurrences of words
and targets in the document. Leans and their explanations are computed from these two classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plumbline.jobs.counting.co_occurrences import Occurrences, Query, co_occurrences, find
from plumbline.jobs.counting.corpus_lookup import corpus_lists
from plumbline.jobs.counting.kept_documents import Documents, Evidence
from plumbline.jobs.kernel.pair_runs import Ints
from plumbline.warehouse.cores import n_cores
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress

Bools = NDArray[np.bool_]
Hashes = NDArray[np.uint64]
T = TypeVar("T")
#: Index, among a batch's columns, of the column with the documents of co-occurrences.
_DOCUMENT = 4
#: Name shown for documents without a source.
UNNAMED = "(none)"


class CoOccurrences(NamedTuple):
    """How often words and targets co-occur in each unit. A unit is a document or a source.

    There is one row for each unit, word and target that co-occur, sorted in this order.

    Attributes:
        unit, word, target: each row's unit, word and target, as indices.
        n: each row's number of co-occurrences, above 0.
        n_target: how often each target (column) occurs in each unit (row).
        source: index of each unit's source.
    """

    unit: Ints
    word: Ints
    target: Ints
    n: Ints
    n_target: Ints
    source: Ints

    def within(self, keep: Bools) -> CoOccurrences:
        """Return only the units for which ``keep`` is true, and renumber the units."""
        rows, number = keep[self.unit], np.cumsum(keep) - 1
        word, target, n = self.word[rows], self.target[rows], self.n[rows]
        unit = number[self.unit[rows]]
        return CoOccurrences(unit, word, target, n, self.n_target[keep], self.source[keep])

    def of_words(self, words: Ints) -> CoOccurrences:
        """Return only the co-occurrences of ``words``, and renumber the words. Keep all units."""
        number = np.full(max(self.word.max(initial=0), words.max(initial=0)) + 1, -1)
        number[words] = np.arange(words.size)
        word = number[self.word]
        unit, target, n = (x[word >= 0] for x in (self.unit, self.target, self.n))
        return self._replace(unit=unit, word=word[word >= 0], target=target, n=n)

    def by(self, clusters: str) -> CoOccurrences:
        """Return the counts per document or per source. ``clusters`` is `document` or `source`."""
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
        """Yield the co-occurrences of each source, in the order of the sources."""
        order = np.argsort(self.source, kind="stable")
        unit = np.argsort(order)[self.unit]
        rows = np.argsort(unit, kind="stable")
        sorted_unit = unit[rows]
        _, first = np.unique(self.source[order], return_index=True)
        for start, end in pairwise([*first.tolist(), order.size]):
            own, units = rows[slice(*np.searchsorted(sorted_unit, [start, end]))], order[start:end]
            columns = self.word[own], self.target[own], self.n[own]
            yield CoOccurrences(
                unit[own] - start, *columns, self.n_target[units], self.source[units]
            )


@dataclass(frozen=True)
class Index:
    """Where a query's words occur in a corpus. Documents are in the order of the shards.

    Attributes:
        query: the words and targets.
        sources: names of the sources.
        shard, row: index of each document's shard, and its line number or row number in the shard,
            from 1.
        n_kept: number of words that the tokenizer kept in each document, including rare words that
            the corpus left out (their id is -1).
        text_hash: hash of each document's kept words, in order. Copies of a document have equal
            hashes. All words that the corpus left out are hashed as the same word.
        n_word: how often each word (column) occurs in each source (row).
        pairs: co-occurrences in each document.
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
    def n_copies(self) -> Ints:
        """Number of copies of each document, including the document itself."""
        _, inverse, n = np.unique(self.text_hash, return_inverse=True, return_counts=True)
        return n[inverse]


def with_phrase(query: Query, documents: Documents) -> Documents:
    """Replace each valid occurrence of the query's phrase with a single id.

    If the query has context words, an occurrence is valid only if it is near one of them. If
    occurrences overlap, only the first can be valid. Without a phrase, the documents are unchanged.
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
    """Return True for each occurrence of the phrase (a ``start``) that is near a context word."""
    offsets, end = documents.offsets, start + len(query.phrase)
    document = np.searchsorted(offsets, start, side="right") - 1
    first = np.maximum(start - query.window + 1, offsets[document])
    last = np.minimum(end + query.window - 1, offsets[document + 1])
    is_context = query.table(query.context)[documents.values] >= 0
    before = np.concatenate([[0], np.cumsum(is_context)])
    found: Bools = before[start] - before[first] + before[last] - before[end] > 0
    return found


def read_index(
    evidence: Evidence,
    query: Query,
    per_batch: Callable[[int, Occurrences, Hashes], T],
) -> tuple[Index, list[T]]:
    """Find a query's words in all documents of a corpus, reading shards in parallel.

    Args:
        per_batch: function that several threads call, once for each batch of documents. Its
            arguments are the shard's index, the occurrences in the batch, and the documents'
            ``text_hashes``. Its results are returned in the order of the documents.
    """
    names = tuple(dict.fromkeys(UNNAMED if x is None else x for x in evidence.sources))
    n_word, lock = np.zeros((len(names), len(query.words)), np.int64), Lock()

    def read(shard: int, documents: Documents) -> tuple[list[Any], T]:
        """Index a batch of documents. Return columns of the index, and ``per_batch``'s result."""
        n_kept, hashes = np.diff(documents.offsets), text_hashes(documents, query.keys)
        documents = with_phrase(query, documents)
        found = find(query, documents)
        named_source = documents.source.fill_null(UNNAMED)
        source = pc.index_in(named_source, value_set=pa.array(names, pa.string())).to_numpy()
        source = source.astype(np.int64)
        cells = np.ravel_multi_index((source[found.document], found.word), n_word.shape)
        cells, n = np.unique(cells, return_counts=True)
        with lock:
            n_word.reshape(-1)[cells] += n
        of_document = np.full(len(documents.row), shard), documents.row, n_kept, hashes
        counts = *co_occurrences(query, found), _target_counts(query, documents), source
        return [*of_document, *counts], per_batch(shard, found, hashes)

    def read_shard(number: int) -> list[tuple[list[Any], T]]:
        documents = evidence.documents(evidence.shards[number], query.ids)
        return [read(number, x) for x in documents]

    results: list[tuple[list[Any], T]] = []
    n_shards = len(evidence.shards)
    with (
        ThreadPoolExecutor(n_cores()) as pool,
        progress("look through documents", "shards") as update,
    ):
        for n_done, of_shard in enumerate(pool.map(read_shard, range(n_shards)), 1):
            results += of_shard
            update(n_done, n_shards)
    n_before = 0
    for columns, _ in results:
        columns[_DOCUMENT] = columns[_DOCUMENT] + n_before
        n_before += len(columns[0])
    columns = [np.concatenate(x) for x in zip(*(columns for columns, _ in results), strict=True)]
    shard, row, n_kept, text_hash, *of_pairs = columns
    index = Index(query, names, shard, row, n_kept, text_hash, n_word, CoOccurrences(*of_pairs))
    return index, [result for _, result in results]


def mixed(x: Hashes) -> Hashes:
    """Hash each 64-bit number with splitmix64's last step. No two numbers have the same hash."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def text_hashes(documents: Documents, keys: Hashes) -> Hashes:
    """Return a hash of each document's words and their order."""
    n = np.diff(documents.offsets)
    place = np.arange(documents.values.size) - np.repeat(documents.offsets[:-1], n) + 1
    with np.errstate(over="ignore"):
        placed = keys[documents.values] + place.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed(placed), dtype=np.uint64)])
        total = sums[documents.offsets[1:]] - sums[documents.offsets[:-1]]
        return mixed(total + n.astype(np.uint64))


def _target_counts(query: Query, documents: Documents) -> Ints:
    """Return how often each target (column) occurs in each document (row)."""
    n = len(query.targets)
    target = query.target_table[documents.values]
    at = np.flatnonzero(target >= 0)
    document = np.searchsorted(documents.offsets, at, side="right") - 1
    cells = document * n + target[at]
    return np.bincount(cells, minlength=len(documents.row) * n).reshape(len(documents.row), n)


Row = dict[str, Any]
NEAR = "NEAR"
#: A phrase has at most this many words.
LONGEST_PHRASE = 5


def parsed(store: Store, corpus: Row, query: str) -> tuple[str, tuple[str, ...]]:
    """Split a query into its word or phrase and the words after ``NEAR``, if any.

    After ``NEAR``, a group's name in capitals (``nurse NEAR FEMALE``) stands for all words of the
    group in the corpus's word lists. Raises ``UsageProblem`` if nothing is before or after
    ``NEAR``, or if a word after ``NEAR`` isn't in the corpus.
    """
    left, near, right = f" {normalised(query)} ".partition(f" {NEAR} ")
    text, others = left.strip(), right.split()
    if not text or (near and not others):
        fix = "give words on both sides, as in 'nurse NEAR she her'"
        raise UsageProblem(f"query {query!r}", "is not complete", fix)
    groups: dict[str, list[str]] = {}
    kept = set(store.read("word_count", corpus=corpus["corpus"])["word"].to_pylist())
    for words in corpus_lists(store, corpus):
        kept.update(words.targets)  # a target is counted even if it is rare
        for name, side in zip(words.groups or (), "ab", strict=False):
            groups.setdefault(name.upper(), []).extend(getattr(p, side) for p in words.pairs)
    if unknown := [x for x in others if x not in groups and x.lower() not in kept]:
        problem = f"{unknown[0]!r} is not a counted word of {corpus['corpus']}"
        fix = ", ".join(["give counted words", *(f"or {name}" for name in groups)])
        raise UsageProblem(f"query {query!r}", problem, fix)
    expanded = (word for x in others for word in groups.get(x, [x.lower()]))
    return text, tuple(dict.fromkeys(expanded))


def normalised(query: str) -> str:
    """Join a query's words with single spaces. Convert the words before ``NEAR`` to lower case.

    >>> normalised("Old  Nurse NEAR  FEMALE")
    'old nurse NEAR FEMALE'
    """
    left, near, right = f" {' '.join(query.split())} ".partition(f" {NEAR} ")
    return f"{left.lower()}{near}{right}".strip()


def of_phrase(
    query: Query, corpus: str, text: str, context: tuple[str, ...] = (), name: str = ""
) -> Query:
    """Return a copy of ``query`` that finds one word or phrase.

    With ``context`` words, an occurrence counts only if it is near one of these words. Results show
    the phrase as ``name`` (default: ``text``).

    Raises ``UsageProblem`` for a phrase that is too long or has a word that isn't in the corpus.
    """
    phrase = tuple(text.split())
    if len(phrase) > LONGEST_PHRASE:
        raise UsageProblem(f"phrase {text!r}", f"has more than {LONGEST_PHRASE} words")
    ids = query.ids(pa.array(phrase, pa.string()))
    if (ids < 0).any():
        word = phrase[int(np.argmin(ids))]
        what = "phrase" if phrase[1:] else "word"
        raise UsageProblem(f"{what} {text!r}", f"{word!r} is not a counted word of {corpus}")
    if not phrase[1:] and not context:
        return replace(query, words=phrase)
    name = name or text
    vocabulary = pa.concat_arrays([query.vocabulary, pa.array([name], pa.string())])
    return replace(query, words=(name,), vocabulary=vocabulary, phrase=phrase, context=context)
