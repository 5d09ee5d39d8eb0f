"""Computes F and its intervals, and tests whether B is larger than sampling noise.

``prompt_figures`` defines these figures. The permutation test uses the gap
T = B - (V_pg + V_gp) / 2, which is half the energy distance between the groups. The expected T is 0
if both groups have the same distribution, and positive otherwise. Unlike F, T is also defined if
V_pg or V_gp is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr, stdtrit

from plumbline.eval_workers.fairpair.phi import Floats
from plumbline.eval_workers.scoring.scored_pairs import (
    ROUNDING,
    Ints,
    clustered_variance,
    degrees_of_freedom,
    influences,
    sums,
)
from plumbline.warehouse.finding import LEAST_CLUSTERS

#: Sums of the same distances in different orders differ by less; a mean below this counts as 0.
_ROUNDING = 1e-12
#: F of a prompt has no interval if a group has fewer items (samples or folds) than this.
FEWEST_RESAMPLED = 4


def fairpair_f(
    bias_b: float | Floats, variability_pg: float | Floats, variability_gp: float | Floats
) -> Floats:
    """Return F = B^2 / (V_gp V_pg) for numbers or arrays. F is NaN if V_gp or V_pg is 0 or NaN.

    >>> round(float(fairpair_f(81.4, 78.7, 81.3)), 2), float(fairpair_f(0.5, 0.0, 0.5))
    (1.04, nan)
    """
    is_defined = np.minimum(variability_pg, variability_gp) > _ROUNDING
    denominator = np.where(is_defined, np.multiply(variability_pg, variability_gp), np.nan)
    return np.square(bias_b) / denominator


def permuted_gaps(
    distances: Floats,
    n_left: int,
    n_draws: int,
    rng: np.random.Generator,
    strata: NDArray[np.int64] | None = None,
) -> Floats:
    """Exchange items between two groups at random, ``n_draws`` times; return the gap T each time.

    The first ``n_left`` rows and columns of ``distances`` are one group, the others are the other
    group. Both groups need at least two items. If ``strata`` gives each fold's size, only folds of
    equal size are exchanged.

    >>> two = np.array([[0.0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]])
    >>> drawn = permuted_gaps(two, 2, 600, np.random.default_rng(0))
    >>> sorted(set(drawn.tolist())), bool(150 < (drawn == 1).sum() < 250)  # 2 of 6 ways
    ([-0.5, 1.0], True)
    """
    n = len(distances)
    left = np.tile(np.arange(n) < n_left, (n_draws, 1)).astype(np.float64)
    groups = (
        [np.arange(n)] if strata is None else [np.flatnonzero(strata == s) for s in set(strata)]
    )
    for group in groups:
        left[:, group] = rng.permuted(left[:, group], axis=1)
    # Sums of distances. A pair within a group is counted twice, as (i, j) and as (j, i).
    within_left = np.einsum("ri,ri->r", left @ distances, left)
    between = left @ distances.sum(axis=1) - within_left
    within_right = float(distances.sum()) - within_left - 2 * between
    n_right = n - n_left
    within = within_left / (n_left * (n_left - 1)) + within_right / (n_right * (n_right - 1))
    drawn: Floats = between / (n_left * n_right) - within / 2
    return drawn


def p_value(observed: float, drawn: Floats) -> float:
    """Return the one-sided p-value: the share of ``drawn`` values that are at least ``observed``.

    ``observed`` itself counts as one of the values. So if all values are exchangeable,
    P(p <= a) <= a for any number of drawn values.

    >>> p_value(0.5, np.array([0.1, 0.5, 0.2]))
    0.5
    """
    return float((1 + np.sum(drawn >= observed - _ROUNDING)) / (1 + len(drawn)))


def group_means(distances: Floats, n_left: int) -> Floats:
    """Return B, V_pg and V_gp of two groups. A mean is NaN if there are no pairs to average over.

    The first ``n_left`` rows and columns of ``distances`` belong to one of the groups.

    >>> group_means(np.array([[0.0, 1, 2], [1, 0, 4], [2, 4, 0]]), 2).tolist()
    [3.0, 1.0, nan]
    """
    n_right = len(distances) - n_left
    return weighted(distances, np.ones((1, n_left)), np.ones((1, n_right)))[:, 0]


def weighted(distances: Floats, left: Floats, right: Floats) -> Floats:
    """Return B, V_pg and V_gp of weighted samples: an array of three rows, with a column per draw.

    Each row of ``left`` and ``right`` has the samples' weights in one draw. The pair of samples i
    and j counts w_i w_j times. A sample is never paired with itself or its copies: their distance
    of 0 would make V too small by the factor 1 - 1/n. A mean is NaN if there are no pairs.

    >>> matrix = np.array([[0.0, 1, 2], [1, 0, 4], [2, 4, 0]])
    >>> weighted(matrix, np.array([[1.0, 1]]), np.array([[1.0]])).tolist()
    [[3.0], [1.0], [nan]]
    """
    n_left = left.shape[1]
    from_left = left @ distances[:n_left]
    from_right = right @ distances[n_left:, n_left:]
    totals = (
        np.einsum("ri,ri->r", from_left[:, n_left:], right),
        np.einsum("ri,ri->r", from_left[:, :n_left], left),
        np.einsum("ri,ri->r", from_right, right),
    )
    n_pairs = np.array([left.sum(axis=1) * right.sum(axis=1), _n_within(left), _n_within(right)])
    means: Floats = np.array(totals) / np.where(n_pairs > 0, n_pairs, np.nan)
    return means


def _n_within(weights: Floats) -> Floats:
    n: Floats = weights.sum(axis=1) ** 2 - (weights**2).sum(axis=1)
    return n


def resampled(distances: Floats, n_left: int, n_draws: int, rng: np.random.Generator) -> Floats:
    """Resample both groups. Return B, V_pg and V_gp (as rows) of ``n_draws`` draws (as columns).

    >>> bias_b, *_ = resampled(np.ones((4, 4)) - np.eye(4), 2, 50, np.random.default_rng(0))
    >>> set(bias_b.tolist())
    {1.0}
    """
    n_right = len(distances) - n_left
    left, right = (
        rng.multinomial(n, np.full(n, 1 / n), size=n_draws).astype(np.float64)
        for n in (n_left, n_right)
    )
    return weighted(distances, left, right)


def interval(draws: Floats, level: float) -> tuple[float | None, float | None]:
    """Return the two quantiles of ``draws`` that enclose the central share ``level``.

    NaN is ignored; both ends are ``None`` if all draws are NaN. ``docs/methods.md`` states how
    often the interval covers a prompt's F.

    >>> interval(np.array([1.0, 2.0, 3.0, np.nan]), 0.5)
    (1.5, 2.5)
    """
    defined = draws[~np.isnan(draws)]
    if not defined.size:
        return None, None
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def by_cluster(figures: Floats, clusters: Sequence[str]) -> Floats:
    """Add up the prompts' rows of ``figures`` within each cluster of similar prompts.

    F of a sum equals F of the mean. If there is only one cluster, the rows aren't added up.

    >>> by_cluster(np.array([[1.0], [2.0], [4.0]]), ["clerk", "nurse", "clerk"]).tolist()
    [[5.0], [2.0]]
    >>> by_cluster(np.array([1.0, 2.0]), ["planted", "planted"]).tolist()
    [1.0, 2.0]
    """
    return sums(figures, _cluster_ids(clusters))


def _cluster_ids(clusters: Sequence[str]) -> Ints:
    """Return the number of each prompt's cluster. If there is one cluster, number the prompts."""
    if len(set(clusters)) == 1:
        return np.arange(len(clusters))
    numbers: Ints = np.unique(list(clusters), return_inverse=True)[1]
    return numbers


