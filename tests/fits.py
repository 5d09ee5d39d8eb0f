"""What a line through points is, with its errors: by matrices and numerical derivatives.

The views compute the same in closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]
Figure = Callable[[Floats, Floats, Floats], float]


@dataclass(frozen=True)
class Interval:
    """A figure with its standard error and 95% interval."""

    value: float
    se: float
    low: float
    high: float


def slope(x: Floats, y: Floats) -> tuple[Interval, float]:
    """Slope with HC3 errors, and its degrees of freedom, of a quadratic form in the noise."""
    n = len(x)
    design = np.column_stack([np.ones(n), x])
    inverse = np.linalg.pinv(design)
    off = np.eye(n) - design @ inverse
    weight = (inverse[1] / np.diag(off)) ** 2
    se = float(np.sqrt(weight @ (off @ y) ** 2))
    form = off @ np.diag(weight) @ off
    df = float(np.trace(form) ** 2 / np.trace(form @ form))
    value = float(inverse[1] @ y)
    half = stats.t.ppf(0.975, df) * se
    return Interval(value, se, value - half, value + half), df


def pearson(x: Floats, y: Floats, w: Floats) -> float:
    """Correlation of points that are weighed."""
    x, y = x - np.average(x, weights=w), y - np.average(y, weights=w)
    return float((w @ (x * y)) / np.sqrt((w @ x**2) * (w @ y**2)))


def spearman(x: Floats, y: Floats, w: Floats) -> float:
    """Correlation of the ranks of points that are weighed; ties share their mean rank."""
    ranks = [(v[:, None] > v) @ w + (v[:, None] == v) @ w / 2 for v in (x, y)]
    return pearson(ranks[0], ranks[1], w)


def correlation(x: Floats, y: Floats, figure: Figure, df: float) -> Interval:
    """A correlation on Fisher's z scale: each point's influence by a step of its weight, as HC3."""
    n, step = len(x), 1e-6

    def z(w: Floats) -> float:
        return float(np.arctanh(figure(x, y, w / w.sum())))

    nudges = np.eye(n) * step
    moved = np.array([z(np.full(n, 1 / n) + e) - z(np.full(n, 1 / n) - e) for e in nudges])
    along = stats.rankdata(x) if figure is spearman else x
    centred = along - along.mean()
    h = 1 / n + centred**2 / (centred @ centred)
    se = float(np.sqrt(np.sum((moved / (2 * step) / n / (1 - h)) ** 2)))
    r, half = figure(x, y, np.full(n, 1 / n)), stats.t.ppf(0.975, df) * se
    low, high = (float(np.tanh(np.arctanh(r) + k * half)) for k in (-1, 1))
    return Interval(r, (1 - r**2) * se, low, high)


def corrected(x: Floats, y: Floats, error: Floats) -> tuple[float, Interval]:
    """Reliability of x, and the slope over it with the interval of points left out one by one."""

    def both(keep: npt.NDArray[np.bool_]) -> tuple[float, float]:
        share = 1 - np.mean(error[keep] ** 2) / np.var(x[keep], ddof=1)
        return float(share), float(stats.linregress(x[keep], y[keep]).slope / share)

    n = len(x)
    without = np.array([both(np.arange(n) != i)[1] for i in range(n)])
    se = float(np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2)))
    (share, value), (_, df) = both(np.ones(n, bool)), slope(x, y)
    half = stats.t.ppf(0.975, df) * se
    return share, Interval(value, se, value - half, value + half)
