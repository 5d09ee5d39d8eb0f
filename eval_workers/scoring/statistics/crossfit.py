"""Residuals of log ratios after removing what goes with properties of pairs.

The fit for a pair is on pairs that share no cluster with it (no word, no frame), so that removing
noise can't look like an explanation.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from plumbline.eval_workers.scoring.statistics.clusters import NO_CLUSTER, Floats, Ints
from plumbline.eval_workers.scoring.statistics.components import RCOND, unit_columns


def cells(clusters: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Pairs that are in the same clusters, and all pairs that share a cluster with them.

    A pair in no cluster shares one with itself alone.

    >>> [(a.tolist(), b.tolist()) for a, b in cells(np.array([[0, 2], [1, 2], [1, 3], [1, 3]]))]
    [([0], [0, 1]), ([1], [0, 1, 2, 3]), ([2, 3], [1, 2, 3])]
    >>> [(a.tolist(), b.tolist()) for a, b in cells(np.full((2, 1), NO_CLUSTER))]
    [([0], [0]), ([1], [1])]
    """
    alone = np.flatnonzero((clusters == NO_CLUSTER).all(axis=1))
    clusters = clusters.copy()
    clusters[alone, 0] = clusters.max(initial=NO_CLUSTER) + 1 + np.arange(len(alone))
    every, cell = np.unique(clusters, axis=0, return_inverse=True)
    for k, ids in enumerate(every):
        near = np.isin(clusters, ids[ids != NO_CLUSTER]).any(axis=1)
        yield np.flatnonzero(cell.reshape(-1) == k), np.flatnonzero(near)


def without_fit(y: Floats, x: Floats, clusters: Ints) -> Floats:
    """Log ratios [pair, model] less a constant of the model and its slopes on x [pair, column].

    >>> y, x = np.array([[1.0], [1.0], [5.0], [6.0]]), np.empty((4, 0))
    >>> without_fit(y, x, np.array([[0], [0], [1], [1]])).T.tolist()
    [[-4.5, -4.5, 4.0, 5.0]]
    """
    design = unit_columns(np.hstack([np.ones((len(y), 1)), x - x.mean(axis=0)]))
    xx, xy, rest = design.T @ design, design.T @ y, np.empty_like(y)
    for pairs, near in cells(clusters):
        x_near, y_near = design[near], y[near]
        inverse = np.linalg.pinv(xx - x_near.T @ x_near, rcond=RCOND, hermitian=True)
        slopes = inverse @ (xy - x_near.T @ y_near)
        rest[pairs] = y[pairs] - design[pairs] @ slopes
    return rest


def without_near(rest: Floats, near: Floats, clusters: Ints) -> Floats:
    """Residuals less each model's slope, through 0, on a figure of the pair [pair, model]."""
    products, squares, left = rest * near, near**2, rest.copy()
    for pairs, close in cells(clusters):
        below = squares.sum(axis=0) - squares[close].sum(axis=0)
        slope = (products.sum(axis=0) - products[close].sum(axis=0)) / np.where(below > 0, below, 1)
        left[pairs] -= slope * near[pairs]
    return left


def of_cluster(rest: Floats, clusters: Ints) -> Floats:
    """The mean residual of the other pairs of a pair's clusters; 0 where there are none.

    >>> of_cluster(np.array([[1.0], [3.0], [5.0]]), np.array([[0], [0], [1]])).T.tolist()
    [[3.0, 1.0, 0.0]]
    """
    means = np.zeros_like(rest)
    for pairs, near in cells(clusters):
        total = rest[near].sum(axis=0) - rest[pairs]
        means[pairs] = total / max(len(near) - 1, 1)
    return means


def of_other_families(rest: Floats, families: Ints) -> Floats:
    """The mean residual of the same pair under models of other families, each family once.

    >>> of_other_families(np.array([[1.0, 3.0, 5.0]]), np.array([0, 0, 1])).tolist()
    [[5.0, 5.0, 2.0]]
    """
    names = np.unique(families)
    means = np.array([rest[:, families == name].mean(axis=1) for name in names])
    others = [means[names != name].mean(axis=0) for name in families]
    return np.column_stack(others) if len(names) > 1 else np.zeros_like(rest)
