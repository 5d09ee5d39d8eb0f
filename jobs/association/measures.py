"""Compute PMI, delta and their standard errors from co-occurrence counts.

The standard errors use the delta method. If a word co-occurs c times with target g, the variance of
ln c is D_g / c. Counts with different targets are assumed to be independent. The corpus's totals,
n_word and n_target are treated as exact, since they are hundreds of times larger than c.
:func:`dispersion` computes D_g from the counting rule and the target's own counts. D_g is usually
above 1, because co-occurrences come in bursts.

A jackknife over blocks of passages gives the same errors (``tests/test_association.py``).
Resampling whole novels gives errors 1.2 to 1.9 times as large, since each book has its own words.
So the computed error applies to new text from the same sources. For other text, it is a lower
bound.

A delta needs co-occurrences with both sides of a contrast, such as *she* and *he*.
:func:`bound_rows` gives an interval for every word that co-occurs with at least one side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plumbline.warehouse.wordlists import WordList, WordPair

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Probability in each tail outside the 95% interval.
_TAIL = 0.025
#: Suffix of the names of contrasts that are sums over a list's pairs.
SUM = "-sum"


def lean_bounds(n_f: Floats, n_m: Floats, log_odds: float | Floats) -> tuple[Floats, ...]:
    """Return the ends of a 95% interval for each word's lean, and the p-value of no lean.

    The interval is that of Clopper and Pearson (1934) for the share s = n_f / (n_f + n_m). Each end
    is converted to a lean in nats, ln(s / (1 - s)) - ``log_odds``. The low end is -inf if n_f is 0,
    and the high end is inf if n_m is 0. p is twice the smaller tail of the exact test, but at most
    1. It is below 0.05 if the interval excludes 0.

    Args:
        n_f, n_m: each word's co-occurrences with the female side and with the male side, divided
            by the side's dispersion.
        log_odds: ln(s / (1 - s)) of a word that doesn't lean.

    >>> low, high, p = lean_bounds(np.array([0.0, 10.0]), np.array([55.0, 10.0]), np.log(0.7))
    >>> low.round(2).tolist(), high.round(2).tolist(), p.round(3).tolist()
    ([-inf, -0.63], [-2.31, 1.34], [0.0, 0.561])
    """
    from scipy.special import betainc, betaincinv, expit

    n_f, n_m = np.asarray(n_f, np.float64), np.asarray(n_m, np.float64)
    share = expit(log_odds)

    def one_sided(n: Floats, n_other: Floats, share: float | Floats) -> tuple[Floats, Floats]:
        """Return the lower bound of the log odds, and P(count >= n) if the share is ``share``."""
        positive = np.where(n > 0, n, 1)
        least = betaincinv(positive, n_other + 1, _TAIL)
        with np.errstate(divide="ignore"):
            odds = np.where(n > 0, np.log(least) - np.log1p(-least), -np.inf)
        return odds, np.where(n > 0, betainc(positive, n_other + 1, share), 1.0)

    low, above = one_sided(n_f, n_m, share)
    high, below = one_sided(n_m, n_f, 1 - share)
    return low - log_odds, -high - log_odds, np.minimum(2 * np.minimum(above, below), 1.0)


def adjusted(p: Floats) -> Floats:
    """Adjust p-values to control the false discovery rate (Benjamini and Hochberg).

    NaN stays NaN and isn't counted as a test.

    >>> adjusted(np.array([0.01, 0.04, 0.03, 0.5])).round(3).tolist()
    [0.04, 0.053, 0.053, 0.5]
    """
    order = np.argsort(p)[: np.count_nonzero(~np.isnan(p))]
    scaled = p[order] * order.size / np.arange(1, order.size + 1)
    q = np.full(p.size, np.nan)
    q[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1)
    return q


def dispersion(n_self: int, n_target: int, rule: str, window: int) -> float:
    """Return D_g: the variance of a word's co-occurrences with target g, divided by their mean.

    D_g is at least 1. Under the rule ``pairs``, a word near one occurrence of g is often near other
    occurrences too, and each of them counts as a co-occurrence. On average, the 2 (window - 1)
    positions around an occurrence contain 2 n_self / n_target other occurrences, and the word takes
    one position. So D_g = 1 + (2 window - 3) / (window - 1) n_self / n_target.

    Under the rule ``windows``, a word and g at distance d share window - d windows. All distances
    from 1 to window - 1 are assumed to be equally likely. So
    D_g = sum (window - d)^2 / sum (window - d) = (2 window - 1) / 3.

    Args:
        n_self: co-occurrences of the target with itself.
        n_target: occurrences of the target. If it is 0, D_g is 1 under the rule ``pairs``.
        rule, window: how co-occurrences were counted.

    >>> dispersion(9, 17, "pairs", 10), dispersion(9, 17, "windows", 2)
    (2.0, 1.0)
    """
    if rule == "windows":
        return (2 * window - 1) / 3
    near = n_self / n_target if n_target else 0.0
    return 1 + (2 * window - 3) / (window - 1) * near


class CorpusCounts:
    """The counts of a corpus, as arrays with one value per word.

    Args:
        words: Arrow table with the columns word and n_word.
        pairs: Arrow table with the columns word, target and n_pair.
        n_kept, n_pairs: number of kept tokens and of co-occurrences in the corpus, including rare
            words that the tables leave out.
        rule, window: how co-occurrences were counted. Only errors and intervals depend on these.
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
        #: Index of a target among the words, or -1 if it never occurs.
        self._place: Callable[[str], int] = cache(lambda word: pc.index(self.words, word).as_py())
        self._targets = pairs["target"].combine_chunks().dictionary_encode()
        index = pc.index_in(pairs["word"], value_set=self.words).to_numpy()
        order = np.argsort(self._targets.indices.to_numpy(), kind="stable")
        codes = self._targets.indices.to_numpy()[order]
        names = self._targets.dictionary.to_pylist()
        cuts = np.searchsorted(codes, np.arange(len(names) + 1))
        self._index, self._n_pair = index[order], pairs["n_pair"].to_numpy()[order]
        self._range = {name: (cuts[k], cuts[k + 1]) for k, name in enumerate(names)}

    def n_target(self, target: str) -> int:
        at = self._place(target)
        return int(self.n_word[at]) if at >= 0 else 0

    def n_pair(self, target: str) -> Ints:
        """Return how often each word co-occurs with ``target``."""
        out = np.zeros(len(self.n_word), np.int64)
        first, last = self._range.get(target, (0, 0))
        out[self._index[first:last]] = self._n_pair[first:last]
        return out

    def side(self, targets: Iterable[str]) -> Side:
        """Return the counts of one side of a contrast, treating its targets as a single word."""
        own = [x for x in dict.fromkeys(targets) if self.n_target(x)]
        near = [self.n_pair(target) for target in own]
        n_target = sum(map(self.n_target, own))
        # Include co-occurrences of different targets: a word is often near several of them.
        n_self = sum(int(n[self._place(x)]) for k, n in enumerate(near) for x in own[k:])
        n_pair = sum(near, start=np.zeros(len(self.n_word), np.int64))
        return Side(n_pair, n_target, dispersion(n_self, n_target, self._rule, self._window))

    def pmi(self, target: str) -> Floats:
        """Return each word's PMI with a target in nats, or NaN if any count is 0 (UnStereoEval).

        PMI(w, g) = ln(p(w,g) / (p(w) p(g))), with p(w) = n_word / n_kept and
        p(w,g) = n_pair / n_pairs.
        """
        n_pair, out = self.n_pair(target), np.full(len(self.n_word), np.nan)
        product = self.n_word.astype(np.float64) * self.n_target(target)
        defined = (n_pair > 0) & (product > 0)
        if self.n_kept and self.n_pairs:
            ratio = n_pair[defined] / product[defined]
            out[defined] = np.log(ratio) + 2 * np.log(self.n_kept) - np.log(self.n_pairs)
        return out

    def variance(self, target: str) -> Floats:
        """Return the variance (nats²) of each word's PMI with a target, or NaN if undefined."""
        side = self.side([target])
        return side.dispersion / np.where(side.n_pair > 0, side.n_pair, np.nan)


