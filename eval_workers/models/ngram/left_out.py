"""An n-gram model's probabilities when each part of its text is left out, for all parts at once.

``a`` is the count of an n-gram g in ``ngram_model``. Leaving out a part lowers ``a``. If ``a``
counts occurrences, it falls by those in the part. If it counts distinct words before g, it falls by
the words that occur before g in this part only.

N-grams with the same context have consecutive numbers. The vocabulary and the discounts stay those
of the whole text.
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
#: Number of n-grams or contexts whose results are cached.
_CACHED = 4096


@dataclass(frozen=True)
class Counts:
    """N-grams of some sentences; each list has one array per n-gram length, from 1.

    Attributes:
        n_words: number of different words.
        words, position: the words of all sentences in order, and each one's place in its sentence.
        keys: for each n-gram, its context's number times ``n_words``, plus its last word.
        adjusted: count ``a`` of each n-gram.
        ids: for each of ``words``, the number of the n-gram that ends with it, -1 without one.
        firsts: index in ``words`` where each n-gram first ends; empty for single words.
    """

    n_words: int
    words: Ints
    position: Ints
    keys: Sequence[Ints]
    adjusted: Sequence[Ints]
    ids: Sequence[Ints]
    firsts: Sequence[Ints]


def counts(sentences: Sequence[Sentence], n_words: int, order: int) -> Counts:
    """N-grams of up to ``order`` words; takes 300 bytes of memory per word of the sentences."""
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
        ngram_ids = np.full(len(words), -1)
        ngram_ids[ends] = inverse
        adjusted.append(np.bincount(ids[-1][ends[first]], minlength=len(lengths[-1])))
        if n > 2:  # no word is before a sentence's beginning
            begins = position[firsts[-1]] == n - 2
            adjusted[-1][begins] = occurrences[begins]
        ids.append(ngram_ids)
        lengths.append(keys)
        firsts.append(ends[first])
        occurrences = n_each
    adjusted.append(occurrences)
    adjusted[0][BOS] = 0
    return Counts(n_words, words, position, lengths, adjusted, ids, firsts)


class LeftOut:
    """Log-probabilities of sentences by n-gram models of a text that lacks one of its parts.

    Args:
        counted: counts of the whole text.
        part: for each sentence of the text, the number of its part.
        n_parts: number of parts.
    """

    def __init__(self, counted: Counts, part: Ints, n_parts: int) -> None:
        self._counted, self._n_parts = counted, n_parts
        self._part = part[np.cumsum(counted.position == 0) - 1]
        self._discounts = [estimated_discount(a) for a in counted.adjusted]
        self._losses = [self._losses_of(n) for n in range(1, len(counted.keys) + 1)]
        self._sums = lru_cache(_CACHED)(self._sums_of)
        self._word_logprobs = lru_cache(_CACHED)(self._word_logprobs_of)

    def logprob(self, sentence: Sentence) -> Floats:
        """ln p(sentence | BOS) without each part, then with the whole text: n_parts + 1 values."""
        words = [BOS, *map(int, sentence)]
        total = np.zeros(self._n_parts + 1)
        for end in range(1, len(words)):
            ngram = words[max(end + 1 - len(self._losses), 0) : end + 1]
            total += self._word_logprobs(tuple(ngram))
        return total

    def _word_logprobs_of(self, words: tuple[int, ...]) -> Floats:
        """ln P(last word | the words before it), without each part and with the whole text."""
        n_words = self._counted.n_words
        value = np.full(self._n_parts + 1, 1.0 / (n_words - 1))
        context = 0
        for n in range(1, len(words) + 1):
            if n > 1 and (context := self._id(words[-n:-1])) < 0:
                break
            keys, ngram = self._counted.keys[n - 1], self._id(words[-n:])
            after = np.searchsorted(keys, [context * n_words, (context + 1) * n_words])
            total, types = self._sums(n, *after.tolist())
            a = self._sums(n, ngram, ngram + 1)[0] if ngram >= 0 else np.zeros(len(value))
            discount, at_least = self._discounts[n - 1], np.maximum(total, 1)
            backed_off = np.where(total > 0, discount * types / at_least, 1.0)
            value = np.maximum(a - discount, 0) / at_least + backed_off * value
        logs: Floats = np.log(value)
        return logs

    def _id(self, words: Sequence[int]) -> int:
        """The number of an n-gram among n-grams of its length; -1 if it doesn't occur."""
        number = words[0]
        for n, word in enumerate(words[1:], 2):
            keys = self._counted.keys[n - 1]
            key = number * self._counted.n_words + word
            number = int(np.searchsorted(keys, key))
            if number == len(keys) or keys[number] != key:
                return -1
        return number

    def _sums_of(self, n: int, start: int, end: int) -> tuple[Floats, Floats]:
        """Sum of ``a`` and number of n-grams with ``a > 0`` in a range, without each part.

        The last value of both arrays is for the whole text.
        """
        a, (cells, losses) = self._counted.adjusted[n - 1], self._losses[n - 1]
        in_range = slice(*np.searchsorted(cells, [start * self._n_parts, end * self._n_parts]))
        ngram, part = np.divmod(cells[in_range], self._n_parts)
        is_gone = losses[in_range] == a[ngram]
        lost, n_gone = (
            np.bincount(part, weights, self._n_parts + 1).astype(np.float64)
            for weights in (losses[in_range], is_gone)
        )
        return a[start:end].sum() - lost, np.count_nonzero(a[start:end]) - n_gone

    def _losses_of(self, n: int) -> tuple[Ints, Ints]:
        """Sorted cells in which leaving out a part lowers an n-gram's ``a``, and the reductions.

        A cell is the n-gram's number times the number of parts, plus the part.
        """
        counted, longest = self._counted, len(self._counted.keys)
        is_count = np.full(len(counted.keys[n - 1]), n == longest)  # a is the number of occurrences
        if n > 1:  # n-grams that begin with BOS
            is_count |= counted.position[counted.firsts[n - 1]] == n - 1
        ends = np.flatnonzero(counted.ids[n - 1] >= 0)
        ends = ends[is_count[counted.ids[n - 1][ends]]]
        cells = [counted.ids[n - 1][ends] * self._n_parts + self._part[ends]]
        if n < longest:
            suffix, only_part = counted.ids[n - 1][counted.firsts[n]], self._only_part(n + 1)
            in_one_part = (only_part >= 0) & ~is_count[suffix]
            cells.append(suffix[in_one_part] * self._n_parts + only_part[in_one_part])
        return np.unique(np.concatenate(cells), return_counts=True)

    def _only_part(self, n: int) -> Ints:
        """For each n-gram of ``n`` words, the only part that holds it; -1 if several parts do."""
        ids = self._counted.ids[n - 1]
        ends = np.flatnonzero(ids >= 0)
        low = np.full(len(self._counted.keys[n - 1]), self._n_parts)
        high = np.full(len(low), -1)
        np.minimum.at(low, ids[ends], self._part[ends])
        np.maximum.at(high, ids[ends], self._part[ends])
        return np.where(low == high, low, -1)
