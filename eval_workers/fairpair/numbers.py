"""Scoring functions whose item is a number: Phi = |a - b|, means of folds, sorted sums."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


class Means(NamedTuple):
    """Mean distances of two groups: between them and, over pairs of distinct items, within each.

    A mean over no pairs is NaN.
    """

    between: float
    within_left: float
    within_right: float


def combine(items: Sequence[float]) -> float:
    """The mean of a fold's numbers.

    >>> combine([0.5, -0.1])
    0.2
    """
    return fmean(items)


def distances(items: Sequence[float]) -> Floats:
    """Matrix of |a - b| of every two numbers.

    >>> distances([0.0, 0.5]).tolist()
    [[0.0, 0.5], [0.5, 0.0]]
    """
    values = np.asarray(items, np.float64)
    return np.abs(values[:, None] - values[None, :])


def means(left: Sequence[float], right: Sequence[float]) -> Means:
    """Mean |a - b| between two groups and within each, in O(n log n) without a matrix.

    In ascending order x_1 .. x_n, the sum over pairs i < j of x_j - x_i equals the sum over i of
    (2i - n - 1) x_i. The sum between the groups is the sum over all items less the sums within each
    group.

    >>> means([0.0, 1.0], [3.0])
    Means(between=2.5, within_left=1.0, within_right=nan)
    """
    n, m = len(left), len(right)
    pooled = np.asarray([*left, *right], np.float64)
    # Subtract the smallest: the differences of equal numbers then sum to exactly 0.
    pooled -= pooled.min() if pooled.size else 0.0
    within_left, within_right = _sum(pooled[:n]), _sum(pooled[n:])
    between = max(_sum(pooled) - within_left - within_right, 0.0)
    return Means(
        between / (n * m) if n and m else float("nan"),
        within_left / (n * (n - 1) / 2) if n > 1 else float("nan"),
        within_right / (m * (m - 1) / 2) if m > 1 else float("nan"),
    )


def _sum(values: Floats) -> float:
    """Sum of the differences of all pairs."""
    n = len(values)
    return float(np.sort(values) @ (2.0 * np.arange(1, n + 1) - n - 1))
