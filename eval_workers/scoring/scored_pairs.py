"""Read scored pairs as arrays, and compute the standard errors of means of clustered pairs.

A cluster contains all pairs with the same word, frame or occupation. The intervals of metrics are
computed by the same method in SQL (``warehouse/sql/views/07_clustered_interval.sql``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.warehouse.query.connection import arrow_rows, connect, sql
from plumbline.warehouse.storage.opening import OpenWarehouse

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]

#: Cluster number of a pair that has no cluster in a dimension.
NO_CLUSTER = -1
#: A variance below this is a rounding error and counts as 0.
ROUNDING = 1e-18
_CELL, _LEAN = "benchmarks/cell", "benchmarks/lean"


@dataclass(frozen=True)
class ScoredPairs:
    """A benchmark's scored natural pairs that compare two groups, sorted by id.

    ``models`` has the key and name of each model. ``lean`` and ``area`` have one row per pair and
    one column per model. ``lean`` is the preferred sentence: 1 for a, -1 for b, 0 for neither.
    ``area`` is the pair's AuFC. Both are NaN if the pair has no score. ``clustered_variance``
    explains ``clusters``, and ``influences`` explains ``strata``.
    """

    benchmark: str
    groups: str
    clusters: Ints
    strata: Ints | None
    models: Sequence[tuple[str, str]]
    lean: Floats
    area: Floats

    @property
    def even(self) -> Floats:
        """1 if the model prefers neither sentence, 0 if it prefers one, NaN without a score."""
        return np.where(np.isnan(self.lean), np.nan, self.lean == 0)


def scored(root: str | Path | OpenWarehouse, epsilon_nats: float) -> Iterator[ScoredPairs]:
    """For each benchmark, yield one ``ScoredPairs`` for every two groups that its pairs compare."""
    with connect(root, sql(_CELL) + sql(_LEAN)) as connection:
        pairs = arrow_rows(connection, sql(_CELL))
        for benchmark in sorted(pairs["benchmark"].unique().to_pylist()):
            of_benchmark = pairs.filter(pc.equal(pairs["benchmark"], benchmark))
            params = {"benchmark": benchmark, "epsilon_nats": epsilon_nats}
            figures = arrow_rows(connection, sql(_LEAN), params)
            for groups in sorted(figures["groups"].unique().to_pylist()):
                of_groups = (
                    rows.filter(pc.equal(rows["groups"], groups))
                    for rows in (of_benchmark, figures)
                )
                yield _scored(benchmark, groups, *of_groups)


def numbered_clusters(rows: pa.Table) -> tuple[list[pa.ChunkedArray], Ints]:
    """Number the clusters. Return the columns with the clusters' names, and an array of numbers.

    The columns are ``cluster_1`` and ``cluster_2``. A column with a single cluster is dropped. If
    both have a single cluster, ``cluster_1`` is kept. The array has one row per pair.
    """
    every = [rows[f"cluster_{place}"] for place in (1, 2)]
    used = [column for column in every if pc.count_distinct(column).as_py() > 1] or every[:1]
    names = pa.chunked_array([chunk for column in used for chunk in column.chunks], pa.string())
    numbers = pc.fill_null(pc.index_in(names, pc.unique(names.drop_null())), NO_CLUSTER)
    return used, numbers.to_numpy().astype(np.int64).reshape(len(used), -1).T


def _scored(benchmark: str, groups: str, pairs: pa.Table, rows: pa.Table) -> ScoredPairs:
    keys = pc.unique(rows["model_key"])
    place, model = rows["place"].to_numpy(), pc.index_in(rows["model_key"], keys).to_numpy()
    figures = []
    for column in ("lean", "area"):
        figure = np.full((len(pairs), len(keys)), np.nan)
        figure[place, model] = rows[column].to_numpy()
        figures.append(figure)
    is_scored = ~np.isnan(figures[0]).all(axis=1)
    lean, area = (figure[is_scored] for figure in figures)
    _, clusters = numbered_clusters(pairs)
    has_strata = pairs["stratum"].null_count < len(pairs)
    parts = pairs["stratum"].combine_chunks().dictionary_encode("encode") if has_strata else None
    strata = None if parts is None else parts.indices.to_numpy().astype(np.int64)[is_scored]
    names = dict(zip(rows["model_key"].to_pylist(), rows["model"].to_pylist(), strict=True))
    of_pairs = clusters[is_scored], strata
    return ScoredPairs(benchmark, groups, *of_pairs, list(names.items()), lean, area)


def influences(figures: Floats, strata: Ints | None = None) -> Floats:
    """Return how much each pair influences the mean of each column.

    The influence is the pair's figure minus the mean, divided by the number of pairs. ``figures``
    has one row per pair, and NaN for a missing figure. If a benchmark consists of strata of fixed
    sizes, ``strata`` has the number of each pair's stratum. Then the mean of the stratum is
    subtracted, not the mean of all pairs.

    >>> influences(np.array([[1.0], [0.0], [np.nan], [2.0]])).T
    array([[ 0.        , -0.33333333,         nan,  0.33333333]])
    """
    parts = np.zeros(len(figures), np.int64) if strata is None else strata
    is_known = ~np.isnan(figures)
    n = sums(is_known.astype(float), parts)
    means = sums(np.nan_to_num(figures), parts) / np.maximum(n, 1)
    return np.asarray((figures - means[parts]) / is_known.sum(axis=0))


def clustered_variance(of_pair: Floats, clusters: Ints) -> Floats:
    """Estimate the covariance matrix of the models' means over clustered pairs.

    Pairs are clustered in one dimension, such as words, or in two. With one dimension, there is one
    estimate. With two dimensions, there are three: one for the first dimension, one for the second,
    and one for both together (``docs/methods.md``). ``variances`` and ``difference_variances`` use
    the largest estimate. An estimate is 0 if one cluster holds every pair.

    Each cluster has one term per model: the sum of the influences of the cluster's pairs, divided
    by 1 minus the cluster's share of the pairs (CR3). To compute the covariance of two models,
    their terms are multiplied for each cluster, and the products are added up.

    ``of_pair`` is the result of ``influences``. ``clusters`` has a row per pair and a column per
    dimension. Its values are cluster numbers, from 0, or ``NO_CLUSTER``.

    >>> of_pair = influences(np.array([[1.0], [1.0], [0.0], [0.0]]))
    >>> float(clustered_variance(of_pair, np.array([[0], [0], [1], [1]]))[0, 0, 0])
    0.5
    """
    n_pairs, n_dimensions = clusters.shape
    ways = [_products(of_pair, np.arange(n_pairs), ids) for ids in clusters.T]
    if n_dimensions == 2:
        pair = np.repeat(np.arange(n_pairs), 2)
        is_two = (clusters[:, 0] != clusters[:, 1]) & (clusters != NO_CLUSTER).all(axis=1)
        is_first = np.ones(len(pair), bool)
        is_first[1::2] = clusters[:, 0] != clusters[:, 1]  # count each cluster once
        both = clusters[is_two].min(axis=1) * (clusters.max() + 1) + clusters[is_two].max(axis=1)
        every = _products(of_pair, pair[is_first], clusters.reshape(-1)[is_first])
        ways.append(every - _products(of_pair, np.flatnonzero(is_two), both))
    return np.array(ways)


def variances(products: Floats) -> Floats:
    """Return the variance of each mean. ``products`` is the result of ``clustered_variance``."""
    return np.asarray(np.diagonal(products, axis1=1, axis2=2).max(axis=0))


def difference_variances(products: Floats) -> Floats:
    """Return the variance of the difference of every two means (see ``variances``)."""
    squares = np.diagonal(products, axis1=1, axis2=2)
    return np.asarray((squares[:, :, None] + squares[:, None, :] - 2 * products).max(axis=0))


def degrees_of_freedom(clusters: Ints) -> float:
    """Return the degrees of freedom of Student's t for a mean of clustered pairs.

    They are approximated from the sizes of the clusters by Satterthwaite's method (Bell and
    McCaffrey 2002). If all clusters have the same size, the result is the number of clusters minus
    one. Otherwise it is smaller. With two dimensions, the smaller result is used. It is halved if
    a cluster occurs in both dimensions, because two clusters can then share pairs. Dimensions with
    only one cluster are ignored. If there is no other dimension, the result is 0.

    >>> [round(degrees_of_freedom(np.array([ids]).T), 2) for ids in ([0, 1, 2], [0, 0, 0, 0, 1, 2])]
    [2.0, 1.22]
    """
    used = _used(clusters)
    is_shared = len(used) > 1 and bool(np.isin(used[0], used[1]).any())
    return min(map(_df, used), default=0.0) / (2 if is_shared else 1)


def n_clusters(clusters: Ints) -> int:
    """Return the number of clusters. With two dimensions, return the smaller number.

    Dimensions with only one cluster are ignored. If there is no other dimension, the result is 1.

    >>> n_clusters(np.array([[0, 3], [0, 4], [1, NO_CLUSTER], [2, 3]]))
    2
    """
    return min((len(np.unique(ids)) for ids in _used(clusters)), default=1)


def _used(clusters: Ints) -> list[Ints]:
    """Return the cluster numbers (not ``NO_CLUSTER``) of each dimension with several clusters."""
    of_dimensions = (ids[ids != NO_CLUSTER] for ids in clusters.T)
    return [ids for ids in of_dimensions if ids.size and ids.min() < ids.max()]


def _df(ids: Ints) -> float:
    share = np.unique(ids, return_counts=True)[1] / len(ids)
    ratio = share / (1 - share)
    squares = (ratio**2).sum() ** 2 + (ratio**2 - ratio**4).sum()
    return float(ratio.sum() ** 2 / squares)


def _products(of_pair: Floats, pairs: Ints, ids: Ints) -> Floats:
    """Compute one estimate of ``clustered_variance``. ``ids`` are the clusters of ``pairs``."""
    pairs, ids = pairs[ids != NO_CLUSTER], ids[ids != NO_CLUSTER]
    _, ids = np.unique(ids, return_inverse=True)
    is_known = ~np.isnan(of_pair)
    share = sums(is_known[pairs].astype(float), ids) / is_known.sum(axis=0)
    # A cluster that holds every pair has no influence.
    terms = sums(np.nan_to_num(of_pair)[pairs], ids) / np.where(share < 1, 1 - share, np.inf)
    return np.asarray(terms.T @ terms)


def sums(rows: Floats, ids: Ints) -> Floats:
    """Add up the rows that have the same id. Row k of the result is the sum for id k."""
    sums = np.zeros((int(ids.max(initial=-1)) + 1, *rows.shape[1:]))
    np.add.at(sums, ids, rows)
    return sums
