"""Find out what the released models' log ratios depend on, such as sentence length.

A model's log ratio of a pair is described as a sum of these parts:

- a constant for the model,
- for each property of the pair, such as its length, a slope times the property,
- an effect of each cluster that the pair is in, such as its word or its frame,
- an effect of the pair itself.

The mean squares of these parts, over pairs and models, add up to the log ratios' mean square.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from math import comb
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array
from scipy.special import stdtrit

from plumbline.eval_workers.scoring.scored_pairs import (
    NO_CLUSTER,
    Bools,
    Floats,
    Ints,
    degrees_of_freedom,
    n_clusters,
    numbered_clusters,
)
from plumbline.pipelines.report.rows import with_ends
from plumbline.warehouse.finding import LEAST_CLUSTERS, verdict
from plumbline.warehouse.query.connection import arrow_rows, connect, sql
from plumbline.warehouse.storage.store import Store

#: Properties of a pair, and their columns in ``reproduce/anatomy_pair``.
PROPERTIES = {
    "start": ("pronoun_first",),
    "number": ("n_pronouns",),
    "form": ("n_own", "n_object", "n_self"),
    "delta": ("max_pmi_nats", "sum_delta_nats"),
    "length": ("n_words",),
}
CONSTANT, PAIR = "constant", "pair"
#: If an eigenvalue is below this share of the largest one, its direction counts as collinear.
RCOND = 1e-9
_PAIRS, _SCORES = "reproduce/anatomy_pair", "reproduce/anatomy_score"


@dataclass(frozen=True)
class LogRatioTable:
    """Several models' log ratios of a benchmark's pairs, and the properties of the pairs.

    Attributes:
        y: the log ratios in nats, one row per pair and one column per model; no value is missing.
        properties: arrays by property name, with one row per pair and one or more columns.
        clusters: cluster numbers, with a row for each pair, as in ``clustered_variance``.
        kinds: for each column of ``clusters``, what a cluster is, such as an occupation. Columns of
            the same kind use the same number for the same cluster.
    """

    y: Floats
    properties: Mapping[str, Floats]
    clusters: Ints
    kinds: Sequence[str]

    def only(self, is_kept: Bools) -> LogRatioTable:
        some = {name: x[is_kept] for name, x in self.properties.items()}
        return replace(self, y=self.y[is_kept], properties=some, clusters=self.clusters[is_kept])


@dataclass(frozen=True)
class BenchmarkAnatomy:
    """The mean square of a benchmark's log ratios, in nats squared, and a row for each part."""

    benchmark: str
    n_pairs: int
    n_clusters: int
    n_models: int
    mean_square: float
    shares: Sequence[Mapping[str, Any]]


def tables(store: Store, corpus: str) -> Iterator[tuple[str, LogRatioTable]]:
    """Yield the name and the table of each benchmark that has released scores and MaxPMI.

    A table leaves out unnatural pairs, and models that didn't score all of its pairs.
    """
    with connect(store, sql(_PAIRS) + sql(_SCORES)) as connection:
        params = {"corpus": corpus}
        pairs, scores = (arrow_rows(connection, sql(name), params) for name in (_PAIRS, _SCORES))
    for benchmark, rows in groupby(scores.to_pylist(), itemgetter("benchmark")):
        own = pairs.filter(pc.equal(pairs["benchmark"], benchmark))
        ratios = [row["log_ratios_nats"] for row in rows]
        if complete := [of_model for of_model in ratios if len(of_model) == own.num_rows]:
            yield benchmark, _table(own, np.column_stack(complete))


def _table(pairs: pa.Table, y: Floats) -> LogRatioTable:
    used, clusters = numbered_clusters(pairs)
    properties = {
        name: np.column_stack([pairs[column] for column in columns])
        for name, columns in PROPERTIES.items()
    }
    kinds = [next(filter(None, column.to_pylist())).partition(": ")[0] for column in used]
    return LogRatioTable(y, properties, clusters, kinds)


