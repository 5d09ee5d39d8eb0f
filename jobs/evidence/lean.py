"""How far a word leans, with an interval over documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plumbline.jobs.evidence.sightings import Ints, Sightings
from plumbline.warehouse.query.finding import verdict
from plumbline.warehouse.wordlists import WordPair


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
        delta_se_nats: its standard error over documents; NaN with fewer than two documents.
        low_nats, high_nats: the 95% interval; NaN like the error.
    """

    n_documents: int
    n_clusters: int
    n_word: int
    n_pair_f: int
    n_pair_m: int
    n_defined: int
    delta_nats: float
    delta_se_nats: float
    low_nats: float
    high_nats: float

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
    if weight <= 0:
        return WordLean(*counts, unknown, unknown, unknown, unknown)
    used = a != 0
    a, c, n = a[used] / weight, c[used], n[used]
    delta = float(a @ (np.log(c) - np.log(n)))
    influence = -(n_target[:, used] / n) @ a
    at = document if keep is None else (np.cumsum(keep) - 1)[document]
    influence[at] += (near[:, used] / c) @ a
    _, own = np.unique(drawn if keep is None else drawn[keep], return_inverse=True)
    se = _error(np.bincount(own, weights=influence)) if n_clusters > 1 else unknown
    half = t975(n_clusters - 1) * se if n_clusters > 1 else unknown
    return WordLean(*counts, delta, se, delta - half, delta + half)


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
