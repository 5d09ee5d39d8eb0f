"""An n-gram model of words, made from counts by interpolated Kneser-Ney smoothing.

    P(w | c) = max(a(cw) - D, 0) / a(c.) + D t(c) / a(c.) P(w | c')

where w is a word, c its context (the words before it) and c' the context without its first word
(Chen and Goodman, 1999, doi:10.1006/csla.1999.0128). a(c.) is the sum of a(cw) over all words w,
and t(c) is the number of distinct words after c. For the longest n-grams, and for n-grams that
begin a sentence, a is the number of occurrences. For all other n-grams, a is the number of distinct
words before the n-gram. The empty context backs off to equal probabilities of all words, including
the unknown word. D is a discount (Ney, Essen and Kneser, 1994). Each n-gram length has its own D =
n1 / (n1 + 2 n2), where n1 n-grams have a = 1, and n2 n-grams have a = 2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plumbline.warehouse.errors import BadInput

#: Increase this when a text's probabilities, or the format of a model's files, change.
VERSION = 2
#: Number of words in a trained model's longest n-grams.
ORDER = 5
#: Word numbers that stand for the boundary between sentences and for all unknown words.
BOS, UNKNOWN = 0, 1
Ints = np.ndarray[Any, np.dtype[np.integer[Any]]]
WEIGHTS = "model.safetensors"
#: Discount to use if the text is too small to estimate a discount.
_USUAL_DISCOUNT = 0.5

#: A sentence, as the numbers of its words.
Sentence = Sequence[int] | Ints


@dataclass(frozen=True)
class NgramModel:
    """A tree of n-grams. Its nodes are sorted by length: n-grams of one word, of two, and so on.

    The children of a node are the n-grams with one more word at the end, sorted by that word.

    Attributes:
        levels: the first node of each length, followed by the number of nodes.
        root: a(c.) and t(c) of the empty context.
        discounts: the discount D of each length.
        words: the last word of each n-gram.
        counts: the count a of each n-gram.
        children: first child of each node except the longest n-grams, then the number of nodes.
        totals: a(c.) of each node except the longest n-grams.
    """

    levels: Ints
    root: Ints
    discounts: np.ndarray[Any, np.dtype[np.float64]]
    words: Ints
    counts: Ints
    children: Ints
    totals: Ints

    @property
    def n_parameters(self) -> int:
        """Number of n-grams, of all lengths."""
        return len(self.words)

    @property
    def n_embedded(self) -> int:
        """Number of words, including ``BOS`` and ``UNKNOWN``."""
        return int(self.levels[1])

    def logprobs(self, sentences: Sequence[Sentence]) -> list[list[float]]:
        """Return ln P(word | BOS, earlier words) for every word of each sentence."""
        words, position = laid_out(sentences)
        total, types = map(float, self.root)
        values = np.full(len(words), 1.0 / (self.n_embedded - 1))  # BOS is never predicted
        nodes = words
        for n, discount in enumerate(self.discounts):
            if n:
                context = np.where(position >= n, np.concatenate([[-1], nodes[:-1]]), -1)
                at = np.flatnonzero(context >= 0)
                first, end = (self.children[context[at] + k].astype(np.int64) for k in (0, 1))
                at, first, end = (x[end > first] for x in (at, first, end))
                nodes = np.full(len(words), -1)
                nodes[at] = self._find(words[at], first, end)
                total, types = self.totals[context[at]], end - first
            else:
                at = np.arange(len(words))
            a = np.where(nodes[at] >= 0, self.counts[nodes[at]].astype(np.float64), 0.0)
            values[at] = np.maximum(a - discount, 0) / total + discount * types / total * values[at]
        values[words == BOS] = 1.0
        ends = np.cumsum([len(sentence) for sentence in sentences])[:-1]
        return [part.tolist() for part in np.split(np.log(values[position > 0]), ends)]

    def _find(self, words: Ints, first: Ints, end: Ints) -> Ints:
        """Find each word's node among the nodes ``first`` to ``end`` - 1; -1 if it has none."""
        low, high = first, end  # the last node with word <= the given one
        while (high - low > 1).any():
            middle = (low + high) // 2
            is_after = self.words[middle] > words
            low, high = np.where(is_after, low, middle), np.where(is_after, middle, high)
        return np.where(self.words[low] == words, low, -1)

    @classmethod
    def load(cls, directory: Path) -> NgramModel:
        """Open a saved model. Raise ``BadInput`` if its file is damaged."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            return cls(**load_file(directory / WEIGHTS))
        except (OSError, SafetensorError, TypeError) as e:
            problem, fix = f"its {WEIGHTS} is damaged: {e}", "train it or copy it again"
            raise BadInput(f"model {directory}", problem, fix) from e


def save(arrays: Mapping[str, Any], path: Path) -> None:
    """Write arrays to a safetensors file in the given order. Equal arrays give equal bytes.

    The library would sort the arrays by name, which would change the hashes of existing models.
    """
    header, end = {}, 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        entry = {"dtype": f"{array.dtype.kind.upper()}{8 * array.itemsize}"}
        header[name] = {**entry, "shape": [*array.shape], "data_offsets": [start, end]}
    content = json.dumps(header).encode()
    content += b" " * (-len(content) % 8)
    with path.open("wb") as file:
        file.write(len(content).to_bytes(8, "little") + content)
        for array in arrays.values():
            array.tofile(file)


def laid_out(sentences: Sequence[Sentence]) -> tuple[Ints, Ints]:
    """Join the sentences, with a BOS before each. Return the words and their places (BOS: 0).

    >>> [part.tolist() for part in laid_out([[7, 8], [9]])]
    [[0, 7, 8, 0, 9], [0, 1, 2, 0, 1]]
    """
    lengths = np.array([len(sentence) + 1 for sentence in sentences], dtype=np.int64)
    n = int(lengths.sum())
    position = np.arange(n) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    words = np.full(n, BOS)
    if n > len(sentences):
        words[position > 0] = np.concatenate(sentences)
    return words, position


def estimated_discount(adjusted: Ints) -> float:
    """Return the discount D (Ney, Essen and Kneser) of one n-gram length, from its counts a.

    The result is 0.5 if no n-gram has a = 1, or if no n-gram has a = 2.

    >>> estimated_discount(np.array([1, 1, 2, 5])), estimated_discount(np.array([3]))
    (0.5, 0.5)
    """
    ones, twos = (int(np.count_nonzero(adjusted == k)) for k in (1, 2))
    return ones / (ones + 2 * twos) if ones and twos else _USUAL_DISCOUNT
