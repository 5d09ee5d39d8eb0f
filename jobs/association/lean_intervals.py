"""Exact intervals for a word's lean, from its co-occurrences with two sides.

If one of two counts is 0, their log odds ratio has no standard error, but an exact interval.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: Largest probability of an interval above the true value, and of an interval below it.
_TAIL = 0.025


class Bounds(NamedTuple):
    """Ends of the 95% interval of a lean in nats, and the p-value of no lean."""

    low_nats: Floats
    high_nats: Floats
    p: Floats


def lean_bounds(n_f: Floats, n_m: Floats, log_odds: float | Floats) -> Bounds:
    """The interval of Clopper and Pearson (1934) for the share of n_f in n_f + n_m, as a lean.

    A share s has the lean ln(s / (1 - s)) - ``log_odds``. The low end is -inf where n_f is 0, the
    high end inf where n_m is 0. p is twice the smaller tail of the exact test, at most 1. It is
    below 0.05 where the interval excludes 0.

    Args:
        n_f, n_m: counts on either side, each divided by its dispersion, float64[n]; not negative.
        log_odds: log odds of the share of a word without a lean.

    >>> low, high, p = lean_bounds(np.array([0.0, 10.0]), np.array([55.0, 10.0]), np.log(0.7))
    >>> low.round(2).tolist(), high.round(2).tolist(), p.round(3).tolist()
    ([-inf, -0.63], [-2.31, 1.34], [0.0, 0.561])
    """
    from scipy.special import betainc, betaincinv, expit

    n_f, n_m = np.asarray(n_f, np.float64), np.asarray(n_m, np.float64)
    share = expit(log_odds)

    def one_sided(n: Floats, n_other: Floats, share: float | Floats) -> tuple[Floats, Floats]:
        """Lower bound of a side's log odds; probability of n or more without a lean."""
        positive = np.where(n > 0, n, 1)
        least = betaincinv(positive, n_other + 1, _TAIL)
        with np.errstate(divide="ignore"):
            odds = np.where(n > 0, np.log(least) - np.log1p(-least), -np.inf)
        return odds, np.where(n > 0, betainc(positive, n_other + 1, share), 1.0)

    low, above = one_sided(n_f, n_m, share)
    high, below = one_sided(n_m, n_f, 1 - share)
    p = np.minimum(2 * np.minimum(above, below), 1.0)
    return Bounds(low - log_odds, -high - log_odds, p)


def chance_clear(n: Floats, log_odds: float) -> Floats:
    """Probability that the interval of ``lean_bounds`` excludes 0 for a word without a lean.

    At most 5%; 0 for words so rare that no split of their count excludes 0.

    Args:
        n: n_f + n_m as given to ``lean_bounds``, float64[n]; rounded to whole counts of at least 1.

    >>> chance_clear(np.array([1.0, 8.0, 1000.0]), 0.0).round(3).tolist()
    [0.0, 0.008, 0.046]
    """
    from scipy.special import expit
    from scipy.stats import binom

    n_f = binom(np.maximum(np.round(n), 1), expit(log_odds))
    chance: Floats = n_f.cdf(n_f.ppf(_TAIL) - 1) + n_f.sf(n_f.isf(_TAIL))
    return chance


def adjusted(p: Floats) -> Floats:
    """p adjusted for multiple comparisons (Benjamini and Hochberg): the false discovery rate.

    NaN stays NaN and doesn't count as a comparison.

    >>> adjusted(np.array([0.01, 0.04, 0.03, 0.5])).round(3).tolist()
    [0.04, 0.053, 0.053, 0.5]
    """
    order = np.argsort(p)[: np.count_nonzero(~np.isnan(p))]
    scaled = p[order] * order.size / np.arange(1, order.size + 1)
    q = np.full(p.size, np.nan)
    q[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1)
    return q