def anatomies(store: Store, corpus: str, eta_nats: float) -> Iterator[BenchmarkAnatomy]:
    """For each benchmark, yield the share of each part in the log ratios' mean square.

    Uses only pairs with |MaxPMI| up to ``eta_nats``, and skips benchmarks without such pairs.
    """
    for benchmark, whole in tables(store, corpus):
        table = whole.only(np.abs(whole.properties["delta"][:, 0]) <= eta_nats)
        if len(table.y):
            (n_pairs, n_models), n = table.y.shape, n_clusters(table.clusters)
            square = float((table.y**2).mean())
            rows = [{"benchmark": benchmark, **row} for row in shares(table)]
            yield BenchmarkAnatomy(benchmark, n_pairs, n, n_models, square, rows)


def shares(table: LogRatioTable) -> list[dict[str, Any]]:
    """Return a row for each part, with its share of the log ratios' mean square and 95% interval.

    The parts are ``constant``, each property, each kind of cluster, and ``pair``. The interval says
    how much a share would vary with other clusters, such as other words. With fewer than five
    clusters, there is no interval. Standard errors come from leaving out one cluster at a time
    (jackknife). If pairs have clusters of two kinds, standard errors tend to be too large.
    Intervals use Student's t with ``degrees_of_freedom``.
    """
    design = _Design.of(table)
    parts = design.mean_squares()
    share = _shares(parts)
    variance = np.zeros_like(share)
    for k in np.unique(table.clusters[table.clusters != NO_CLUSTER]):
        others = design.only((table.clusters != k).all(axis=1))
        variance += (_shares(others.mean_squares()) - share) ** 2
    low, high = np.full((2, len(parts)), None)
    if n_clusters(table.clusters) >= LEAST_CLUSTERS:
        half = stdtrit(degrees_of_freedom(table.clusters), 0.975) * np.sqrt(variance)
        low, high = share - half, share + half
    columns = {"part": [*parts], "share": share, "share_low": low, "share_high": high}
    return list(pa.table(columns).to_pylist())


def _shares(parts: Mapping[str, float]) -> Floats:
    squares = np.array(list(parts.values()))
    return np.asarray(squares / squares.sum())


