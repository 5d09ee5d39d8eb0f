"""Rank models on a benchmark, and compute a confidence set for each model's rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from plumbline.eval_workers.scoring.scored_pairs import (
    ROUNDING,
    Floats,
    Ints,
    ScoredPairs,
    clustered_variance,
    degrees_of_freedom,
    difference_variances,
    influences,
    n_clusters,
)
from plumbline.warehouse.finding import LEAST_CLUSTERS

#: Largest probability that any model's set of ranks is wrong.
ALPHA = 0.05


@dataclass(frozen=True)
class Board:
    """Models' figures and ranks, and the lowest and highest rank that each model may have."""

    values: Floats
    ranks: Ints
    low: Ints
    high: Ints


def model_ranks(every: Iterable[ScoredPairs], epsilon_nats: float) -> list[dict[str, object]]:
    """Return rows of ``model_rank``, without ``run_id``: ranks by US, by AuFC and by PD.

    A benchmark has no rows if only one model has been scored on it.
    """
    return [row for pairs in every if len(pairs.models) > 1 for row in _rows(pairs, epsilon_nats)]


def _rows(pairs: ScoredPairs, epsilon_nats: float) -> Iterator[dict[str, object]]:
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
                "value": float(ranked.values[i]),
                "rank": int(ranked.ranks[i]),
                "rank_low": int(ranked.low[i]),
                "rank_high": int(ranked.high[i]),
                "n_models": len(pairs.models),
                "n_pairs": len(figures),
                "n_clusters": n_clusters(pairs.clusters),
            }


def board(figures: Floats, clusters: Ints, strata: Ints | None = None) -> Board:
    """Rank models by the mean of a figure over pairs. Rank 1 has the largest mean.

    ``figures`` has one row per pair and one column per model, and is NaN where a pair has no
    figure. Models with equal means share the best of their ranks. Every two models are compared by
    Student's t test, and p is corrected by Holm's method. The tests at ``ALPHA`` determine a set of
    ranks for each model (Mogstad, Romano, Shaikh and Wilhelm 2024). With a probability of 95%,
    every set contains the true rank of its model. Two models count as equal if their difference is
    the same in all pairs, or if there are fewer clusters than ``LEAST_CLUSTERS``.
    ``clustered_variance`` defines ``clusters``, and ``influences`` defines ``strata``.

    >>> figures = np.repeat(np.random.default_rng(1).random((40, 3)) < [0.9, 0.5, 0.5], 2, axis=0)
    >>> ranked = board(figures.astype(float), np.arange(80)[:, None] // 2)
    >>> ranked.ranks, ranked.low, ranked.high
    (array([1, 2, 3]), array([1, 2, 2]), array([1, 3, 3]))
    """
    variance = difference_variances(clustered_variance(influences(figures, strata), clusters))
    df = degrees_of_freedom(clusters) if n_clusters(clusters) >= LEAST_CLUSTERS else 0.0
    values = np.nanmean(figures, axis=0)
    is_known = variance > ROUNDING
    t = (values[:, None] - values) / np.sqrt(np.where(is_known, variance, 1.0))
    # The null hypothesis of each p is that the row's mean isn't larger than the column's.
    p = np.where(is_known & (df > 0), stdtr(max(df, 1.0), -t), 1.0)
    is_other = ~np.eye(len(values), dtype=bool)
    is_larger = np.zeros_like(is_other)
    is_larger[is_other] = holm(p[is_other]) <= ALPHA
    low, high = 1 + is_larger.sum(axis=0), len(values) - is_larger.sum(axis=1)
    return Board(values, 1 + (values[:, None] < values).sum(axis=1), low, high)


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
