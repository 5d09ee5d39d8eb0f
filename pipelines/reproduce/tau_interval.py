"""Interval for Kendall's tau between the deltas of two contrasts, by resampling documents.

Words aren't independent: words of a document occur together, and a window can contain targets of
both contrasts. Resampling words would make the interval too narrow or too wide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plumbline.jobs.counting.co_occurrences import Query, co_occurrences, find
from plumbline.jobs.counting.kept_documents import FEWEST_SOURCES, Evidence
from plumbline.jobs.kernel.pair_runs import Ints, Run, summed

Floats = NDArray[np.float64]
#: Number of resamples. With this many, the standard error itself has an error of 7%.
RESAMPLES = 100
#: Fewest clusters for an interval.
FEWEST_CLUSTERS = 10
#: Most clusters; document or source k is in cluster k modulo this. With this many, a variance has
#: a relative error of sqrt(2 / 200) = 10%, and the counts stay small.
MOST_CLUSTERS = 200
#: Most counts held in memory before equal cells are added up.
_MOST_PENDING = 5_000_000


@dataclass(frozen=True)
class TauAgreement:
    """Kendall's tau-b of two contrasts on the words with a delta in both; NaN if undefined.

    ``tau_b_low`` and ``tau_b_high`` are the ends of its 95% interval (:func:`tau_interval`); NaN if
    none was computed, such as below 50 words.
    """

    contrast_a: str
    contrast_b: str
    n_words: int
    tau_b: float
    tau_b_low: float = float("nan")
    tau_b_high: float = float("nan")


def kendall(x: Floats, y: Floats) -> float:
    """Return Kendall's tau-b; NaN with fewer than two points, or if x or y is constant.

    >>> round(kendall(np.array([0.1, 0.2, 0.3]), np.array([1.0, 3.0, 2.0])), 12)
    0.333333333333
    """
    from scipy.stats import kendalltau

    return float(kendalltau(x, y, variant="b").statistic) if len(x) > 1 else float("nan")


class ClusterCounts(NamedTuple):
    """Co-occurrences ``n`` by index of cluster, word and target; only counts above 0 have a row.

    ``clusters`` is the unit of clustering, ``source`` or ``document``. ``n_clusters`` includes
    clusters without any co-occurrence.
    """

    clusters: str
    n_clusters: int
    cluster: Ints
    word: Ints
    target: Ints
    n: Ints


def cluster_counts(
    evidence: Evidence, vocabulary: pa.StringArray, targets: Sequence[str]
) -> ClusterCounts:
    """Count co-occurrences, by the corpus's rule, for each cluster of a corpus's documents.

    A cluster is a source if there are ten or more sources, else a document; see ``MOST_CLUSTERS``.

    Args:
        vocabulary: all words of the corpus, sorted.
        targets: words, each once.
    """
    query = Query.of_all(evidence, vocabulary, targets)
    sources = pa.array(sorted(evidence.sources, key=str), pa.string())
    by_source = len(sources) >= FEWEST_SOURCES
    shape = MOST_CLUSTERS, len(vocabulary), len(targets)
    n_before, n_pending, parts = 0, 0, list[Run]()
    for shard in evidence.shards:
        for documents in evidence.documents(shard, query.ids):
            cluster = np.arange(n_before, n_before + len(documents.row))
            n_before += len(documents.row)
            if by_source:
                cluster = pc.index_in(documents.source, value_set=sources).to_numpy()
            document, word, target, n = co_occurrences(query, find(query, documents))
            cell = (cluster % MOST_CLUSTERS)[document], word, target
            parts.append((np.ravel_multi_index(cell, shape), n))
            n_pending += n.size
            if n_pending > _MOST_PENDING:
                parts, n_pending = [summed(parts)], 0
    distinct, n = summed(parts)
    n_clusters = min(len(sources) if by_source else n_before, MOST_CLUSTERS)
    kind = "source" if by_source else "document"
    cluster, word, target = np.unravel_index(distinct, shape)
    return ClusterCounts(kind, n_clusters, cluster, word, target, n)


def tau_errors(
    counts: ClusterCounts,
    sides: Sequence[tuple[int, int]],
    words: Sequence[NDArray[np.int64]],
    compared: Sequence[tuple[int, int]],
    n_resamples: int = RESAMPLES,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Floats:
    """Return the standard error of atanh(tau) over clusters, for each entry of ``compared``.

    A bootstrap draws clusters with replacement and sums their co-occurrences. Tau is computed from
    ratios of counts, since a contrast's delta is the log of the ratio plus a constant. A resample
    uses words with all four counts above 0. NaN if tau is undefined, 1 or -1 in a resample, or
    with fewer than ten clusters.

    Args:
        sides: indices of the female and male target of each contrast.
        words: indices of the words of each contrast.
        compared: pairs of indices of contrasts.
        progress: called with (resamples done, all).
    """
    from scipy.sparse import csr_array

    if counts.n_clusters < FEWEST_CLUSTERS or not compared:
        return np.full(len(compared), np.nan)
    used, word = np.unique(counts.word, return_inverse=True)
    n_targets = 1 + max(map(max, sides))
    shape = len(used) * n_targets, counts.n_clusters
    of_cluster = csr_array(
        (counts.n, (word * n_targets + counts.target, counts.cluster)), shape=shape
    )
    counted = np.array([np.isin(used, contrast_words) for contrast_words in words])
    female, male = np.array(sides).T
    draw, n = np.random.default_rng(0), counts.n_clusters
    z = np.empty((n_resamples, len(compared)))
    for k in range(n_resamples):
        drawn = (of_cluster @ draw.multinomial(n, np.full(n, 1 / n))).reshape(-1, n_targets).T
        defined = counted & (drawn[female] > 0) & (drawn[male] > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = drawn[female] / drawn[male]
            for i, (a, b) in enumerate(compared):
                common = defined[a] & defined[b]
                z[k, i] = np.arctanh(kendall(odds[a][common], odds[b][common]))
        progress(k + 1, n_resamples)
    is_finite = np.isfinite(z).all(axis=0)
    errors: Floats = np.full(len(compared), np.nan)
    errors[is_finite] = z[:, is_finite].std(axis=0, ddof=1)
    return errors


def tau_interval(tau: float, error: float, n_clusters: int) -> tuple[float, float]:
    """Return the 95% interval tanh(atanh(tau) +- t error), t with n_clusters - 1 degrees.

    NaN if the error is NaN.

    >>> [round(end, 3) for end in tau_interval(0.5, 0.1, 1_000)]
    [0.339, 0.632]
    """
    from scipy.special import stdtrit

    with np.errstate(divide="ignore", invalid="ignore"):
        half = np.array([-1, 1]) * stdtrit(max(n_clusters - 1, 1), 0.975) * error
        low, high = np.tanh(np.arctanh(tau) + half).tolist()
    return low, high