class Side(NamedTuple):
    """Counts of one side of a contrast, with its targets treated as a single word."""

    n_pair: Ints
    n_target: int
    dispersion: float


def association_rows(counts: CorpusCounts, targets: Iterable[str]) -> Iterator[pa.Table]:
    """Yield a table for each target: counts, PMI and standard error of all words with a PMI."""
    for target in targets:
        pmi = counts.pmi(target)
        rows = np.flatnonzero(~np.isnan(pmi))
        yield pa.table(
            {
                "word": counts.words.take(pa.array(rows)),
                "target": pa.array([target] * len(rows), pa.string()),
                "n_word": counts.n_word[rows],
                "n_target": np.full(len(rows), counts.n_target(target)),
                "n_pair": counts.n_pair(target)[rows],
                "pmi_nats": pmi[rows],
                "pmi_nats_se": np.sqrt(counts.variance(target)[rows]),
            }
        )


def contrasts(lists: Iterable[WordList]) -> dict[str, tuple[WordPair, ...]]:
    """Return {contrast: its word pairs} for the given word lists.

    Each pair of a list, such as ``she/he``, is a contrast, in which the pair has weight 1. Each
    list with ``has_mean`` is a contrast of all its pairs. Contrasts of one pair come first.

    >>> from plumbline.warehouse import wordlists
    >>> found = contrasts([wordlists.load("she-he"), wordlists.load("gendered")])
    >>> len(found), list(found)[0], list(found)[-1]
    (39, 'she/he', 'gendered')
    """
    lists = list(lists)
    single = {p.contrast: (WordPair(p.a, p.b),) for x in lists for p in x.pairs}
    return single | {x.name: x.pairs for x in lists if x.has_mean}


