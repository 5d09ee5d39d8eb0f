"""The linear datamodelling score of Park et al. (2023, arXiv:2303.14186), with its interval. Pure.

A model is trained on each of some random halves of a text's documents. A method of attribution
scores every document for a word; the sum over the half's documents predicts the model's preference.
The datamodelling score of the word is Spearman's correlation between prediction and preference over
the halves.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]


def halves(n_units: int, n: int, seed: int) -> NDArray[np.bool_]:
    """Random halves of units, bool[half, unit]; a half is the same whatever ``n`` is.

    >>> halves(5, 2, seed=0).sum(axis=1)
    array([2, 2])
    """
    orders = [np.random.default_rng([seed, half]).permutation(n_units) for half in range(n)]
    return np.array([order < n_units // 2 for order in orders])


def correlations(predicted: Floats, true: Floats) -> Floats:
    """Spearman's correlation along the last axis; 0 where one side doesn't vary: it ranks nothing.

    >>> correlations(np.array([[1.0, 2, 3], [5, 5, 5]]), np.array([[0.1, 0.3, 0.2], [1, 2, 3]]))
    array([0.5, 0. ])
    """
    x, y = (stats.rankdata(side, axis=-1) for side in np.broadcast_arrays(predicted, true))
    x, y = (side - side.mean(axis=-1, keepdims=True) for side in (x, y))
    size = np.sqrt((x**2).sum(axis=-1) * (y**2).sum(axis=-1))
    rho: Floats = (x * y).sum(axis=-1) / np.where(size > 0, size, 1)
    return rho


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95% interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of_difference(cls, values: Floats, other: Floats) -> Estimate:
        """The mean of two or more differences, ``values`` - ``other``, with Student's interval.

        >>> of = Estimate.of_difference(np.array([1.0, 1, 2, 2]), np.ones(4))
        >>> np.round(astuple(of), 3).tolist()
        [0.5, -0.419, 1.419]
        """
        differences = values - other
        value, t = float(differences.mean()), float(stats.t.ppf(0.975, len(values) - 1))
        half = t * float(differences.std(ddof=1)) / sqrt(len(values))
        return cls(value, value - half, value + half)

    @classmethod
    def of_share(cls, share: float, n: int) -> Estimate:
        """A share of n with Wilson's interval.

        >>> np.round(astuple(Estimate.of_share(0.5, 10)), 3).tolist()
        [0.5, 0.237, 0.763]
        """
        z = float(stats.norm.ppf(0.975))
        middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z * sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
        return cls(share, middle - half, middle + half)


def columns(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    """Columns of an estimate in a table; None without an estimate."""
    values = astuple(estimate) if estimate else (None, None, None)
    return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))


def score(predicted: Floats, true: Floats, other: Floats | None = None) -> Estimate:
    """Mean datamodelling score of words, or its difference from that of ``other`` predictions.

    All are float64[word, half]. The interval is for new words and new halves. Its variance is the
    sum of the variances over words and over halves (by a jackknife), minus the mean
    variance of a word over halves, which both contain, but at least the larger of the two. For one
    word the interval is for new halves only. Student's quantile has min(words, halves) - 1 degrees
    of freedom, for one word halves - 1.
    """
    n_words, n_halves = true.shape
    every = np.arange(n_halves)
    others = np.array([np.delete(every, half) for half in every])

    def figures(chosen: NDArray[np.intp]) -> Floats:
        rho = correlations(predicted[:, chosen], true[:, chosen])
        return rho if other is None else rho - correlations(other[:, chosen], true[:, chosen])

    whole, without = figures(every), figures(others)
    of_halves = float(_jackknife(without.mean(axis=0)))
    variance, df = of_halves, n_halves - 1
    if n_words > 1:
        of_words = float(whole.var(ddof=1)) / n_words
        of_both = float(_jackknife(without).mean()) / n_words
        variance = max(of_halves + of_words - of_both, of_halves, of_words)
        df = min(n_words, n_halves) - 1
    value, half = float(whole.mean()), float(stats.t.ppf(0.975, df)) * sqrt(variance)
    return Estimate(value, value - half, value + half)


def _jackknife(without: Floats) -> Floats:
    """Jackknife variance; the last axis of ``without`` has figures without each unit in turn."""
    n = without.shape[-1]
    squares = (without - without.mean(axis=-1, keepdims=True)) ** 2
    variance: Floats = (n - 1) / n * squares.sum(axis=-1)
    return variance


def ceiling(first: Floats, second: Floats) -> Estimate:
    """The score that a perfect prediction can reach, from two trainings of each half.

    The root of the score with which one training predicts the other. A perfect prediction is the
    mean of many trainings: it differs from one training by the noise of one, while two trainings
    differ by the noise of both.
    """
    rho = score(first, second)
    return Estimate(*(sqrt(min(max(end, 0), 1)) for end in (rho.value, rho.low, rho.high)))
