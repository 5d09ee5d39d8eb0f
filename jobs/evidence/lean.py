"""Leans of words, for one or for thousands, with intervals over documents or their sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from plumbline.jobs.association.lean_intervals import Bounds, lean_bounds
from plumbline.jobs.evidence.sightings import Inquiry, Ints, Sightings
from plumbline.warehouse.finding import LEAST_CLUSTERS
from plumbline.warehouse.wordlists import WordPair

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Row = dict[str, Any]
#: Columns of a word's lean in a part of the documents.
OF_PART = ("n_documents", "n_pair_f", "n_pair_m", "delta_nats", "delta_nats_low", "delta_nats_high")


class Leans(NamedTuple):
    """Columns of leans in some documents: arrays over words, or numbers if made by ``lean``.

    Attributes:
        n_word: occurrences of the word.
        n_documents: documents with a co-occurrence that delta uses; with any if no pair is defined.
        n_clusters: clusters (documents, or whole sources) with such a co-occurrence.
        n_pair_f, n_pair_m: co-occurrences with the female and male words of the defined pairs that
            have a weight, each word once; with all words of the side when no pair is defined.
        n_defined: pairs for which the word has both counts.
        delta_nats: weighted mean delta of the defined pairs; NaN if none of them has a weight.
        delta_nats_se: its standard error over clusters; NaN with fewer than two clusters.
        delta_nats_low, delta_nats_high: the 95% interval; NaN without a standard error. A word
            without a defined pair has the interval of ``cluster_bounds``, whose ends may be
            infinite.
        p: p-value of no lean; NaN without an interval, and if the standard error is 0.
    """

    n_word: Any
    n_documents: Any
    n_clusters: Any
    n_pair_f: Any
    n_pair_m: Any
    n_defined: Any
    delta_nats: Any
    delta_nats_se: Any
    delta_nats_low: Any
    delta_nats_high: Any
    p: Any


class CoOccurrences(Protocol):
    """Co-occurrences of words with targets in the drawn clusters of documents.

    Attributes:
        n_word: int64[word], occurrences.
        n_near: int64[word, target], co-occurrences.
        n_target: int64[target], occurrences in all drawn documents.
        n_drawn: number of drawn clusters.
    """

    n_word: Ints
    n_near: Ints
    n_target: Ints
    n_drawn: int

    def influence(self, near: Floats, target: Floats, counts: Bools) -> tuple[Floats, Ints, Ints]:
        """Sums of squared influences over clusters; numbers of documents and clusters that count.

        Args:
            near, target: float64[word, target], weights of co-occurrences with a target and of its
                occurrences: a cluster's influence is the first weighted sum minus the second.
            counts: bool[word, target], which co-occurrences make a document count.
        """


def leans(counted: CoOccurrences, question: Inquiry, pairs: Sequence[WordPair]) -> Leans:
    """Leans of words for the pairs of a contrast.

    delta = sum_g a_g (ln c_g - ln n_g) / V over the targets g (Eqs. 1 and 4, see
    ``association.measures``). c_g is the word's co-occurrences with g, n_g the occurrences of g,
    a_g the sum of the weights of the defined pairs with g, negative if g is male, and V the sum of
    the weights of all defined pairs.

    The sampling units are documents or clusters of documents, not words. The influence of a cluster
    is the sum over its documents of u_d = sum_g a_g (c_dg / c_g - n_dg / n_g) / V; over all
    documents u_d sums to 0. The variance of delta is D / (D - 1) times the sum of the squared
    influences of all D clusters (the linearised, cluster-robust estimate). The interval uses
    Student's t with one degree of freedom fewer than clusters with a co-occurrence. Below
    ``LEAST_CLUSTERS`` of them neither interval nor p is known.

    If no pair is defined, each cluster counts as one co-occurrence, divided between the sides like
    all the word's co-occurrences. The interval is the exact one of ``association.lean_intervals``:
    a word near *he* in forty documents and near *she* in none has a lean of at least its bound.
    """
    from scipy.special import stdtr, stdtrit

    c, n = counted.n_near, counted.n_target
    index = {target: k for k, target in enumerate(question.targets)}
    a, weight = np.zeros(c.shape), np.zeros(len(c))
    used, n_defined = np.zeros(c.shape, np.bool_), np.zeros(len(c), np.int64)
    for pair in pairs:
        f, m = index[pair.a], index[pair.b]
        both = (c[:, f] > 0) & (c[:, m] > 0)
        a[:, f] += pair.weight * both
        a[:, m] -= pair.weight * both
        weight += pair.weight * both
        used[:, [f, m]] |= (both & (pair.weight != 0))[:, None]
        n_defined = n_defined + both
    is_defined, has_delta = n_defined > 0, weight > 0
    sides = [np.isin(question.targets, side) for side in question.sides]
    n_f, n_m = (
        np.where(is_defined, (c * used)[:, side].sum(axis=1), c[:, side].sum(axis=1))
        for side in sides
    )
    counts = (a != 0) | ~is_defined[:, None]
    a = np.where(has_delta[:, None], a, 0) / np.where(has_delta, weight, 1)[:, None]
    used_c, used_n = (np.where(a != 0, x, 1) for x in (c, n))
    squares, n_documents, n_clusters = counted.influence(a / used_c, a / used_n, counts)
    delta = np.where(has_delta, (a * (np.log(used_c) - np.log(used_n))).sum(axis=1), np.nan)
    variance = squares * counted.n_drawn / max(counted.n_drawn - 1, 1)
    se = np.where(has_delta & (n_clusters > 1), np.sqrt(variance), np.nan)
    df = np.maximum(n_clusters - 1, 1)
    half = stdtrit(df, 0.975) * se
    p = 2 * stdtr(df, -np.abs(delta) / np.where(se > 0, se, np.nan))
    is_few = n_clusters < LEAST_CLUSTERS
    bounds = cluster_bounds(n_f, n_m, n_clusters, [float(n[side].sum()) for side in sides])
    interval = (
        np.where(is_few, np.nan, np.where(is_defined, by_t, exact))
        for by_t, exact in zip((delta - half, delta + half, p), bounds, strict=True)
    )
    counted_n = counted.n_word, n_documents, n_clusters, n_f, n_m, n_defined
    return Leans(*counted_n, delta, se, *interval)


class _WordCoOccurrences:
    """``CoOccurrences`` of one word in the documents of a mask."""

    def __init__(self, seen: Sightings, word: int, keep: Bools, cluster: Ints) -> None:
        rows = (seen.word == word) & keep[seen.document]
        self._documents, self._keep, self._cluster = seen.documents, keep, cluster
        self._near, self._document = seen.n_near[rows], seen.document[rows]
        self.n_word = seen.n_word[rows].sum(keepdims=True)
        self.n_near = self._near.sum(axis=0, keepdims=True)
        self.n_target = seen.documents.n_target[keep].sum(axis=0)
        self.n_drawn = np.unique(cluster[keep]).size

    def influence(self, near: Floats, target: Floats, counts: Bools) -> tuple[Floats, Ints, Ints]:
        """See ``CoOccurrences``."""
        used = target[0] != 0
        of_document = np.where(
            self._keep, -(self._documents.n_target[:, used] @ target[0, used]), 0.0
        )
        of_document[self._document] += self._near[:, used] @ near[0, used]
        meeting = self._document[self._near[:, counts[0]].any(axis=1)]
        n = meeting.size, np.unique(self._cluster[meeting]).size
        squares = np.square(np.bincount(self._cluster, of_document)).sum(keepdims=True)
        return squares, *(np.array([k]) for k in n)


def lean(
    seen: Sightings,
    word: int,
    pairs: Sequence[WordPair],
    keep: Bools | None = None,
    cluster: Ints | None = None,
) -> Leans:
    """The lean of a word (by index) over all documents or the ones in ``keep``, as numbers.

    ``cluster``: index of each document's cluster; by default each document is its own cluster.
    """
    size = len(seen.documents.row)
    keep = np.ones(size, np.bool_) if keep is None else keep
    cluster = np.arange(size) if cluster is None else cluster
    columns = leans(_WordCoOccurrences(seen, word, keep, cluster), seen.question, pairs)
    return Leans(*(column.item() for column in columns))


def influences(seen: Sightings, word: int, pairs: Sequence[WordPair], keep: Bools) -> Floats:
    """Influence u_d (see ``leans``) of each document in ``keep`` on a word's delta, 0 for others.

    It is 0 everywhere if no pair is defined. ``word`` is an index.
    """
    index = {target: k for k, target in enumerate(seen.question.targets)}
    rows = (seen.word == word) & keep[seen.document]
    near = np.zeros((len(keep), len(index)))
    near[seen.document[rows]] = seen.n_near[rows]
    n_target = seen.documents.n_target * keep[:, None]
    c, n = near.sum(axis=0), n_target.sum(axis=0)
    total, weight = np.zeros(len(keep)), 0.0
    for pair in pairs:
        f, m = index[pair.a], index[pair.b]
        if min(c[f], c[m]) > 0:
            part = near[:, [f, m]] / c[[f, m]] - n_target[:, [f, m]] / n[[f, m]]
            total += pair.weight * (part[:, 0] - part[:, 1])
            weight += pair.weight
    return total / weight if weight > 0 else np.zeros(len(keep))


#: Function of word indices, a mask of sources and a kind of clusters; it returns leans.
LeansOf = Callable[[Ints, Bools, str], Leans]


def lean_tables(
    question: Inquiry, sources: Sequence[str], holds: Bools, leans_of: LeansOf, clusters: str
) -> dict[str, list[Row]]:
    """The rows of ``word_evidence`` and ``word_source``; the word is their only key column.

    A word has a row of ``word_source`` for each source that holds it (``holds``,
    bool[source, word]); sources with most of its co-occurrences come first.
    """
    every = np.arange(len(question.words))
    whole = leans_of(every, np.ones(len(sources), np.bool_), clusters)._asdict()
    first = {name: whole.pop(name) for name in ("n_word", "n_documents")}
    evidence = {**first, "clusters": np.full(len(every), clusters), **whole}
    source_rows: list[Row] = []
    for k, source in enumerate(sources):
        words = np.flatnonzero(holds[k])
        if not words.size:
            continue
        is_this = np.arange(len(sources)) == k
        inside = leans_of(words, is_this, "document")
        without = leans_of(words, ~is_this, clusters)
        columns = {
            "source": np.full(words.size, source, object),
            **{name: getattr(inside, name) for name in ("n_word", *OF_PART)},
            "delta_without_nats": without.delta_nats,
            "delta_without_nats_low": without.delta_nats_low,
            "delta_without_nats_high": without.delta_nats_high,
        }
        source_rows += word_rows(question, words, columns)
    place = {word: k for k, word in enumerate(question.words)}
    source_rows.sort(key=lambda r: (place[r["word"]], -r["n_pair_f"] - r["n_pair_m"], r["source"]))
    return {"word_evidence": word_rows(question, every, evidence), "word_source": source_rows}


def word_rows(question: Inquiry, words: Ints, columns: dict[str, NDArray[Any]]) -> list[Row]:
    """One row per word (by index) from columns; NaN becomes ``None``."""
    return as_rows({"word": np.array(question.words, object)[words]} | columns)


def as_rows(columns: dict[str, NDArray[Any]]) -> list[Row]:
    """Rows from columns; NaN becomes ``None``."""
    arrays = {name: pa.array(x, from_pandas=True) for name, x in columns.items()}
    rows: list[Row] = pa.table(arrays).to_pylist()
    return rows


def cluster_bounds(
    n_f: ArrayLike, n_m: ArrayLike, n_clusters: ArrayLike, n_sides: Sequence[float] | Floats
) -> Bounds:
    """Bounds of leans without a delta, from the clusters with a co-occurrence.

    Args:
        n_f, n_m: co-occurrences with female and male words; the result is NaN where both are 0.
        n_clusters: documents or sources with a co-occurrence, at most n_f + n_m.
        n_sides: occurrences of female and of male words; the result is NaN if one is 0.

    >>> cluster_bounds(0, 55, 12, (204, 1227)).high_nats.round(2).tolist()
    0.77
    """
    f, m = np.asarray(n_f, np.float64), np.asarray(n_m, np.float64)
    is_known = (f + m > 0) & (min(n_sides) > 0)
    each = np.asarray(n_clusters, np.float64) / np.where(is_known, f + m, 1)
    odds = np.log(n_sides[0] / n_sides[1]) if min(n_sides) > 0 else 0.0
    bounds = lean_bounds(f * each, m * each, odds)
    return Bounds(*(np.where(is_known, x, np.nan) for x in bounds))
