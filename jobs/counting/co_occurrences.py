"""Find words in kept documents, and count how often targets co-occur with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plumbline.jobs.counting.kept_documents import Documents
from plumbline.jobs.kernel.pair_runs import Ints


@dataclass(frozen=True)
class Query:
    """Words to find in a corpus, and the targets to find near them.

    Attributes:
        words: distinct words to find.
        female, male: the female and the male targets. No word is in both.
        listed: all targets of the corpus. They are left out when neighbours are counted.
        rule, window: how the corpus's co-occurrences were counted.
        vocabulary: the corpus's words, sorted, then the phrase, if any. A word's id is its index in
            this array.
        phrase: the words of the phrase to find, if any. The phrase is then the only item of
            ``words``, and each occurrence of the phrase counts as one word.
        context: if given, an occurrence of the phrase counts only if one of these words is less
            than a window before or after it.
    """

    words: tuple[str, ...]
    female: tuple[str, ...]
    male: tuple[str, ...]
    listed: tuple[str, ...]
    rule: str
    window: int
    vocabulary: pa.StringArray
    phrase: tuple[str, ...] = ()
    context: tuple[str, ...] = ()

    @cached_property
    def targets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.female + self.male))

    @property
    def sides(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The female targets, and the male targets."""
        return self.female, self.male

    @property
    def steps(self) -> tuple[int, ...]:
        """All offsets smaller than a window: negative to the left, positive to the right."""
        return (*range(1 - self.window, 0), *range(1, self.window))

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """The hash of each word, in order of word ids. Rare words (id -1) share the last hash."""
        digests = (blake2b(w.encode(), digest_size=8).digest() for w in self.vocabulary.to_pylist())
        return np.frombuffer(b"".join([*digests, bytes(8)]), np.uint64)

    def ids(self, words: pa.StringArray) -> NDArray[np.int32]:
        """Return the id of each word, or -1 for a word that isn't in ``vocabulary``."""
        indices = pc.index_in(words.cast(self.vocabulary.type), value_set=self.vocabulary)
        ids: NDArray[np.int32] = indices.fill_null(-1).to_numpy().astype(np.int32)
        return ids

    def table(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Return each word id's index in ``words``, or -1. The last array item is for id -1."""
        table = np.full(len(self.vocabulary) + 1, -1, np.int32)
        ids = self.ids(pa.array(words, pa.string()))
        table[ids[ids >= 0]] = np.flatnonzero(ids >= 0)
        return table

    @cached_property
    def word_table(self) -> NDArray[np.int32]:
        """The :meth:`table` that maps word ids to indices in ``words``."""
        return self.table(self.words)

    @cached_property
    def target_table(self) -> NDArray[np.int32]:
        """The :meth:`table` that maps word ids to indices in ``targets``."""
        return self.table(self.targets)


@dataclass(frozen=True)
class Occurrences:
    """Occurrences of a query's words in some documents, and the targets near them.

    Attributes:
        documents: the documents. Their values are word ids.
        at: index of each occurrence in ``documents.values``.
        document, word: index of each occurrence's document, and of its word in ``Query.words``.
        occurrence, target, target_at: parallel arrays with one item for each occurrence and target
            less than a window apart: the occurrence's index in ``at``, the target's index in
            ``Query.targets``, and the target's index in ``documents.values``.
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
    # Start from the rarer kind, words or targets, and look for the other kind near it.
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
    """Count the co-occurrences of each word and target in each document.

    Return four parallel arrays: the indices of the document, the word and the target, sorted in
    this order, and the number of co-occurrences. Under the rule ``pairs``, if a word is itself a
    target, two occurrences of the word near each other count as one co-occurrence.
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
        # A document shorter than a window counts as one window.
        low = np.maximum(np.maximum(here, there) - query.window + 1, first)
        high = np.minimum(np.minimum(here, there), np.maximum(end - query.window, first))
        windows = [np.empty(0, np.int64)]  # each number encodes a start, a word and a target
        for start in (low + k for k in range(query.window)):
            cell = (start * n_words + word) * n_targets + target
            windows.append(cell[start <= high])
        start, cell = np.divmod(np.unique(np.concatenate(windows)), n_words * n_targets)
        document = np.searchsorted(found.documents.offsets, start, side="right") - 1
        cells = document * n_words * n_targets + cell
    distinct, n = np.unique(cells, return_counts=True)
    document, word, target = np.unravel_index(distinct, shape)
    return document, word, target, n
