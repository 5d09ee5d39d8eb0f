"""Rank models on a benchmark, and compute the smallest effect that the benchmark can detect.

Each model's rank has a confidence interval. If an effect is as large as the smallest detectable
effect, a test detects it with probability ``POWER``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from plumbline.eval_workers.scoring.scored_pairs import (
    NO_CLUSTER,
    ROUNDING,
    Bools,
    Floats,
    Ints,
    ScoredPairs,
    clustered_variance,
    degrees_of_freedom,
    difference_variances,
    influences,
    n_clusters,
    sums,
    variances,
)
from plumbline.warehouse.finding import LEAST_CLUSTERS

#: Largest probability that any model's true rank is outside its interval.
#: Also the level of the two-sided test that detects the smallest effect.
LEVEL = 0.05
#: If two models differ in fewer clusters, the error of their difference is uncertain.
_FEW = 10
#: Probability of detecting the smallest effect.
POWER = 0.8
#: Measure -> its unit, and the largest possible effect.
MEASURES = {
    "pd": ("percentage points", 100.0),
    "us": ("share", 0.5),
    "us difference": ("share", 1.0),
    "pd difference": ("percentage points", 200.0),
}


def model_ranks(pairs: ScoredPairs, epsilon_nats: float) -> Iterator[dict[str, object]]:
    """Yield rows of ``model_rank``, without ``run_id``: ranks by US, by AuFC and by PD.

    There are no rows if only one model has been scored on the benchmark.
    """
    if len(pairs.models) == 1:
        return
    for metric, figures, epsilon in (
        ("us", pairs.even, epsilon_nats),
        ("aufc", pairs.area, None),
        ("pd", 100 * pairs.lean, epsilon_nats),
    ):
        ranked = board(figures, pairs.clusters, pairs.strata)
        for i, (model_key, model) in enumerate(pairs.models):
            yield {
                "benchmark": pairs.benchmark,
                "groups": pairs.groups,
                "metric": metric,
                "model_key": model_key,
                "model": model,
                "epsilon_nats": epsilon,
                **{column: values[i].item() for column, values in ranked.items()},
                "n_models": len(pairs.models),
                "n_pairs": len(figures),
                "n_clusters": n_clusters(pairs.clusters),
            }


def board(figures: Floats, clusters: Ints, strata: Ints | None = None) -> dict[str, Floats | Ints]:
    """Rank models by their mean figure, with a 95% confidence interval for each rank.

    The result has the columns ``value`` (the mean), ``rank``, ``rank_low`` and ``rank_high``, with
    one entry per model. Rank 1 has the largest mean. Models with equal means share the best rank.

    ``figures`` has one row per pair and one column per model. Missing figures are NaN. Every two
    models are compared with Student's t test, and the p-values are corrected with Holm's method. If
    all figures are 0 or 1, t comes from ``_bonett_price``, as in the macro `preference_pairwise`.
    A model's interval follows from how many means are significantly larger or smaller (Mogstad,
    Romano, Shaikh and Wilhelm 2024). With 95% probability, all intervals contain the true rank. A
    difference isn't significant if it is the same in all pairs, or if there are fewer than
    ``LEAST_CLUSTERS`` clusters. It also isn't significant if the two models differ in fewer than
    ten clusters (and not in all), because its error is then uncertain, as in the macro `clustered`.
    ``clustered_variance`` explains ``clusters``, and ``influences`` explains ``strata``.

    >>> figures = np.repeat(np.random.default_rng(1).random((40, 3)) < [0.9, 0.5, 0.5], 2, axis=0)
    >>> ranked = board(figures.astype(float), np.arange(80)[:, None] // 2)
    >>> ranked["rank"], ranked["rank_low"], ranked["rank_high"]
    (array([1, 2, 3]), array([1, 2, 2]), array([1, 3, 3]))
    """
    variance = difference_variances(clustered_variance(influences(figures, strata), clusters))
    df = degrees_of_freedom(clusters) if n_clusters(clusters) >= LEAST_CLUSTERS else 0.0
    values = np.nanmean(figures, axis=0)
    is_known = (variance > ROUNDING) & _differ_in_enough(figures, clusters)
    variance = np.where(is_known, variance, 1.0)
    t = (values[:, None] - values) / np.sqrt(variance)
    if np.isin(figures[~np.isnan(figures)], (0, 1)).all():
        t = _bonett_price(figures, variance)
    # p[i, j] tests whether the mean of model i is larger than the mean of model j.
    p = np.where(is_known & (df > 0), stdtr(max(df, 1.0), -t), 1.0)
    is_other = ~np.eye(len(values), dtype=bool)
    is_larger = np.zeros_like(is_other)
    is_larger[is_other] = holm(p[is_other]) <= LEVEL
    return {
        "value": values,
        "rank": 1 + (values[:, None] < values).sum(axis=1),
        "rank_low": 1 + is_larger.sum(axis=0),
        "rank_high": len(values) - is_larger.sum(axis=1),
    }


def _bonett_price(figures: Floats, variance: Floats) -> Floats:
    """Return t of every two models' difference of shares, from Bonett and Price's interval.

    ``figures`` are 0 or 1. ``variance`` is that of the differences. As in the macro `bonett_price`,
    one pair is added for each direction, so t is smaller than the difference over its error if few
    independent pairs would have the same error.
    """
    is_known = ~np.isnan(figures)
    one, zero = (figures == 1).astype(float), (figures == 0).astype(float)
    n_both = is_known.astype(float).T @ is_known
    above, below = one.T @ zero / n_both, zero.T @ one / n_both
    n = (above + below - (above - below) ** 2) / variance
    centre = n * (above - below) / (n + 2)
    error = np.sqrt(((n * (above + below) + 2) / (n + 2) - centre**2) / (n + 2))
    return np.asarray(centre / error)


def _differ_in_enough(figures: Floats, clusters: Ints) -> Bools:
    """For every two models, return whether they differ in at least ten clusters, or in all.

    With two dimensions of clusters, the dimension with more clusters counts.
    """
    ids = max(clusters.T, key=lambda column: len(np.unique(column)))
    _, numbers = np.unique(ids, return_inverse=True)
    n_needed = min(_FEW, int(numbers.max()) + 1)
    others = (np.abs(figures - figure[:, None]) > 0 for figure in figures.T)
    n_differing = [(sums(differ, numbers) > 0).sum(axis=0) for differ in others]
    return np.array(n_differing) >= n_needed


def holm(p_values: Floats) -> Floats:
    """Adjust p-values by Holm's method (1979), which limits the chance of any false discovery.

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    adjusted = np.empty_like(p_values)
    steps = np.minimum(p_values[order] * np.arange(len(p_values), 0, -1), 1.0)
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted


@dataclass(frozen=True)
class PairDesign:
    """The numbers of pairs and clusters in a benchmark. Its statistical power depends on them.

    On average, a pair shares a cluster with ``n_alike`` other pairs.
    """

    n_pairs: int
    n_clusters: int
    n_alike: float
    df: float

    @classmethod
    def of(cls, clusters: Ints) -> PairDesign:
        """Compute the design from the clusters of pairs (see ``clustered_variance``).

        >>> PairDesign.of(np.array([[0], [0], [0], [1], [1], [1]])).n_alike
        2.0
        """
        n, first, second = len(clusters), clusters[:, 0], clusters[:, -1]
        is_two = (first != second) & (second != NO_CLUSTER)
        known = np.concatenate([first, second[is_two]])
        n_sharing = _squares(known[known != NO_CLUSTER])
        # Each pair also shares a cluster with itself. Add the pairs that have no cluster.
        n_sharing += int((clusters == NO_CLUSTER).all(axis=1).sum())
        # Two pairs that share both clusters were counted twice. Count them once.
        n_sharing -= _squares(np.sort(clusters[is_two], axis=1))
        return cls(n, n_clusters(clusters), n_sharing / n - 1, degrees_of_freedom(clusters))

    def smallest(self, sd: float, icc: float) -> float | None:
        """Return the smallest effect that the benchmark can detect, in the unit of ``sd``.

        ``sd`` and ``icc`` are the values that ``spreads_of`` returns. The smallest effect is the
        standard error times the sum of Student's t at 97.5% and at 80% (Bloom 1995). The standard
        error for independent pairs is multiplied by the square root of the design effect,
        1 + ``icc`` * ``n_alike`` (Kish 1965). The result is ``None`` if there are fewer clusters
        than ``LEAST_CLUSTERS``.

        >>> round(PairDesign(400, 400, 0.0, 399.0).smallest(0.5, 0.0), 3)
        0.07
        """
        if self.n_clusters < LEAST_CLUSTERS:
            return None
        points = stdtrit(self.df, [1 - LEVEL / 2, POWER]).sum()
        design_effect = 1 + max(icc, 0.0) * self.n_alike
        return float(points * sd * np.sqrt(design_effect / self.n_pairs))


def _squares(ids: Ints) -> int:
    """Count how often each id (or row of ids) occurs, and return the sum of the squared counts."""
    return int((np.unique(ids, axis=0, return_counts=True)[1] ** 2).sum())


def spreads_of(pairs: ScoredPairs) -> dict[str, dict[str, float]]:
    """Return how much each measure in ``MEASURES`` varies from pair to pair: ``sd`` and ``icc``.

    ``sd`` is the standard deviation. ``icc`` is the correlation of pairs within a cluster.
    The ``sd`` of PD is computed as if PD were 0, and the ``sd`` of US as if US were a half. The
    ``icc`` of PD and US is the median over models. For differences between two models, ``sd`` and
    ``icc`` are medians over all combinations of two models. ``icc`` is 0 if no pairs share a
    cluster. A measure is left out if its values are unknown or don't vary.
    """
    clusters, n_pairs = pairs.clusters, len(pairs.lean)
    n_alike, alone = PairDesign.of(clusters).n_alike, np.arange(n_pairs)[:, None]
    least = ROUNDING * n_pairs
    sd = {"pd": 100 * np.sqrt(1 - np.median(np.nanmean(pairs.even, axis=0))), "us": 0.5}
    spreads = {}
    for name, figures in (("pd", 100 * pairs.lean), ("us", pairs.even)):
        of_pair = influences(figures, pairs.strata)
        alike, apart = (clustered_variance(of_pair, ids) for ids in (clusters, alone))
        icc = _icc(variances(alike), variances(apart), n_alike)
        spreads[name] = {"sd": float(sd[name]), "icc": icc}
        if len(pairs.models) > 1:
            two = np.triu_indices(len(pairs.models), 1)
            both, each = (difference_variances(every)[two] for every in (alike, apart))
            # rounding can make a variance of 0 negative
            deviation = float(np.median(np.sqrt(np.maximum(each, 0) * n_pairs)))
            icc = _icc(both, each, n_alike)
            spreads[f"{name} difference"] = {"sd": deviation, "icc": icc}
    return {name: spread for name, spread in spreads.items() if spread["sd"] ** 2 > least}


def _icc(alike: Floats, apart: Floats, n_alike: float) -> float:
    """Estimate the ICC (0 to 1) from variances that use clusters (``alike``) or not (``apart``)."""
    is_known = apart > ROUNDING
    if not n_alike or not is_known.any():
        return 0.0
    return float(np.clip(np.median(alike[is_known] / apart[is_known] - 1) / n_alike, 0, 1))


def powers(pairs: ScoredPairs) -> Iterator[dict[str, object]]:
    """Yield rows of ``benchmark_power``, without ``run_id``: one row per measure."""
    design = PairDesign.of(pairs.clusters)
    for measure, spread in spreads_of(pairs).items():
        unit, most = MEASURES[measure]
        smallest = design.smallest(**spread)
        yield {
            "benchmark": pairs.benchmark,
            "groups": pairs.groups,
            "measure": measure,
            "unit": unit,
            "smallest": smallest if smallest is not None and smallest <= most else None,
            **spread,
            **asdict(design),
            "n_models": len(pairs.models),
        }
