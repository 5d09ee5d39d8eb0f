"""Analysis of variance of log ratios: split their mean square, over pairs and models, into parts.

A log ratio is modelled as the sum of a constant for the model, the model's slope on each property
of the pair, an effect of each cluster that the pair is in (its word, its frame), and an effect of
the pair itself. Each part has a matrix of mean products of two models; these matrices add up to the
matrix of the log ratios. The variance of models within and between families shows which models
share a part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, nan

import numpy as np
from scipy.sparse import csr_array
from scipy.special import stdtrit

from plumbline.eval_workers.scoring.statistics.scored_pairs import (
    NO_CLUSTER,
    Bools,
    Floats,
    Ints,
    degrees_of_freedom,
    n_clusters,
)
from plumbline.warehouse.finding import LEAST_CLUSTERS

CONSTANT, PAIR = "constant", "pair"
#: If an eigenvalue is below this share of the largest one, its direction counts as collinear.
RCOND = 1e-9
#: Which models share a part: all, those of one family, or just one; then the sum of the three.
SHARED = ("all models", "a family", "one model", "sum")


@dataclass(frozen=True)
class LogRatioTable:
    """Log ratios of pairs (rows) under models (columns), with properties of pairs and models.

    Attributes:
        y: float64[pair, model], without missing values.
        properties: float64[pair, column] by name.
        clusters: the clusters of each pair, as in ``clustered_variance``.
        kinds: the kind of each column of ``clusters``. Two columns of one kind (two occupations in
            a sentence) share their numbers.
        families: the number of each model's family.
    """

    y: Floats
    properties: Mapping[str, Floats]
    clusters: Ints
    kinds: Sequence[str]
    families: Ints

    def only(self, is_kept: Bools) -> LogRatioTable:
        """Return the table of the pairs in the mask ``is_kept``."""
        some = {name: x[is_kept] for name, x in self.properties.items()}
        return replace(self, y=self.y[is_kept], properties=some, clusters=self.clusters[is_kept])


@dataclass(frozen=True)
class Share:
    """A part's share of the mean square, with 95% intervals.

    The ends ``share_low`` and ``share_high`` allow for other words; ``families_low`` and
    ``families_high`` also allow for other families of models. Ends are NaN if there are fewer than
    five clusters or families.
    """

    part: str
    shared: str
    share: float
    share_low: float
    share_high: float
    families_low: float
    families_high: float


@dataclass(frozen=True)
class _Design:
    """The design of a table: ``x`` has a column of ones, then the columns of the properties.

    ``is_in`` [set, column] marks the columns of each set of properties. ``weights`` maps a part to
    the weights of the sets. What a part explains is the weighted sum of what the sets explain. If
    properties are correlated, what each explains depends on the order in which they are added, so
    it is averaged over all orders (Lindeman, Merenda and Gold 1980; Shapley).
    """

    y: Floats
    x: Floats
    members: dict[str, csr_array]
    is_in: Bools
    weights: dict[str, Floats]

    @staticmethod
    def of(table: LogRatioTable) -> _Design:
        names = [name for name, x in table.properties.items() if np.ptp(x, axis=0).any()]
        columns = [table.properties[name] for name in names]
        centred = (column - column.mean(axis=0) for column in columns)
        x = unit_columns(np.hstack([np.ones((len(table.y), 1)), *centred]))
        place = np.repeat(np.arange(-1, len(columns)), [1, *(c.shape[1] for c in columns)])
        sizes = range(len(names) + 1)
        sets = [frozenset(s) for k in sizes for s in combinations(range(len(names)), k)]
        is_in = np.array([np.isin(place, [-1, *s]) for s in sets])
        weights = {CONSTANT: np.array([0.0 if s else 1.0 for s in sets])}
        for k, name in enumerate(names):
            weights[name] = _weights(sets, k, len(names))
        return _Design(table.y, x, _memberships(table), is_in, weights)

    def only(self, is_kept: Bools) -> _Design:
        """Return the design of the pairs in the mask ``is_kept``."""
        members = {kind: z[is_kept] for kind, z in self.members.items()}
        return replace(self, y=self.y[is_kept], x=self.x[is_kept], members=members)

    def products(self) -> dict[str, Floats]:
        """Return the mean product of two models in each part."""
        n, xx, xy = len(self.y), self.x.T @ self.x, self.x.T @ self.y
        x_sums = [z.T @ self.x for z in self.members.values()]
        squares = np.array([*(sums.T @ sums for sums in x_sums), xx])
        sizes = np.array([*(z.nnz for z in self.members.values()), n])
        levels = self._levels(x_sums, squares, sizes)
        # For each set, the inverse of x'x over its columns; zeros elsewhere.
        inverses = np.linalg.pinv(
            xx * self.is_in[:, None] * self.is_in[..., None], rcond=RCOND, hermitian=True
        )
        steps = np.tensordot(np.array(list(self.weights.values())), inverses, 1)
        chance = np.einsum("pij,lij->pl", steps, squares)
        explained = xy.T @ steps @ xy - np.tensordot(chance, levels, 1)
        names = [*self.weights, *self.members, PAIR]
        parts = [*explained, *(levels * sizes[:, None, None])]
        return {name: part / n for name, part in zip(names, parts, strict=True)}

    def _levels(self, x_sums: Sequence[Floats], squares: Floats, sizes: Ints) -> Floats:
        """Return the covariances of models over clusters and over pairs, [level, model, model].

        The levels are the kinds of clusters, then the pairs. ``x_sums`` are the sums of ``x`` by
        cluster for each kind, ``squares`` their products for each level, and ``sizes`` the numbers
        of pairs in clusters.
        """
        members = list(self.members.values())
        inverse = np.linalg.pinv(squares[-1], rcond=RCOND, hermitian=True)
        expected = np.empty((len(sizes),) * 2)
        for a, one in enumerate(members):
            for c, other in enumerate(members):
                both = (one.T @ other).tocoo()  # pairs that are in both of two clusters
                first, second = both.coords
                crossed = np.einsum("ij,ij->i", (x_sums[a] @ inverse)[first], x_sums[c][second])
                expected[a, c] = (both.data**2 - 2 * both.data * crossed).sum()
                expected[a, c] += np.sum((inverse @ squares[a]).T * (inverse @ squares[c]))
        expected[-1] = expected[:, -1] = sizes - (inverse * squares).sum(axis=(1, 2))
        rest = self.y - self.x @ (inverse @ self.x.T @ self.y)
        observed = np.array([(z.T @ rest).T @ (z.T @ rest) for z in members] + [rest.T @ rest])
        return np.asarray(np.tensordot(np.linalg.pinv(expected), observed, 1))


def unit_columns(x: Floats) -> Floats:
    """Divide each column by the root of its mean square, unless the column is all zeros."""
    size = np.sqrt((x**2).mean(axis=0))
    return np.asarray(x / np.where(size > 1e-9, size, 1))


def _memberships(table: LogRatioTable) -> dict[str, csr_array]:
    """Return a matrix [pair, cluster] for each kind: 1 where a pair is in a cluster, else 0.

    Kinds whose clusters have one pair each are left out, as they can't be told from the pairs.
    """
    members = {}
    for kind in dict.fromkeys(table.kinds):
        ids = table.clusters[:, [k == kind for k in table.kinds]]
        pair, column = np.nonzero(ids != NO_CLUSTER)
        numbers, cluster = np.unique(ids[pair, column], return_inverse=True)
        is_in = csr_array((np.ones(len(pair)), (pair, cluster)), (len(ids), len(numbers)))
        is_in.data[:] = 1  # a pair is in a cluster once
        if is_in.nnz > len(numbers):
            members[kind] = is_in
    return members


def products(table: LogRatioTable) -> dict[str, Floats]:
    """Return the mean product of two models in each part, float64[model, model].

    The parts are ``constant``, the properties, the kinds of clusters and ``pair``; they add up to
    y'y/n. Estimates are unbiased if the effects of clusters and pairs are independent of each other
    and of the properties. Sums of products of residuals, over clusters and over pairs, are set
    equal to their expectations (MINQUE0: Rao 1971). The noise in products of means and of slopes is
    subtracted. Properties that don't vary are left out.

    >>> y = np.array([[1.0], [3.0], [2.0], [6.0]])
    >>> words = np.array([[0], [0], [1], [1]])
    >>> parts = products(LogRatioTable(y, {}, words, ["word"], np.array([0])))
    >>> {part: round(float(of[0, 0]), 9) for part, of in parts.items()}
    {'constant': 8.0, 'word': -0.5, 'pair': 5.0}
    """
    return _Design.of(table).products()


def _weights(sets: Sequence[frozenset[int]], k: int, n: int) -> Floats:
    """Return the weights whose sum over the sets is what property k of n adds on average."""
    n_others = [len(others - {k}) for others in sets]
    signs = [1 if k in others else -1 for others in sets]
    return np.array(signs) / [n * comb(n - 1, m) for m in n_others]


def by_family(matrix: Floats, families: Ints) -> Floats:
    """Split a matrix of products by which models share them, in the order of ``SHARED``.

    This is a nested analysis of variance by moments (Henderson's first method). The part of one
    model is the variance of models about their family's mean. The part of a family is the variance
    of families beyond what their models explain. The rest of the mean square is shared by all
    models. Estimates may be negative. The part of a family is 0 if there is only one family, or if
    no family has two models.

    >>> products = np.outer([5.0, 3.0, 0.0, 0.0], [5.0, 3.0, 0.0, 0.0])
    >>> by_family(products, np.array([0, 0, 1, 1])).tolist()  # means 4 and 0, variances 2 and 0
    [0.0, 7.5, 1.0, 8.5]
    """
    _, place, sizes = np.unique(families, return_inverse=True, return_counts=True)
    n, n_families = len(matrix), len(sizes)
    is_in = (place[:, None] == np.arange(n_families)) / sizes
    total, whole = np.trace(matrix), matrix.sum() / n
    of_means = float(sizes @ np.einsum("if,ij,jf->f", is_in, matrix, is_in, optimize=True))
    within = (total - of_means) / (n - n_families) if n > n_families else 0.0
    size = n - (sizes**2).sum() / n
    between = (of_means - whole - (n_families - 1) * within) / size if n_families > 1 else 0.0
    if n == n_families:
        within, between = between, 0.0
    return np.array([total / n - between - within, between, within, total / n])


def shares(table: LogRatioTable) -> list[Share]:
    """Return the share of the mean square for each part and each entry of ``SHARED``.

    Errors come from the jackknife over clusters of pairs, which is conservative if there are two
    dimensions of clusters. Intervals that allow for other families add the error of the jackknife
    over families. Intervals are Student's t with ``degrees_of_freedom``; if two errors are added,
    their degrees of freedom are combined by Satterthwaite.
    """
    design = _Design.of(table)
    parts = design.products()
    every = np.ones(len(table.families), bool)

    def figures(by_part: Mapping[str, Floats], kept: Bools = every) -> Floats:
        families = table.families[kept]
        squares = np.array([by_family(p[np.ix_(kept, kept)], families) for p in by_part.values()])
        return np.asarray(squares / squares[:, -1].sum())

    share = figures(parts)
    of_words = np.zeros_like(share)
    for k in np.unique(table.clusters[table.clusters != NO_CLUSTER]):
        others = design.only((table.clusters != k).all(axis=1))
        of_words += (figures(others.products()) - share) ** 2
    of_families = np.zeros_like(share)
    for family in np.unique(table.families):
        of_families += (figures(parts, table.families != family) - share) ** 2
    words = of_words, freedom(table.clusters)
    word_ends = interval(share, words)
    family_ends = interval(share, words, (of_families, freedom(table.families[:, None])))
    return [
        Share(part, shared, *(float(f[i, j]) for f in (share, *word_ends, *family_ends)))
        for i, part in enumerate(parts)
        for j, shared in enumerate(SHARED)
    ]


def freedom(clusters: Ints) -> float:
    """Return ``degrees_of_freedom``, or NaN if there are fewer clusters than ``LEAST_CLUSTERS``.

    >>> freedom(np.arange(5)[:, None]), freedom(np.arange(4)[:, None])
    (4.0, nan)
    """
    return degrees_of_freedom(clusters) if n_clusters(clusters) >= LEAST_CLUSTERS else nan


def interval(figure: Floats, *errors: tuple[Floats, float]) -> tuple[Floats, Floats]:
    """Return Student's 95% interval. Each of ``errors`` is (variances, degrees of freedom).

    The variances are added, and their degrees of freedom combined (Satterthwaite).

    >>> low, high = interval(np.array([1.0]), (np.array([4.0]), 10.0), (np.array([5.0]), 20.0))
    >>> round(float(high[0] - 1), 3)  # of 28.4 degrees of freedom
    6.141
    """
    variance = np.sum([v for v, _ in errors], axis=0)
    parts = np.sum([v**2 / df for v, df in errors], axis=0)
    df = np.where(parts == 0, 1, variance**2 / np.where(parts == 0, 1, parts))
    half = stdtrit(df, 0.975) * np.sqrt(variance)
    return figure - half, figure + half


def cells(clusters: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield each set of pairs that have the same clusters, and all pairs that share one of these.

    A pair in no cluster is a set by itself, and shares a cluster with no other pair.

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
    """Return log ratios [pair, model] minus a fit: the model's constant and slopes on ``x``.

    ``x`` is [pair, column]. The fit for a pair uses only pairs that share no cluster with it.

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
