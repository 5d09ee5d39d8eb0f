"""Interval of Kendall's tau of two contrasts' deltas, by resampling documents.

Words aren't independent: words of a document occur together, and a window can have targets of both
contrasts. Resampling words would make the interval too narrow or too wide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plumbline.jobs.counting.co_occurrences import ClusterCounts

Floats = NDArray[np.float64]
#: Number of resamples; the standard error that they give has itself an error of 7%.
RESAMPLES = 100
#: Fewest clusters for an interval.
FEWEST_CLUSTERS = 10


@dataclass(frozen=True)
class TauAgreement:
    """Kendall tau-b of two contrasts on the words that both define; NaN where undefined.

    ``tau_low`` and ``tau_high`` are the ends of its 95% interval (:func:`tau_interval`); NaN if
    none was computed, such as below 50 words.
    """

    contrast_a: str
    contrast_b: str
    n_words: int
    tau_b: float
    tau_low: float = float("nan")
    tau_high: float = float("nan")


def kendall(x: Floats, y: Floats) -> float:
    """Kendall's tau-b; NaN with fewer than two points, or where x or y is constant.

    >>> round(kendall(np.array([0.1, 0.2, 0.3]), np.array([1.0, 3.0, 2.0])), 12)
    0.333333333333
    """
    from scipy.stats import kendalltau

    return float(kendalltau(x, y, variant="b").statistic) if len(x) > 1 else float("nan")


def tau_errors(
    counts: ClusterCounts,
    sides: Sequence[tuple[int, int]],
    words: Sequence[NDArray[np.int64]],
    compared: Sequence[tuple[int, int]],
    n_resamples: int = RESAMPLES,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Floats:
    """Standard errors of atanh(tau) over clusters of documents, for each entry of ``compared``.

    A bootstrap: clusters are drawn with replacement and their co-occurrences summed. Tau is of the
    ratios of counts, since a contrast's delta is the log of the ratio plus a constant. A resample
    uses words with all four counts above 0. NaN if tau is undefined, 1 or -1 in a resample, and
    with fewer than ten clusters.

    Args:
        sides: female and male target of each contrast, by index.
        words: words of each contrast, by index.
        compared: index pairs of contrasts.
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
    """95% interval tanh(atanh(tau) +- t error), with Student's t of n_clusters - 1 degrees.

    NaN for a NaN error.

    >>> [round(end, 3) for end in tau_interval(0.5, 0.1, 1_000)]
    [0.339, 0.632]
    """
    from scipy.special import stdtrit

    with np.errstate(divide="ignore", invalid="ignore"):
        half = np.array([-1, 1]) * stdtrit(max(n_clusters - 1, 1), 0.975) * error
        low, high = np.tanh(np.arctanh(tau) + half).tolist()
    return low, high
