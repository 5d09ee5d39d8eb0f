"""How far a word leans, with an interval over documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plumbline.jobs.association.bounds import Bounds, lean_bounds
from plumbline.jobs.evidence.sightings import Ints, Sightings
from plumbline.warehouse.query.finding import verdict
from plumbline.warehouse.wordlists import WordPair

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WordLean:
    """The lean of a word in some documents.

    Attributes:
        n_documents: documents with a co-occurrence that counts.
        n_clusters: the same of what was drawn: documents, or whole sources.
        n_word: occurrences of the word.
        n_pair_f, n_pair_m: co-occurrences with the female and male words of the defined pairs; with
            all words of the side when no pair is defined.
        n_defined: pairs for which the word has both counts.
        delta_nats: mean delta of the defined pairs; NaN when there are none.
        delta_nats_se: its standard error over documents; NaN with fewer than two documents.
        low_nats, high_nats: the 95% interval; NaN like the error, unless no pair is defined: then
            infinite at an end, or wide.
        p: of no lean; NaN without an interval.
    """

    n_documents: int
    n_clusters: int
    n_word: int
    n_pair_f: int
    n_pair_m: int
    n_defined: int
    delta_nats: float
    delta_nats_se: float
    low_nats: float
    high_nats: float
    p: float

    @property
    def side(self) -> int:
        """1 or -1 when the interval is above or below 0, 0 when it holds 0 or is unknown."""
        return {"above": 1, "below": -1}.get(
            verdict(self.delta_nats, self.low_nats, self.high_nats), 0
        )


def lean(
    seen: Sightings,
    word: int,
    pairs: Sequence[WordPair],
    keep: NDArray[np.bool_] | None = None,
    cluster: Ints | None = None,
) -> WordLean:
    """The lean of a word (by index) over all documents, or over those of a mask.

    delta = sum_g a_g (ln c_g - ln n_g) / V over the targets g: c_g co-occurrences of the word with
    g, n_g occurrences of g, a_g the sum of the weights of the defined pairs with g, negative for
    male ones, V the sum of these pairs' weights (Eqs. 1 and 4, see ``association.measures``).

    Documents are drawn, not words, or clusters of documents: ``cluster`` is that of each. The error
    is that of a sum over clusters of their influence, the sum over their documents of
    u_d = sum_g a_g (c_dg / c_g - n_dg / n_g) / V, which sums to 0 over all, with variance
    D / (D - 1) sum u^2 over D clusters (the linearised, cluster-robust estimate). The interval
    takes Student's t with one degree of freedom fewer than there are clusters that co-occur: with
    few of them it is wide.

    Where no pair is defined each cluster counts as one co-occurrence, divided between the sides as
    all co-occurrences are, with the exact interval of ``association.bounds``: a word that is near
    *he* in forty documents and near *she* in none leans at least so far.
    """
    targets = seen.question.targets
    n_target = seen.documents.n_target
    rows = seen.word == word
    if keep is not None:
        rows = rows & keep[seen.document]
        n_target = n_target[keep]
    near, document = seen.n_near[rows], seen.document[rows]
    c, n = near.sum(axis=0), n_target.sum(axis=0)
    place = {target: k for k, target in enumerate(targets)}
    a, weight = np.zeros(len(targets)), 0.0
    n_defined = n_f = n_m = 0
    for pair in pairs:
        f, m = place[pair.female], place[pair.male]
        if c[f] and c[m]:
            a[f], a[m], weight = a[f] + pair.weight, a[m] - pair.weight, weight + pair.weight
            n_f, n_m, n_defined = n_f + int(c[f]), n_m + int(c[m]), n_defined + 1
    if not n_defined:
        n_f, n_m = (int(c[np.isin(targets, side)].sum()) for side in seen.question.sides)
    counting = a != 0 if n_defined else np.ones(len(targets), np.bool_)
    meets = near[:, counting].any(axis=1)
    drawn = np.arange(len(seen.documents.row)) if cluster is None else cluster
    n_clusters = np.unique(drawn[document[meets]]).size
    counts = int(meets.sum()), n_clusters, int(seen.n_word[rows].sum()), n_f, n_m, n_defined
    unknown = float("nan")
    if not n_defined:
        n_sides = [int(n[np.isin(targets, side)].sum()) for side in seen.question.sides]
        return WordLean(
            *counts, unknown, unknown, *map(float, cluster_bounds(n_f, n_m, n_clusters, n_sides))
        )
    if weight <= 0:
        return WordLean(*counts, *[unknown] * 5)
    used = a != 0
    from scipy.special import stdtr

    a, c, n = a[used] / weight, c[used], n[used]
    delta = float(a @ (np.log(c) - np.log(n)))
    influence = -(n_target[:, used] / n) @ a
    at = document if keep is None else (np.cumsum(keep) - 1)[document]
    influence[at] += (near[:, used] / c) @ a
    _, own = np.unique(drawn if keep is None else drawn[keep], return_inverse=True)
    se = _error(np.bincount(own, weights=influence)) if n_clusters > 1 else unknown
    half = t975(n_clusters - 1) * se if n_clusters > 1 else unknown
    p = float(2 * stdtr(n_clusters - 1, -abs(delta) / se)) if se > 0 else unknown
    return WordLean(*counts, delta, se, delta - half, delta + half, p)


def cluster_bounds(
    n_f: ArrayLike, n_m: ArrayLike, n_clusters: ArrayLike, n_sides: Sequence[float] | Floats
) -> Bounds:
    """Bounds of leans without a delta, from the clusters that have the word near either side.

    Args:
        n_f, n_m: co-occurrences with the female and the male words; where both are 0 all is NaN.
        n_clusters: documents or sources with one, at most n_f + n_m.
        n_sides: occurrences of the female and of the male words; without one of them all is NaN.

    >>> cluster_bounds(0, 55, 12, (204, 1227)).high_nats.round(2).tolist()
    0.77
    """
    f, m = np.asarray(n_f, np.float64), np.asarray(n_m, np.float64)
    is_known = (f + m > 0) & (min(n_sides) > 0)
    each = np.asarray(n_clusters, np.float64) / np.where(is_known, f + m, 1)
    odds = np.log(n_sides[0] / n_sides[1]) if min(n_sides) > 0 else 0.0
    bounds = lean_bounds(f * each, m * each, odds)
    return Bounds(*(np.where(is_known, x, np.nan) for x in bounds))


def _error(influence: NDArray[Any]) -> float:
    n = influence.size
    return float(np.sqrt(n / (n - 1) * np.square(influence).sum()))


def t975(df: int) -> float:
    """The upper 97.5% point of Student's t distribution.

    >>> round(t975(1), 2), round(t975(10_000_000), 2)
    (12.71, 1.96)
    """
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.975))
