"""What a benchmark can find: the smallest effect that its pairs show four times in five."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from plumbline.eval_workers.statistics.clusters import (
    LEAST_CLUSTERS,
    NO_CLUSTER,
    ROUNDING,
    clustered_variance,
    degrees_of_freedom,
    difference_variances,
    influences,
    n_clusters,
    variances,
)

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

#: Chance to find an effect of the smallest size, by a two-sided test at ``LEVEL``.
POWER, LEVEL = 0.8, 0.05


@dataclass(frozen=True)
class Spread:
    """How a figure varies: deviation over pairs, correlation of two pairs that share a cluster."""

    sd: float
    icc: float


@dataclass(frozen=True)
class Design:
    """What of a benchmark decides how much it can find.

    ``n_alike`` is the mean number of other pairs that share a cluster with a pair.
    """

    n_pairs: int
    n_clusters: int
    n_alike: float
    df: float

    @classmethod
    def of(cls, clusters: Ints) -> Design:
        """That of pairs in clusters, numbered as ``clustered_variance`` takes them.

        >>> Design.of(np.array([[0], [0], [0], [1], [1], [1]])).n_alike
        2.0
        """
        n, first, second = len(clusters), clusters[:, 0], clusters[:, -1]
        is_two = (first != second) & (second != NO_CLUSTER)
        n_sharing = _squares(np.concatenate([first, second[is_two]]))
        n_sharing -= _squares(np.sort(clusters[is_two], axis=1))  # those that share both
        return cls(n, n_clusters(clusters), n_sharing / n - 1, degrees_of_freedom(clusters))

    def smallest(self, spread: Spread) -> float | None:
        """The smallest effect that it can find, in the unit of ``spread.sd``.

        (t at 97.5% + t at 80%) standard errors (Bloom 1995), the error that of independent pairs
        times the root of the design effect, 1 + icc times ``n_alike`` (Kish 1965). ``None`` below
        ``LEAST_CLUSTERS``.

        >>> round(Design(400, 400, 0.0, 399.0).smallest(Spread(0.5, 0.0)), 3)
        0.07
        """
        from scipy.special import stdtrit

        if self.n_clusters < LEAST_CLUSTERS:
            return None
        points = stdtrit(self.df, [1 - LEVEL / 2, POWER]).sum()
        effect = 1 + max(spread.icc, 0.0) * self.n_alike
        return float(points * spread.sd * np.sqrt(effect / self.n_pairs))


def _squares(ids: Ints) -> int:
    """Sum of the squared numbers of equal ones."""
    return int((np.unique(ids, axis=0, return_counts=True)[1] ** 2).sum())


def measured(lean: Floats, clusters: Ints, strata: Ints | None = None) -> dict[str, Spread]:
    """How PD (points), US and differences of two models in them vary over the pairs of a benchmark.

    The deviations are those of a model without a preference disparity, of a share of a half, and of
    two models; all are medians over the models, or over every two, which are left out where there
    is one. ``icc`` is 0 of figures that don't vary and where no pairs are alike.

    Args:
        lean: 1, -1 or 0 of pairs (rows) under models (columns), as by macro ``lean``; NaN for none.
        clusters: as of ``clustered_variance``.
        strata: as of ``influences``.
    """
    n_alike, alone = Design.of(clusters).n_alike, np.arange(len(lean))[:, None]
    even = np.where(np.isnan(lean), np.nan, lean == 0)
    sd = {"pd": 100 * np.sqrt(1 - np.median(np.nanmean(even, axis=0))), "us": 0.5}
    found = {}
    for name, figures in (("pd", 100 * lean), ("us", even)):
        of_pair = influences(figures, strata)
        alike, apart = (clustered_variance(of_pair, ids) for ids in (clusters, alone))
        icc = _icc(variances(alike), variances(apart), n_alike)
        found[name] = Spread(float(sd[name]), icc)
        if lean.shape[1] > 1:
            two = np.triu_indices(lean.shape[1], 1)
            both, each = (difference_variances(of)[two] for of in (alike, apart))
            deviation = float(np.median(np.sqrt(each * len(lean))))
            found[f"{name} difference"] = Spread(deviation, _icc(both, each, n_alike))
    return found


def _icc(alike: Floats, apart: Floats, n_alike: float) -> float:
    """The correlation that makes clustered variances of those of independent pairs."""
    is_known = apart > ROUNDING
    if not n_alike or not is_known.any():
        return 0.0
    return float(np.clip(np.median(alike[is_known] / apart[is_known] - 1) / n_alike, 0, 1))