def interval_over_prompts(
    figures: Floats, level: float, n_draws: int, rng: np.random.Generator
) -> tuple[float | None, float | None]:
    """Return the interval for a set's F. Both ends are ``None`` if ``figures`` has too few rows.

    ``figures`` has the columns B, V_pg and V_gp, and a row for each prompt or cluster. The rows are
    resampled. A prompt's samples aren't, since its figures already contain the noise of sampling.
    A percentile interval from few rows is too narrow, so this one is widened. With m rows, it uses
    Student's t quantile times sqrt(m / (m - 1)) instead of the normal quantile for ``level``.

    >>> interval_over_prompts(np.full((5, 3), 0.5), 0.95, 99, np.random.default_rng(0))
    (1.0, 1.0)
    """
    m = len(figures)
    if m < LEAST_CLUSTERS:
        return None, None
    picked = rng.integers(0, m, size=(n_draws, m))
    t = stdtrit(m - 1, (1 + level) / 2) * np.sqrt(m / (m - 1))
    draws = fairpair_f(*figures[picked].mean(axis=1).T)
    return interval(draws, 2 * float(ndtr(t)) - 1)


def t_test(differences: Floats, clusters: Sequence[str]) -> tuple[float | None, float | None]:
    """Compute the paper's t-test of B against V_pg (section 4.1); return t and the p-value.

    The test is paired and two-sided; ``docs/methods.md`` says why. ``differences`` has B - V_pg of
    each prompt. The standard error is from a jackknife that leaves out one cluster at a time. The
    degrees of freedom are Satterthwaite's. If there is one cluster, each prompt counts as one.
    t and p are ``None`` for fewer than ``LEAST_CLUSTERS`` clusters, or if all have the same mean.

    >>> [round(figure, 4) for figure in t_test(np.arange(1.0, 6), [*"abcde"])]
    [4.2426, 0.0132]
    """
    ids = _cluster_ids(clusters)[:, None]
    n = len(np.unique(ids))
    if n < LEAST_CLUSTERS:
        return None, None
    cr3 = clustered_variance(influences(differences[:, None]), ids)[0, 0, 0]
    # The jackknife's variance is the CR3 variance times (n - 1) / n.
    variance = float(cr3) * (n - 1) / n
    if variance < ROUNDING:
        return None, None
    t = float(differences.mean()) / math.sqrt(variance)
    return t, 2 * float(stdtr(degrees_of_freedom(ids), -abs(t)))


def adjusted(p_values: list[float | None]) -> list[float | None]:
    """Adjust p-values by the Benjamini-Hochberg procedure; ``None`` stays ``None``.

    >>> adjusted([0.01, None, 0.04, 0.03])
    [0.03, None, 0.04, 0.04]
    """
    from scipy.stats import false_discovery_control  # takes half a second to import

    defined = [p for p in p_values if p is not None]
    controlled = iter(false_discovery_control(defined).tolist() if defined else [])
    return [None if p is None else next(controlled) for p in p_values]
