"""Association measures from counts: PMI, delta of a pair, weighted delta of a list. Pure numpy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warehouse.wordlists import WordList, WordPair

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def pmi_nats(n_pair: Ints, n_word: Ints, n_target: Ints | int, n_kept: int, n_pairs: int) -> Floats:
    """Pointwise mutual information ln(p(w,g) / (p(w) p(g))) in nats (UnStereoEval, Eq. 1).

    Args:
        n_pair: co-occurrences of word and target, int64[n].
        n_word: occurrences of the word, int64[n].
        n_target: occurrences of the target, int64[n] or one number.
        n_kept: all kept tokens; p(w) = n_word / n_kept.
        n_pairs: all co-occurrences under the rule; p(w,g) = n_pair / n_pairs.

    Returns:
        float64[n]; NaN where any count is 0, since the logarithm is undefined there. Empty in,
        empty out.

    >>> counts = np.array([4, 0]), np.array([10, 10])
    >>> pmi_nats(*counts, 20, n_kept=100, n_pairs=100).round(4)  # ln(0.04 / (0.1 * 0.2))
    array([0.6931,    nan])
    """
    product = n_word.astype(np.float64) * n_target
    defined = (n_pair > 0) & (product > 0)
    out = np.full(n_pair.shape, np.nan)
    if n_kept and n_pairs:
        ratio = n_pair[defined] / product[defined]
        out[defined] = np.log(ratio) + 2 * np.log(n_kept) - np.log(n_pairs)
    return out


def delta_nats(pmi_f: Floats, pmi_m: Floats) -> Floats:
    """Lean of each word: PMI with the female minus PMI with the male word (UnStereoEval, Eq. 2).

    float64[n], positive leans female; NaN where either is undefined.

    >>> delta_nats(np.array([1.0, np.nan]), np.array([0.25, 1.0]))
    array([0.75,  nan])
    """
    return pmi_f - pmi_m


@dataclass
class ListDelta:
    """Weighted mean of deltas over those pairs of a list for which a word has one (Eq. 4).

    delta(w) = sum_i v_i delta_i(w) / sum_i v_i over the defined pairs i; undefined (NaN) without
    one, or when their weights sum to 0. Counts are sums over the defined pairs.

    >>> mean = ListDelta.of(2)
    >>> one = np.array([1, 1])
    >>> mean.add(np.array([1.0, np.nan]), one, one, weight=3.0)
    >>> mean.add(np.array([2.0, 5.0]), one, one, weight=1.0)
    >>> mean.value(), mean.n_defined
    (array([1.25, 5.  ]), array([2, 1]))
    """

    total: Floats
    weight: Floats
    n_defined: Ints
    n_pair_f: Ints
    n_pair_m: Ints

    @classmethod
    def of(cls, n_words: int) -> ListDelta:
        """Nothing added yet, for n words."""
        integers = (np.zeros(n_words, np.int64) for _ in range(3))
        return cls(np.zeros(n_words), np.zeros(n_words), *integers)

    def add(self, delta: Floats, n_pair_f: Ints, n_pair_m: Ints, weight: float) -> None:
        """Add one pair of the list: its deltas (NaN where undefined) and counts by word."""
        defined = ~np.isnan(delta)
        self.total[defined] += weight * delta[defined]
        self.weight[defined] += weight
        self.n_defined[defined] += 1
        self.n_pair_f[defined] += n_pair_f[defined]
        self.n_pair_m[defined] += n_pair_m[defined]

    def value(self) -> Floats:
        """The mean by word, NaN where undefined."""
        out = np.full(self.total.shape, np.nan)
        np.divide(self.total, self.weight, out=out, where=self.weight > 0)
        return out


class Counts:
    """Counts of a corpus, by word index, ready for the formulas.

    Args:
        words: Arrow table word, n_word. pairs: Arrow table word, target, n_pair.
        n_kept, n_pairs: the corpus's totals before any filtering.
    """

    def __init__(self, words: pa.Table, pairs: pa.Table, n_kept: int, n_pairs: int) -> None:
        self.words = words["word"].combine_chunks()
        self.n_word: Ints = words["n_word"].to_numpy()
        self.n_kept, self.n_pairs = n_kept, n_pairs
        self._targets = pairs["target"].combine_chunks().dictionary_encode()
        index = pc.index_in(pairs["word"], value_set=self.words).to_numpy()
        order = np.argsort(self._targets.indices.to_numpy(), kind="stable")
        codes = self._targets.indices.to_numpy()[order]
        names = self._targets.dictionary.to_pylist()
        cuts = np.searchsorted(codes, np.arange(len(names) + 1))
        self._index, self._n_pair = index[order], pairs["n_pair"].to_numpy()[order]
        self._range = {name: (cuts[k], cuts[k + 1]) for k, name in enumerate(names)}

    def n_target(self, target: str) -> int:
        """Occurrences of a target, 0 when it never occurs."""
        at = pc.index(self.words, target).as_py()
        return int(self.n_word[at]) if at >= 0 else 0

    def n_pair(self, target: str) -> Ints:
        """Co-occurrences of every word with a target, int64[words], 0 for none."""
        out = np.zeros(len(self.n_word), np.int64)
        first, last = self._range.get(target, (0, 0))
        out[self._index[first:last]] = self._n_pair[first:last]
        return out

    def pmi(self, target: str) -> Floats:
        """PMI of every word with a target, float64[words], NaN where undefined."""
        n = self.n_target(target)
        return pmi_nats(self.n_pair(target), self.n_word, n, self.n_kept, self.n_pairs)


def association_rows(counts: Counts, targets: tuple[str, ...]) -> Iterator[pa.Table]:
    """A table a target: word, target, n_word, n_target, n_pair, pmi_nats; defined rows only."""
    for target in targets:
        pmi = counts.pmi(target)
        rows = np.flatnonzero(~np.isnan(pmi))
        n_target = np.full(len(rows), counts.n_target(target))
        yield pa.table(
            {
                "word": counts.words.take(pa.array(rows)),
                "target": pa.array([target] * len(rows), pa.string()),
                "n_word": counts.n_word[rows],
                "n_target": n_target,
                "n_pair": counts.n_pair(target)[rows],
                "pmi_nats": pmi[rows],
            }
        )


def delta_rows(counts: Counts, lists: Mapping[str, WordList]) -> Iterator[pa.Table]:
    """A table a contrast: every pair of the lists once, then each list of several pairs."""
    means = {k: ListDelta.of(len(counts.n_word)) for k, x in lists.items() if len(x.pairs) > 1}
    weights: dict[tuple[str, str], dict[str, float]] = {}
    for name, word_list in lists.items():
        for pair in word_list.pairs:
            weights.setdefault((pair.female, pair.male), {})[name] = pair.weight
    for (female, male), by_list in weights.items():
        delta = delta_nats(counts.pmi(female), counts.pmi(male))
        n_f, n_m = counts.n_pair(female), counts.n_pair(male)
        for name, weight in by_list.items():
            if name in means:
                means[name].add(delta, n_f, n_m, weight)
        one = np.ones(len(delta), np.int64)
        yield _delta_table(counts, WordPair(female, male).contrast, delta, n_f, n_m, one)
    for name, mean in means.items():
        sums = mean.n_pair_f, mean.n_pair_m, mean.n_defined
        yield _delta_table(counts, name, mean.value(), *sums)


def _delta_table(
    counts: Counts, contrast: str, delta: Floats, n_f: Ints, n_m: Ints, n_defined: Ints
) -> pa.Table:
    rows = np.flatnonzero(~np.isnan(delta))
    return pa.table(
        {
            "contrast": pa.array([contrast] * len(rows), pa.string()),
            "word": counts.words.take(pa.array(rows)),
            "n_word": counts.n_word[rows],
            "n_pair_f": n_f[rows],
            "n_pair_m": n_m[rows],
            "n_defined": n_defined[rows],
            "delta_nats": delta[rows],
        }
    )
