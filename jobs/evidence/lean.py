"""Compute how far words lean to one gender. Intervals use documents or sources as clusters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plumbline.jobs.association.measures import Floats, lean_bounds
from plumbline.jobs.counting.co_occurrences import Query
from plumbline.jobs.evidence.index import Bools, CoOccurrences, Index, Row
from plumbline.jobs.kernel.pair_runs import Ints
from plumbline.warehouse.finding import LEAST_CLUSTERS
from plumbline.warehouse.wordlists import WordPair

#: Columns that are also computed for a part of the documents, such as one source.
OF_PART = ("n_documents", "n_pair_f", "n_pair_m", "delta_nats", "delta_nats_low", "delta_nats_high")
#: Only this many sources of a corpus, from the first on, get rows in ``word_source``.
MOST_SOURCES = 1000
#: ``share_often`` is the share of co-occurrences in documents with more copies than this.
OFTEN = 10
#: At most this many pairs of a unit and a word are computed at the same time.
_MOST_CELLS = 10_000_000


class Leans(NamedTuple):
    """How far words lean in a set of documents. Each field has one value per word.

    A pair is defined for a word if the word co-occurs with both words of the pair.

    Attributes:
        n_documents: number of documents with a co-occurrence that delta uses, or with any
            co-occurrence if no pair is defined.
        n_clusters: number of clusters (documents, or whole sources) with such a co-occurrence.
        n_pair_f, n_pair_m: number of co-occurrences with female and with male words. If any pair
            is defined, only the words of defined pairs with a weight other than 0 are used.
            Otherwise all words of the side are used.
        n_defined: number of pairs that are defined for the word.
        delta_nats: weighted mean delta of the defined pairs; NaN if no defined pair has a weight.
        delta_nats_se: cluster-robust standard error of delta; NaN with fewer than two clusters.
        delta_nats_low, delta_nats_high: 95% interval; NaN with fewer than ``LEAST_CLUSTERS``
            clusters. A word without a defined pair has an exact interval (see ``leans``), whose
            ends may be infinite.
        p: p-value of the test for no lean; NaN if there is no interval or the standard error is 0.
    """

    n_documents: Ints
    n_clusters: Ints
    n_pair_f: Ints
    n_pair_m: Ints
    n_defined: Ints
    delta_nats: Floats
    delta_nats_se: Floats
    delta_nats_low: Floats
    delta_nats_high: Floats
    p: Floats


def leans(
    query: Query,
    pairs: Sequence[WordPair],
    counted: CoOccurrences,
    documents: CoOccurrences | None = None,
    words: Ints | None = None,
) -> Leans:
    """Compute how far a query's words lean, from the word pairs of a contrast.

    delta = sum_g a_g (ln c_g - ln n_g) / V, summed over the targets g (Eqs. 1 and 4, see
    ``association.measures``). The word co-occurs c_g times with g, and g occurs n_g times. a_g is
    the sum of the weights of the defined pairs that contain g, with a minus sign if g is male. V is
    the sum of the weights of all defined pairs.

    Words of one document are not independent, so the sampling units are clusters (documents or
    sources). Document d has the influence sum_g a_g (c_dg / c_g - n_dg / n_g) / V, and a cluster's
    influence is the sum of its documents' influences. The influences of all documents add up to 0.
    The variance of delta is D / (D - 1) times the sum of the squared influences of all D clusters
    (the linearised, cluster-robust estimate). The interval uses Student's t with C - 1 degrees of
    freedom, where C clusters have a co-occurrence. If C is below ``LEAST_CLUSTERS``, the interval
    and p are NaN.

    If no pair is defined, each cluster counts as one co-occurrence, divided between the sides in
    proportion to the word's co-occurrences. These counts give the exact interval of
    ``measures.lean_bounds``. For example, if a word is near *he* in forty documents and near *she*
    in none, one bound is infinite. The word leans to *he* by at least the other bound.

    Args:
        counted: co-occurrences in each cluster.
        documents: co-occurrences in each document; needed if the clusters are sources.
        words: indices of the words to use (default: all).
    """
    from scipy.special import stdtr, stdtrit

    words = np.arange(len(query.words)) if words is None else words
    counted = counted.of_words(words)
    documents = counted if documents is None else documents.of_words(words)
    n_drawn, n_targets = counted.n_target.shape
    n = counted.n_target.sum(axis=0)
    cells = counted.word * n_targets + counted.target
    c = np.bincount(cells, counted.n, words.size * n_targets).reshape(-1, n_targets)
    index = {target: k for k, target in enumerate(query.targets)}
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
    sides = [np.isin(query.targets, side) for side in query.sides]
    n_f, n_m = (
        np.where(is_defined, (c * used)[:, side].sum(axis=1), c[:, side].sum(axis=1))
        for side in sides
    )
    counts = (a != 0) | ~is_defined[:, None]
    a = np.where(has_delta[:, None], a, 0) / np.where(has_delta, weight, 1)[:, None]
    used_c, used_n = (np.where(a != 0, x, 1) for x in (c, n))
    squares = _squared_influences(counted, a / used_c, a / used_n)
    n_documents, n_clusters = (_n_units(x, counts) for x in (documents, counted))
    delta = np.where(has_delta, (a * (np.log(used_c) - np.log(used_n))).sum(axis=1), np.nan)
    variance = squares * n_drawn / max(n_drawn - 1, 1)
    se = np.where(has_delta & (n_clusters > 1), np.sqrt(variance), np.nan)
    df = np.maximum(n_clusters - 1, 1)
    half = stdtrit(df, 0.975) * se
    p = 2 * stdtr(df, -np.abs(delta) / np.where(se > 0, se, np.nan))
    is_few = n_clusters < LEAST_CLUSTERS
    bounds = _cluster_bounds(n_f, n_m, n_clusters, [float(n[side].sum()) for side in sides])
    interval = (
        np.where(is_few, np.nan, np.where(is_defined, by_t, exact))
        for by_t, exact in zip((delta - half, delta + half, p), bounds, strict=True)
    )
    n_pairs = n_f.astype(np.int64), n_m.astype(np.int64)
    return Leans(n_documents, n_clusters, *n_pairs, n_defined, delta, se, *interval)


def _n_units(counted: CoOccurrences, counts: Bools) -> Ints:
    """Count the units (documents or sources) in which each word is near a target.

    ``counts`` says which targets (columns) are used for each word (row).
    """
    used = counts[counted.word, counted.target]
    word = counted.word[used]
    return np.bincount(word[_first_rows(counted.unit[used], word)], minlength=len(counts))


def _first_rows(unit: Ints, word: Ints) -> Bools:
    first = np.ones(unit.size, np.bool_)
    first[1:] = (unit[1:] != unit[:-1]) | (word[1:] != word[:-1])
    return first


def _squared_influences(counted: CoOccurrences, near: Floats, target: Floats) -> Floats:
    """Return the sum of the squared influences of all units, for each word.

    If the word co-occurs c_g times with target g in a unit, and g occurs n_g times in the unit, the
    unit's influence is sum_g (near_g c_g - target_g n_g).

    Args:
        near, target: the weights near_g and target_g, for each word (row) and target g (column).
    """
    n_words = len(near)
    first = _first_rows(counted.unit, counted.word)
    unit, word, cell = counted.unit[first], counted.word[first], np.cumsum(first) - 1
    of_near = np.bincount(cell, counted.n * near[counted.word, counted.target], unit.size)
    of_target = np.zeros(unit.size)
    for k, n_target in enumerate(counted.n_target.T):
        of_target += n_target[unit] * target[word, k]
    # In a unit without the word, the influence depends only on the unit's n_target.
    distinct, times = np.unique(counted.n_target, axis=0, return_counts=True)
    parts = np.array_split(target, 1 + len(distinct) * n_words // _MOST_CELLS)
    every = np.concatenate([times @ np.square(distinct @ part.T) for part in parts])
    others = every - np.bincount(word, np.square(of_target), n_words)
    n_others = counted.n_target.any(axis=1).sum() - np.bincount(word, minlength=n_words)
    own = np.bincount(word, np.square(of_near - of_target), n_words)
    return np.asarray(own + np.where(n_others > 0, np.maximum(others, 0), 0), np.float64)


def lean_tables(index: Index, pairs: Sequence[WordPair], clusters: str) -> dict[str, list[Row]]:
    """Return rows of ``word_evidence`` and ``word_source``, without corpus, contrast and run.

    ``word_source`` has a row for each word and each source that contains the word. Only the first
    ``MOST_SOURCES`` sources of the corpus are used. A word's rows are sorted by the number of its
    co-occurrences in the source, largest first.
    """
    query, documents = index.query, index.pairs
    counted = documents.by(clusters)
    every = np.arange(len(query.words))
    whole = leans(query, pairs, counted, documents)._asdict()
    first = {"n_word": index.n_word.sum(axis=0), "n_documents": whole.pop("n_documents")}
    evidence = {**first, "clusters": np.full(every.size, clusters), **whole}
    n_copies = index.n_copies[documents.unit]
    n_all = np.bincount(documents.word, documents.n, every.size)
    for name, least in (("share_copied", 1), ("share_often", OFTEN)):
        n = np.bincount(documents.word, documents.n * (n_copies > least), every.size)
        evidence[name] = np.where(n_all > 0, n / np.maximum(n_all, 1), np.nan)
    source_rows: list[Row] = []
    for k, of_source in enumerate(islice(documents.each_source(), MOST_SOURCES)):
        words = np.flatnonzero(index.n_word[k])
        if not words.size:
            continue
        inside = leans(query, pairs, of_source, words=words)
        without = leans(query, pairs, counted.within(counted.source != k), words=words)
        columns = {
            "source": np.full(words.size, index.sources[k], object),
            "n_word": index.n_word[k, words],
            **{name: getattr(inside, name) for name in OF_PART},
            "delta_without_nats": without.delta_nats,
            "delta_without_nats_low": without.delta_nats_low,
            "delta_without_nats_high": without.delta_nats_high,
        }
        source_rows += word_rows(query, words, columns)
    place = {word: k for k, word in enumerate(query.words)}
    source_rows.sort(key=lambda r: (place[r["word"]], -r["n_pair_f"] - r["n_pair_m"], r["source"]))
    return {"word_evidence": word_rows(query, every, evidence), "word_source": source_rows}


def word_rows(query: Query, words: Ints, columns: dict[str, NDArray[Any]]) -> list[Row]:
    """Make one row for each word at the given indices. NaN becomes ``None``."""
    named = {"word": np.array(query.words, object)[words]} | columns
    arrays = {name: pa.array(x, from_pandas=True) for name, x in named.items()}
    rows: list[Row] = pa.table(arrays).to_pylist()
    return rows


def _cluster_bounds(
    n_f: Floats, n_m: Floats, n_clusters: Ints, n_sides: list[float]
) -> list[Floats]:
    """Return exact bounds and p-values for the leans of words that have no defined pair.

    ``n_sides`` is how often the female and the male targets occur. If either number is 0, the
    bounds are NaN. They are also NaN for a word without co-occurrences.
    """
    is_known = (n_f + n_m > 0) & (min(n_sides) > 0)
    each = n_clusters / np.where(is_known, n_f + n_m, 1)
    odds = np.log(n_sides[0] / n_sides[1]) if min(n_sides) > 0 else 0.0
    bounds = lean_bounds(n_f * each, n_m * each, odds)
    return [np.where(is_known, x, np.nan) for x in bounds]
