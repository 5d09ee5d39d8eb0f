"""Association measures from counts: PMI, delta of a pair, weighted delta of a list. Pure numpy.

Standard errors are the delta method on counts: Var ln c = D_g / c for the count c of a word with
target g. Counts of different targets are taken as independent; totals, n_word and n_target as
known, for they are hundreds of times larger. D_g (:func:`dispersion`) is above 1 because
co-occurrences come in bursts. It is derived from the counting rule and the target's own counts,
not fitted.

Measured against a bootstrap of documents (300 replicates; 2,355 passages of 27 novels, 2.4 M kept
tokens, all words with at least 5 counts on both sides, each bin of counts by itself), median of
bootstrap / formula for delta: rule ``pairs`` she/he 0.99 to 1.04 (1.37 to 1.45 without D), her/his
0.98 to 1.02 (1.34 to 1.40), woman/man 1.04 to 1.10 up to 200 counts and 1.2 to 1.3 for the 15 words
above; rule ``windows`` she/he 1.07 to 1.17. Eight words in ten of a bin lie between 0.8 and 1.3.
Means of the list ``gendered``, 40 replicates: 0.88 to 1.01 (``pairs``) and 0.83 to 1.02
(``windows``) with 3 or more pairs defined, about 0.65 below. What the formula leaves out is that
books have words of their own: resampling whole novels gives 1.2 (``pairs``) and 1.4 (``windows``)
times its error for she/he at 200 to 1,000 counts, and 1.5 and 1.9 times above. So the error says
how well the counts determine a figure for text of these very sources, and is a floor for text of
others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plumbline.warehouse.wordlists import WordList, WordPair

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


def dispersion(n_self: int, n_target: int, rule: str, window: int) -> float:
    """D_g: variance over mean of a word's co-occurrences with target g, no unit, at least 1.

    ``pairs``: a place near a target tends to be near several of them, each a co-occurrence. A
    target has 2 n_self / n_target others within reach, on 2 (window - 1) places of which a word
    takes one: D = 1 + (2 window - 3) / (window - 1) n_self / n_target; 1 when the target never
    occurs. ``windows``: a pair at distance d lies in window - d windows at once, with d uniform on
    1..window-1: D = sum (window - d)^2 / sum (window - d) = (2 window - 1) / 3.

    Args:
        n_self: co-occurrences of the target with itself. n_target: its occurrences.
        rule, window: of the counts.

    >>> dispersion(9, 17, "pairs", 10), dispersion(9, 17, "windows", 2)
    (2.0, 1.0)
    >>> dispersion(0, 0, "pairs", 10)
    1.0
    """
    if rule == "windows":
        return (2 * window - 1) / 3
    near = n_self / n_target if n_target else 0.0
    return 1 + (2 * window - 3) / (window - 1) * near


def log_count_variance(n_pair: Ints, disp: float) -> Floats:
    """Var ln c = D / c by the delta method, float64[n] in nats squared; NaN where c is 0.

    >>> log_count_variance(np.array([8, 0]), 2.0)
    array([0.25,  nan])
    """
    return disp / np.where(n_pair > 0, n_pair, np.nan)


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
        rule, window: how co-occurrences were counted; they decide standard errors only.
    """

    def __init__(
        self,
        words: pa.Table,
        pairs: pa.Table,
        n_kept: int,
        n_pairs: int,
        rule: str = "pairs",
        window: int = 10,
    ) -> None:
        self.words = words["word"].combine_chunks()
        self.n_word: Ints = words["n_word"].to_numpy()
        self.n_kept, self.n_pairs = n_kept, n_pairs
        self._rule, self._window = rule, window
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

    def variance(self, target: str) -> Floats:
        """Variance of every word's PMI with a target, float64[words], nats squared, NaN at 0."""
        n_pair, at = self.n_pair(target), pc.index(self.words, target).as_py()
        n_self = int(n_pair[at]) if at >= 0 else 0
        disp = dispersion(n_self, self.n_target(target), self._rule, self._window)
        return log_count_variance(n_pair, disp)


def association_rows(counts: Counts, targets: tuple[str, ...]) -> Iterator[pa.Table]:
    """A table a target: word, target, n_word, n_target, n_pair, pmi_nats, pmi_se_nats.

    Rows exist where the PMI does.
    """
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
                "pmi_se_nats": np.sqrt(counts.variance(target)[rows]),
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
        one, se = np.ones(len(delta), np.int64), np.sqrt(delta_variance(counts, female, male))
        yield _delta_table(counts, WordPair(female, male).contrast, delta, se, n_f, n_m, one)
    for name, mean in means.items():
        sums = mean.n_pair_f, mean.n_pair_m, mean.n_defined
        se = np.sqrt(list_variance(counts, lists[name]))
        yield _delta_table(counts, name, mean.value(), se, *sums)


def delta_variance(counts: Counts, female: str, male: str) -> Floats:
    """Variance of every word's delta, float64[words], nats squared, NaN where it is undefined.

    delta = ln c_f/c_m - ln n_f/n_m, so the variance is D_f/c_f + D_m/c_m.
    """
    return counts.variance(female) + counts.variance(male)


def list_variance(counts: Counts, word_list: WordList) -> Floats:
    """Variance of the weighted mean of a list's deltas (Eq. 4), float64[words], NaN if undefined.

    The mean is a weighted sum of the ln c of the list's words; a word in several pairs, such as
    *her*, adds its weights before they are squared: sum_g a_g^2 D_g / c_g. The targets' counts are
    taken as independent, though she and her appear together: see the module for what that costs.
    """
    weight, total = np.zeros(len(counts.n_word)), np.zeros(len(counts.n_word))
    for target in word_list.targets:
        share = np.zeros(len(counts.n_word))
        for pair in word_list.pairs:
            if target in (pair.female, pair.male):
                defined = (counts.n_pair(pair.female) > 0) & (counts.n_pair(pair.male) > 0)
                sign = 1 if target == pair.female else -1
                share += sign * pair.weight * defined
                weight += pair.weight / 2 * defined
        total += share**2 * np.nan_to_num(counts.variance(target))
    out = np.full(len(weight), np.nan)
    np.divide(total, weight**2, out=out, where=weight > 0)
    return out


def _delta_table(
    counts: Counts,
    contrast: str,
    delta: Floats,
    se: Floats,
    n_f: Ints,
    n_m: Ints,
    n_defined: Ints,
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
            "delta_se_nats": se[rows],
        }
    )