def delta_rows(
    counts: CorpusCounts, contrast: str, pairs: Sequence[WordPair], v: Floats | None = None
) -> pa.Table:
    """Return rows of ``word_delta`` for a contrast of one pair (UnStereoEval, Eq. 1) or several.

    The delta of a word w uses the pairs (f_i, m_i) whose two words both co-occur with w. By default
    it is the mean over these pairs, weighted with the pairs' weights u_i:
    delta(w) = sum_i u_i (PMI(w, f_i) - PMI(w, m_i)) / sum_i u_i.
    If words have weights ``v``, it is the sum over these pairs and grows with their number (Eq. 4):
    delta(w) = sum_i v(w) (PMI(w, f_i) - PMI(w, m_i)).
    A word has no row if it has no such pair, if the weights of its pairs sum to 0, or if its v is
    NaN. A target in several pairs is counted once in n_pair_f or n_pair_m.

    If w co-occurs c_g times with target g, delta is a constant plus sum_g a_g ln c_g, with a weight
    a_g for each target. So the variance of delta is sum_g a_g^2 D_g / c_g.
    """
    n = len(counts.n_word)
    n_defined, n_used = np.zeros(n, np.int64), np.zeros((2, n), np.int64)
    total = np.zeros(n)
    # {(target, side): [(a pair's weight, which words co-occur with both words of the pair)]}
    terms: dict[tuple[str, int], list[tuple[float, NDArray[np.bool_]]]] = {}
    for pair in pairs:
        both = (counts.n_pair(pair.a) > 0) & (counts.n_pair(pair.b) > 0)
        weight = pair.weight if v is None else 1.0
        n_defined = n_defined + both
        total += weight * both
        for side, target in enumerate((pair.a, pair.b)):
            terms.setdefault((target, side), []).append((weight, both))
    total[total == 0] = np.nan
    scale = 1 / total if v is None else np.where(n_defined > 0, v, np.nan)
    delta, variance = np.zeros(n), np.zeros(n)
    for (target, side), of_pairs in terms.items():
        share = scale * sum(weight * both for weight, both in of_pairs)
        delta += (-1) ** side * share * np.nan_to_num(counts.pmi(target))
        variance += share**2 * np.nan_to_num(counts.variance(target))
        is_used = np.any([both for weight, both in of_pairs if weight > 0], axis=0)
        n_used[side] += counts.n_pair(target) * is_used
    rows = np.flatnonzero(np.isfinite(delta))
    return pa.table(
        {
            "contrast": pa.array([contrast] * len(rows), pa.string()),
            "word": counts.words.take(pa.array(rows)),
            "n_word": counts.n_word[rows],
            "n_pair_f": n_used[0, rows],
            "n_pair_m": n_used[1, rows],
            "n_defined": n_defined[rows],
            "delta_nats": delta[rows],
            "delta_nats_se": np.sqrt(variance[rows]),
        }
    )


def bound_rows(counts: CorpusCounts, contrast: str, pairs: Sequence[WordPair]) -> pa.Table:
    """Return rows of ``word_bound``: intervals of words that co-occur with at least one side.

    All words of side g (f or m) are treated as one target, which occurs N_g times and has
    dispersion D_g. If a word co-occurs c_g times with side g, its lean is
    ln(c_f / c_m) - ln(N_f / N_m). For a single pair, the lean equals delta. :func:`lean_bounds`
    computes the interval from c_g / D_g and treats N_g as exact. Pairs without a positive weight
    are ignored. The words of the pairs get no rows. If a side never occurs, the table is empty.
    """
    weighed = [pair for pair in pairs if pair.weight > 0]
    f, m = (counts.side(getattr(pair, side) for pair in weighed) for side in "ab")
    is_defined = f.n_target > 0 and m.n_target > 0
    is_target = pc.is_in(counts.words, pa.array([w for p in pairs for w in (p.a, p.b)]))
    has_row = (f.n_pair + m.n_pair > 0) & ~is_target.to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(has_row & is_defined)
    # Thousands of rare words have the same n_f and n_m, so compute each combination only once.
    both = np.stack([f.n_pair[rows], m.n_pair[rows]])
    (n_f, n_m), at = np.unique(both, axis=1, return_inverse=True)
    odds = np.log(f.n_target / m.n_target) if is_defined else 0.0
    scaled = odds - np.log(f.dispersion / m.dispersion)
    low, high, p = lean_bounds(n_f / f.dispersion, n_m / m.dispersion, scaled)
    with np.errstate(divide="ignore"):
        lean = np.log(n_f) - np.log(n_m) - odds
    distinct = {"sides_nats_low": low, "sides_nats_high": high, "p": p}
    columns = {name: values[at] for name, values in distinct.items()}
    lean = np.where(np.isfinite(lean), lean, np.nan)[at]
    return pa.table(
        {
            "contrast": pa.array([contrast] * len(rows), pa.string()),
            "word": counts.words.take(pa.array(rows)),
            "n_word": counts.n_word[rows],
            "n_pair_f": both[0],
            "n_pair_m": both[1],
            "sides_nats": pa.array(lean, from_pandas=True),
            **columns,
            "q": adjusted(columns["p"]),
        }
    )
