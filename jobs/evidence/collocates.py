"""Collocates: words that are more frequent around a word when it is near one side's targets."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pyarrow as pa

from plumbline.jobs.association.measures import adjusted
from plumbline.jobs.counting.co_occurrences import Occurrences, Query
from plumbline.jobs.kernel.pair_runs import Ints, Run, between

#: Weight of the prior: this many pseudo-counts per side, distributed like the corpus's words.
PRIOR_WORDS = 1000.0


def contexts(query: Query, found: Occurrences) -> Run:
    """For each side, count the neighbours of the occurrences near a target of that side.

    An occurrence near both sides counts for both. The keys of the counts are
    (word * 2 + side) * vocabulary size + neighbour.
    """
    size = len(query.vocabulary)
    cells = [np.empty(0, np.int64)]
    for side, names in enumerate(query.sides):
        is_of_side = np.isin(query.targets, names)[found.target]
        occurrence, other = _neighbours(query, found, np.unique(found.occurrence[is_of_side]))
        cells.append((found.word[occurrence] * 2 + side) * size + other)
    return np.unique(np.concatenate(cells), return_counts=True)


def _neighbours(query: Query, found: Occurrences, occurrence: Ints) -> tuple[Ints, Ints]:
    """Find the words less than a window away from the given occurrences.

    Return two arrays: the index of the occurrence, and the id of the word near it. Leave out
    targets, and words that the corpus left out.
    """
    ids, offsets = found.documents.values, found.documents.offsets
    is_target = query.table(query.listed) >= 0
    at, document = found.at[occurrence], found.document[occurrence]
    parts = []
    for step in query.steps:
        inside = np.flatnonzero(
            (at + step >= offsets[document]) & (at + step < offsets[document + 1])
        )
        other = ids[at[inside] + step]
        counted = (other >= 0) & ~is_target[other]
        parts.append((occurrence[inside][counted], other[counted].astype(np.int64)))
    occurrences, others = (np.concatenate(x) for x in zip(*parts, strict=True))
    return occurrences, others


def collocates(query: Query, counted: Run, word: int, n_word: Ints) -> pa.Table:
    """Return the words around a word, each with its log odds ratio between side 1 and side 2.

    log_odds_nats(v) = ln((f_v + p_v) / (F + P - f_v - p_v)) - ln((m_v + p_v) / (M + P - m_v - p_v))
    where f_v and m_v are the counts of v on the two sides, F and M their sums over v, P is
    ``PRIOR_WORDS``, and p_v = P n_v / sum n is the prior, from the corpus's ``n_word``. The
    variance is about 1 / (f_v + p_v) + 1 / (m_v + p_v) (Monroe, Colaresi and Quinn 2008,
    with an informative Dirichlet prior).

    Args:
        counted: the counts of :func:`contexts`.
        word: index of the word.
        n_word: occurrences of each word of the vocabulary.

    Returns:
        A table of collocate, n_f, n_m, log_odds_nats, its standard error and 95% interval, and q
        (p adjusted as by Benjamini and Hochberg). Rows with the largest |z| come first.
    """
    from scipy.special import erfc

    size = len(query.vocabulary)
    f, m = np.zeros((2, size), np.int64)
    for start, n in ((word * 2 * size, f), ((word * 2 + 1) * size, m)):
        cells, counts = between(counted, start, start + size)
        n[cells - start] = counts
    seen = np.flatnonzero(f + m)
    prior = PRIOR_WORDS * n_word[seen] / n_word.sum()
    odds = [np.log((n[seen] + prior) / (n.sum() + PRIOR_WORDS - n[seen] - prior)) for n in (f, m)]
    log_odds = odds[0] - odds[1]
    se = np.sqrt(1 / (f[seen] + prior) + 1 / (m[seen] + prior))
    order = np.argsort(-np.abs(log_odds / se), kind="stable")
    half = NormalDist().inv_cdf(0.975) * se
    return pa.table(
        {
            "collocate": query.vocabulary.take(pa.array(seen[order])),
            "n_f": f[seen][order],
            "n_m": m[seen][order],
            "log_odds_nats": log_odds[order],
            "log_odds_nats_se": se[order],
            "log_odds_nats_low": (log_odds - half)[order],
            "log_odds_nats_high": (log_odds + half)[order],
            "q": adjusted(erfc(np.abs(log_odds / se)[order] / np.sqrt(2))),
        }
    )
