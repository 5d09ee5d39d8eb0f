"""Intervals of means as `clustered` has them, by numpy: each figure is a cluster of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats


def error(figures: Sequence[float] | np.ndarray[Any, Any]) -> tuple[float, float]:
    """Student's point and the jackknife's standard error of the mean."""
    n = len(figures)
    return float(stats.t.ppf(0.975, n - 1)), float(stats.sem(figures)) * math.sqrt(n / (n - 1))


def interval(
    figures: Sequence[float] | np.ndarray[Any, Any],
    ends: tuple[float, float] | None = None,
    most: float = math.inf,
) -> tuple[float, float, float]:
    """Lower end, mean and upper end of the 95% interval, at least five figures.

    Student's, or on a range with two ``ends`` those means that the figures are t errors away from,
    by the means' own errors, as if of ``most`` rows at most.
    """
    (t, se), mean = error(figures), float(np.mean(figures))
    if ends is None:
        return mean - t * se, mean, mean + t * se
    lowest, highest = ends
    n = min((mean - lowest) * (highest - mean) / se**2 if se > 1e-9 else math.inf, most)
    p = (mean - lowest) / (highest - lowest)
    roots = np.roots([1 + t * t / n, -(2 * p + t * t / n), p * p]).real
    low, high = (lowest + (highest - lowest) * float(root) for root in np.sort(roots))
    return low, mean, high
