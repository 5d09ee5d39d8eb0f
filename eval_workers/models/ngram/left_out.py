"""An n-gram model's probabilities without each part of its text, all parts at once.

Without a part, a of an n-gram (see ``ngram_model``) is smaller by its occurrences there, or by the
longer n-grams that end with it and stand nowhere else. N-grams after one context have numbers in a
row. Words and discounts stay those of the whole text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from plumbline.eval_workers.models.ngram.ngram_model import Sentence, estimated_discount, laid_out
from plumbline.eval_workers.models.ngram.text_words import BOS, Ints

Floats = NDArray[np.float64]
#: Probabilities, and sums after contexts, without each part that are held at once.
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


class LeftOut:
    """Log-probabilities of sentences by a text's n-grams without each of its parts.

    Args:
        counted: of the whole text.
        part: of each of its sentences, the number of its part.
        n_parts: how many there are.
    """

    def __init__(self, counted: Counts, part: Ints, n_parts: int) -> None:
        self._counted, self._n_parts = counted, n_parts
        self._part = part[np.cumsum(counted.position == 0) - 1]
        self._discounts = [estimated_discount(a) for a in counted.adjusted]
        self._smaller = [self._smaller_of(n) for n in range(1, len(counted.keys) + 1)]
        self._left = lru_cache(_HELD)(self._left_of)
        self._chains = lru_cache(_HELD)(self._probabilities)

    def logprob(self, sentence: Sentence) -> Floats:
        """ln p(sentence | BOS) without each part; the last is that of the whole text."""
        words = [BOS, *map(int, sentence)]
        total = np.zeros(self._n_parts + 1)
        for end in range(1, len(words)):
            total += self._chains(tuple(words[max(end + 1 - len(self._smaller), 0) : end + 1]))
        return total

    def _probabilities(self, words: tuple[int, ...]) -> Floats:
        """ln P(last | the words before) of the last of some words."""
        n_words = self._counted.n_words
        value = np.full(self._n_parts + 1, 1.0 / (n_words - 1))
        context = 0
        for n in range(1, len(words) + 1):
            if n > 1 and (context := self._id(words[-n:-1])) < 0:
                break
            keys, ngram = self._counted.keys[n - 1], self._id(words[-n:])
            after = np.searchsorted(keys, [context * n_words, (context + 1) * n_words])
            total, types = self._left(n, *after.tolist())
            a = self._left(n, ngram, ngram + 1)[0] if ngram >= 0 else np.zeros(len(value))
            discount, at_least = self._discounts[n - 1], np.maximum(total, 1)
            backed_off = np.where(total > 0, discount * types / at_least, 1.0)
            value = np.maximum(a - discount, 0) / at_least + backed_off * value
        logs: Floats = np.log(value)
        return logs

    def _id(self, words: Sequence[int]) -> int:
        """The number of an n-gram among those of its length, -1 without it."""
        number = words[0]
        for n, word in enumerate(words[1:], 2):
            keys = self._counted.keys[n - 1]
            key = number * self._counted.n_words + word
            number = int(np.searchsorted(keys, key))
            if number == len(keys) or keys[number] != key:
                return -1
        return number

    def _left_of(self, n: int, start: int, end: int) -> tuple[Floats, Floats]:
        """Sum of a over a range of n-grams, and how many have one, without each part.

        The last of both is that of the whole text.
        """
        a, (cells, by) = self._counted.adjusted[n - 1], self._smaller[n - 1]
        some = slice(*np.searchsorted(cells, [start * self._n_parts, end * self._n_parts]))
        ngram, part = np.divmod(cells[some], self._n_parts)
        is_gone = by[some] == a[ngram]
        fewer, gone = (
            np.bincount(part, x, self._n_parts + 1).astype(np.float64) for x in (by[some], is_gone)
        )
        return a[start:end].sum() - fewer, np.count_nonzero(a[start:end]) - gone

    def _smaller_of(self, n: int) -> tuple[Ints, Ints]:
        """Sorted cells n-gram x part where a is smaller without the part, and by how much."""
        counted, longest = self._counted, len(self._counted.keys)
        counts_all = np.full(len(counted.keys[n - 1]), n == longest)
        if n > 1:  # those that begin with BOS
            counts_all |= counted.position[counted.firsts[n - 1]] == n - 1
        ends = np.flatnonzero(counted.ids[n - 1] >= 0)
        ends = ends[counts_all[counted.ids[n - 1][ends]]]
        cells = [counted.ids[n - 1][ends] * self._n_parts + self._part[ends]]
        if n < longest:
            suffix, owner = counted.ids[n - 1][counted.firsts[n]], self._owner(n + 1)
            alone = (owner >= 0) & ~counts_all[suffix]
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
