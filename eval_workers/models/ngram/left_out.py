"""An n-gram model's probabilities without each part of its text, all parts at once.

Without a part, a of an n-gram is smaller by its occurrences there, or by the longer n-grams that
end with it and stand nowhere else. Only n-grams after the contexts of the sentences asked about
matter. Words and discounts stay those of the whole text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from plumbline.eval_workers.models.ngram.ngram_model import (
    Sentence,
    estimated_discount,
    laid_out,
)
from plumbline.eval_workers.models.ngram.text_words import BOS, Ints

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
#: Probabilities without each part that are held at once.
_HELD = 4096


@dataclass(frozen=True)
class Counts:
    """N-grams of some sentences, shortest first: lists by length, from 1.

    Attributes:
        n_words: number of different words.
        words, position: of all sentences laid out.
        keys: of each n-gram the number of its context, times ``n_words``, plus its last word.
        adjusted: a of each n-gram.
        ids: of each word of ``words`` the n-gram that it ends, -1 without one.
        firsts: where in ``words`` each n-gram first ends; empty for single words.
    """

    n_words: int
    words: Ints
    position: Ints
    keys: Sequence[Ints]
    adjusted: Sequence[Ints]
    ids: Sequence[Ints]
    firsts: Sequence[Ints]


def counts(sentences: Sequence[Sentence], n_words: int, order: int) -> Counts:
    """The n-grams of some sentences, up to those of ``order`` words; 300 bytes a word of them."""
    words, position = laid_out(sentences)
    occurrences = np.bincount(words, minlength=n_words)
    ids, lengths, adjusted = [words], [np.arange(n_words)], []
    firsts = [np.array([], dtype=np.int64)]
    for n in range(2, order + 1):
        ends = np.flatnonzero(position >= n - 1)
        keys, first, inverse, n_each = np.unique(
            ids[-1][ends - 1] * n_words + words[ends],
            return_index=True, return_inverse=True, return_counts=True,
        )  # fmt: skip
        every = np.full(len(words), -1)
        every[ends] = inverse
        adjusted.append(np.bincount(ids[-1][ends[first]], minlength=len(lengths[-1])))
        if n > 2:  # nothing is before a sentence's beginning
            begins = position[firsts[-1]] == n - 2
            adjusted[-1][begins] = occurrences[begins]
        ids.append(every)
        lengths.append(keys)
        firsts.append(ends[first])
        occurrences = n_each
    adjusted.append(occurrences)
    adjusted[0][BOS] = 0
    return Counts(n_words, words, position, lengths, adjusted, ids, firsts)


@dataclass(frozen=True)
class _Fewer:
    """How much smaller numbers of things are without some parts: sorted cells thing x part."""

    n_parts: int
    cells: Ints
    by: Ints

    def of(self, thing: int) -> Floats:
        """How much smaller its number is without each part; nothing is left out in the last."""
        start, end = np.searchsorted(self.cells, [thing * self.n_parts, (thing + 1) * self.n_parts])
        dense = np.zeros(self.n_parts + 1)
        dense[self.cells[start:end] % self.n_parts] = self.by[start:end]
        return dense


class LeftOut:
    """Log-probabilities of sentences by a text's n-grams without each of its parts.

    Args:
        counted: of the whole text.
        part: of each of its sentences, the number of its part.
        n_parts: how many there are.
        sentences: those that will be asked about, at least.
    """

    def __init__(
        self, counted: Counts, part: Ints, n_parts: int, sentences: Sequence[Sentence]
    ) -> None:
        self._counted, self._n_parts = counted, n_parts
        starts = counted.position == 0
        self._part = part[np.cumsum(starts) - 1]
        self._discounts = [estimated_discount(a) for a in counted.adjusted]
        self._chains = lru_cache(_HELD)(self._probabilities)
        contexts = self._contexts(sentences)
        self._fewer, self._of_context, self._vanished = [], [], []
        for n, a in enumerate(counted.adjusted, 1):
            context = counted.keys[n - 1] // counted.n_words if n > 1 else np.zeros_like(a)
            cells, by = self._smaller(n, np.isin(context, contexts[n - 1]))
            thing, of_part = np.divmod(cells, n_parts)
            in_context = context[thing] * n_parts + of_part
            gone = by == a[thing]
            self._fewer.append(_Fewer(n_parts, cells, by))
            self._of_context.append(_summed(n_parts, in_context, by))
            self._vanished.append(_summed(n_parts, in_context[gone], np.ones(gone.sum(), np.int64)))
        self._total = [self._sums(n, a) for n, a in enumerate(counted.adjusted, 1)]
        self._types = [
            self._sums(n, (a > 0).astype(np.int64)) for n, a in enumerate(counted.adjusted, 1)
        ]

    def logprob(self, sentence: Sentence) -> Floats:
        """ln p(sentence | BOS) without each part; the last is that of the whole text."""
        words = [BOS, *map(int, sentence)]
        total = np.zeros(self._n_parts + 1)
        for end in range(1, len(words)):
            total += self._chains(tuple(words[max(end + 1 - len(self._fewer), 0) : end + 1]))
        return total

    def _probabilities(self, words: tuple[int, ...]) -> Floats:
        """ln P(last | the words before) of the last of some words."""
        value = np.full(self._n_parts + 1, 1.0 / (self._counted.n_words - 1))
        context = 0
        for n in range(1, len(words) + 1):
            if n > 1 and (context := self._id(words[-n:-1])) < 0:
                break
            ngram = self._id(words[-n:])
            total = self._total[n - 1][context] - self._of_context[n - 1].of(context)
            types = self._types[n - 1][context] - self._vanished[n - 1].of(context)
            a = np.zeros(self._n_parts + 1)
            if ngram >= 0:
                a = self._counted.adjusted[n - 1][ngram] - self._fewer[n - 1].of(ngram)
            discount, is_seen = self._discounts[n - 1], total > 0
            at_least = np.maximum(total, 1)
            left = np.where(is_seen, discount * types / at_least, 1.0)
            value = np.maximum(a - discount, 0) / at_least + left * value
        logs: Floats = np.log(value)
        return logs

    def _id(self, words: Sequence[int]) -> int:
        """The number of an n-gram among those of its length, -1 without it."""
        found = words[0]
        for n, word in enumerate(words[1:], 2):
            keys = self._counted.keys[n - 1]
            key = found * self._counted.n_words + word
            found = int(np.searchsorted(keys, key))
            if found == len(keys) or keys[found] != key:
                return -1
        return found

    def _contexts(self, sentences: Sequence[Sentence]) -> list[list[int]]:
        """Of each length the contexts of words of the sentences, by number."""
        found: list[set[int]] = [{0}, *(set() for _ in self._counted.keys[1:])]
        for sentence in sentences:
            words = [BOS, *map(int, sentence)]
            for end in range(1, len(words)):
                for n in range(2, min(end + 1, len(found)) + 1):
                    found[n - 1].add(self._id(words[end - n + 1 : end]))
        return [sorted(some - {-1}) for some in found]

    def _sums(self, n: int, a: Ints) -> Ints:
        """Sums over the n-grams after each context."""
        if n == 1:
            return np.array([a.sum()])
        contexts = self._counted.keys[n - 1] // self._counted.n_words
        return np.bincount(contexts, a, len(self._counted.keys[n - 2])).astype(np.int64)

    def _smaller(self, n: int, is_asked: Bools) -> tuple[Ints, Ints]:
        """Cells n-gram x part where a is smaller without the part, and by how much."""
        counted, longest = self._counted, len(self._counted.keys)
        begins = np.zeros(len(is_asked), np.bool_)  # those of several words that begin with BOS
        if n > 1:
            begins = counted.position[counted.firsts[n - 1]] == n - 1
        counts_all = begins | (n == longest)
        ends = np.flatnonzero(counted.ids[n - 1] >= 0)
        own = counted.ids[n - 1][ends]
        ends = ends[(counts_all & is_asked)[own]]
        cells = [counted.ids[n - 1][ends] * self._n_parts + self._part[ends]]
        if n < longest:
            suffix = counted.ids[n - 1][counted.firsts[n]]
            owner = self._owner(n + 1)
            alone = (owner >= 0) & (is_asked & ~counts_all)[suffix]
            cells.append(suffix[alone] * self._n_parts + owner[alone])
        return np.unique(np.concatenate(cells), return_counts=True)

    def _owner(self, n: int) -> Ints:
        """The part that alone holds each n-gram; -1 where several do."""
        ids = self._counted.ids[n - 1]
        ends = np.flatnonzero(ids >= 0)
        low = np.full(len(self._counted.keys[n - 1]), self._n_parts)
        high = np.full(len(low), -1)
        np.minimum.at(low, ids[ends], self._part[ends])
        np.maximum.at(high, ids[ends], self._part[ends])
        return np.where(low == high, low, -1)


def _summed(n_parts: int, cells: Ints, by: Ints) -> _Fewer:
    distinct, place = np.unique(cells, return_inverse=True)
    return _Fewer(n_parts, distinct, np.bincount(place, by, distinct.size).astype(np.int64))