@dataclass(frozen=True)
class _Design:
    """Regressions of log ratios on properties: one regression for every set of properties.

    ``x`` has a column of ones, then the columns of the properties. ``is_in`` has a row for each set
    of properties, which marks the columns of ``x`` that belong to the set.

    If properties are correlated, what a property explains depends on the order in which they are
    added to the regression. So the result is averaged over all orders (Lindeman, Merenda and Gold
    1980; Shapley). ``weights`` maps the name of a part to the weight of each set in this average.
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
        x = np.hstack([np.ones((len(table.y), 1)), *centred])
        size = np.sqrt((x**2).mean(axis=0))
        x = x / np.where(size > 1e-9, size, 1)
        place = np.repeat(np.arange(-1, len(columns)), [1, *(c.shape[1] for c in columns)])
        sizes = range(len(names) + 1)
        sets = [frozenset(s) for k in sizes for s in combinations(range(len(names)), k)]
        is_in = np.array([np.isin(place, [-1, *s]) for s in sets])
        weights = {CONSTANT: np.array([0.0 if s else 1.0 for s in sets])}
        for k, name in enumerate(names):
            signs = np.array([1 if k in s else -1 for s in sets])
            n_orders = [len(names) * comb(len(names) - 1, len(s - {k})) for s in sets]
            weights[name] = signs / n_orders
        return _Design(table.y, x, _memberships(table), is_in, weights)

    def only(self, is_kept: Bools) -> _Design:
        members = {kind: z[is_kept] for kind, z in self.members.items()}
        return replace(self, y=self.y[is_kept], x=self.x[is_kept], members=members)

    def mean_squares(self) -> dict[str, float]:
        """Return the mean square of each part of the log ratios, in nats squared.

        The module's docstring lists the parts. Means are over pairs and models. The estimates are
        unbiased if the effects of clusters and pairs are independent of each other and of the
        properties. To estimate the variances of these effects, the sums of squared residuals are
        set equal to their expected values (MINQUE0: Rao 1971). Noise in the constant and slopes is
        subtracted, so an estimate may be negative. Constant properties are left out.

        >>> y, words = np.array([[1.0], [3.0], [2.0], [6.0]]), np.array([[0], [0], [1], [1]])
        >>> parts = _Design.of(LogRatioTable(y, {}, words, ["word"])).mean_squares()
        >>> {part: round(float(square), 9) for part, square in parts.items()}
        {'constant': 8.0, 'word': -0.5, 'pair': 5.0}
        """
        n, xx, xy = len(self.y), self.x.T @ self.x, self.x.T @ self.y
        x_sums = [z.T @ self.x for z in self.members.values()]
        squares = np.array([*(sums.T @ sums for sums in x_sums), xx])
        sizes = np.array([*(z.nnz for z in self.members.values()), n])
        levels = self._levels(x_sums, squares, sizes)
        # For each set of properties, invert x'x for the set's columns. Other entries stay 0.
        inverses = np.linalg.pinv(
            xx * self.is_in[:, None] * self.is_in[..., None], rcond=RCOND, hermitian=True
        )
        steps = np.tensordot(np.array(list(self.weights.values())), inverses, 1)
        chance = np.einsum("pij,lij->pl", steps, squares)
        explained = np.tensordot(steps, xy @ xy.T, 2) - chance @ levels
        names = [*self.weights, *self.members, PAIR]
        parts = [*explained, *(levels * sizes)]
        return {name: part / self.y.size for name, part in zip(names, parts, strict=True)}

    def _levels(self, x_sums: Sequence[Floats], squares: Floats, sizes: Ints) -> Floats:
        """Return the variance of the effects at each level, summed over models.

        The levels are the kinds of clusters, then the pairs.

        Args:
            x_sums: one array per kind, with the sums of ``x`` within each cluster.
            squares: the cross products of each array in ``x_sums``, then those of ``x`` itself.
            sizes: the number of 1s in each matrix of ``members``, then the number of pairs.
        """
        members = list(self.members.values())
        inverse = np.linalg.pinv(squares[-1], rcond=RCOND, hermitian=True)
        expected = np.empty((len(sizes),) * 2)
        for a, one in enumerate(members):
            for c, other in enumerate(members):
                both = (one.T @ other).tocoo()  # number of pairs that two clusters share
                first, second = both.coords
                crossed = np.einsum("ij,ij->i", (x_sums[a] @ inverse)[first], x_sums[c][second])
                expected[a, c] = (both.data**2 - 2 * both.data * crossed).sum()
                expected[a, c] += np.sum((inverse @ squares[a]).T * (inverse @ squares[c]))
        expected[-1] = expected[:, -1] = sizes - (inverse * squares).sum(axis=(1, 2))
        rest = self.y - self.x @ (inverse @ self.x.T @ self.y)
        observed = [((z.T @ rest) ** 2).sum() for z in members] + [(rest**2).sum()]
        return np.asarray(np.linalg.pinv(expected) @ np.array(observed))


def _memberships(table: LogRatioTable) -> dict[str, csr_array]:
    """Return a matrix for each kind of cluster, with a row per pair and a column per cluster.

    An entry is 1 if the pair is in the cluster, and 0 otherwise. A kind is left out if each of its
    clusters has only one pair. The effects of clusters and pairs then can't be told apart.
    """
    members = {}
    for kind in dict.fromkeys(table.kinds):
        ids = table.clusters[:, [k == kind for k in table.kinds]]
        pair, column = np.nonzero(ids != NO_CLUSTER)
        numbers, cluster = np.unique(ids[pair, column], return_inverse=True)
        is_in = csr_array((np.ones(len(pair)), (pair, cluster)), (len(ids), len(numbers)))
        is_in.data[:] = 1  # two columns may give a pair the same cluster
        if is_in.nnz > len(numbers):
            members[kind] = is_in
    return members


def lines(anatomy: BenchmarkAnatomy) -> Iterator[str]:
    """Yield three lines on a benchmark: its size, parts clearly above 0, and the other parts."""
    yield (
        f"{anatomy.benchmark}: {anatomy.n_pairs:,} pairs in {anatomy.n_clusters} clusters, "
        f"{anatomy.n_models} models; mean square log ratio {anatomy.mean_square:.2f} nats²"
    )
    parts = sorted(anatomy.shares, key=lambda row: -row["share"])
    clear = [row for row in parts if verdict(*map(row.get, with_ends("share"))) == "above"]
    rest = [row for row in parts if row not in clear]
    for what, some in ("parts of the mean square", clear), ("parts not shown to be above 0", rest):
        named = ", ".join(f"{row['part']} {100 * row['share']:.1f}%" for row in some)
        yield f"  {what}: {named or 'none'}"
