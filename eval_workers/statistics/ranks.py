"""Which ranks models may have on a benchmark, given how sure every difference of two of them is."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from plumbline.eval_workers.statistics.multiplicity import holm

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

#: Chance that any model's set of ranks is wrong, at the most.
ALPHA = 0.05
#: Variances of a difference below this are rounding: the figures differ by as much in every pair.
_NONE = 1e-18


def ranks(values: Floats) -> Ints:
    """Place of each value from the largest, 1; equal ones share the first.

    >>> ranks(np.array([0.5, 0.9, 0.5, 0.1]))
    array([2, 1, 2, 4])
    """
    return np.asarray(1 + (values[:, None] < values).sum(axis=1))


def rank_sets(values: Floats, covariances: Floats, df: float) -> tuple[Ints, Ints]:
    """The lowest and the highest rank that each model may have, right for all at once.

    Every two models are tested twice, whether one's figure is larger and whether it is smaller, by
    Student's t with the clustered error of their difference, all by Holm at ``ALPHA``. A model's
    ranks begin after the models that are larger for sure and end before those that are smaller
    (Mogstad, Romano, Shaikh and Wilhelm 2024): with probability 95% no set leaves out its model's
    true rank, nor one of those that it shares with equal models. Differences without an error,
    where all pairs differ by as much or there is one cluster, are not told apart.

    Args:
        values: means of models.
        covariances: ``clustered_variance`` of them.
        df: degrees of freedom.

    >>> errors = np.diag([1e-4, 1e-4, 1e-4])[None]
    >>> rank_sets(np.array([0.9, 0.52, 0.5]), errors, 30.0)
    (array([1, 2, 2]), array([1, 3, 3]))
    """
    p = _p_larger(values, covariances, df)
    of = ~np.eye(len(values), dtype=bool)
    is_larger = np.zeros_like(of)
    is_larger[of] = np.array(holm(p[of]), float) <= ALPHA
    return 1 + is_larger.sum(axis=0), len(values) - is_larger.sum(axis=1)


def _p_larger(values: Floats, covariances: Floats, df: float) -> Floats:
    """One-sided p of each model (row) being no larger than each other (column)."""
    from scipy.special import stdtr

    own = np.diagonal(covariances, axis1=1, axis2=2)
    each = own[:, :, None] + own[:, None, :] - 2 * covariances
    variance = each.max(axis=0, initial=-np.inf)
    is_known = variance > _NONE  # not so where it is NaN
    t = (values[:, None] - values) / np.sqrt(np.where(is_known, variance, 1.0))
    p: Floats = np.where(is_known & (df > 0), stdtr(max(df, 1.0), -t), 1.0)
    return p
