"""Functions that scoring functions with numbers as items share: Phi is |a - b|; folds are means."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


class Means(NamedTuple):
    """The mean distance between two groups and, over pairs of distinct items, within each group.

    A mean over no pairs is NaN.
    """

    between: float
    within_left: float
    within_right: float


def combine(items: Sequence[float]) -> float:
    """Return the mean of a fold's numbers.

    >>> combine([0.5, -0.1])
    0.2
    """
    return fmean(items)


def distances(items: Sequence[float]) -> Floats:
    """Return the matrix of |a - b| for every two numbers.

    >>> distances([0.0, 0.5]).tolist()
    [[0.0, 0.5], [0.5, 0.0]]
    """
    values = np.asarray(items, np.float64)
    return np.abs(values[:, None] - values[None, :])


def means(left: Sequence[float], right: Sequence[float]) -> Means:
    """Return the mean |a - b| between two groups and within each group.

    >>> means([0.0, 1.0], [3.0])
    Means(between=2.5, within_left=1.0, within_right=nan)
    """
    return block_means(distances([*left, *right]), len(left))


def block_means(distances: Floats, n_left: int) -> Means:
    """Return the mean distances from the matrix over all items, the left group's items first.

    >>> block_means(np.array([[0.0, 1, 2], [1, 0, 4], [2, 4, 0]]), 2)
    Means(between=3.0, within_left=1.0, within_right=nan)
    """
    between = distances[:n_left, n_left:]
    mean = float(between.mean()) if between.size else float("nan")
    return Means(mean, _within(distances[:n_left, :n_left]), _within(distances[n_left:, n_left:]))


def _within(distances: Floats) -> float:
    n = len(distances)
    return float(distances.sum()) / (n * (n - 1)) if n > 1 else float("nan")
