"""Occurrences of words and phrases, alone or near a group of words: counts, rates and lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plumbline.jobs.counting.document_words import Documents, evidence_of
from plumbline.jobs.evidence.concordance import OccurrenceSample
from plumbline.jobs.evidence.explanation import Sampling, snippet_rows, widest_clusters
from plumbline.jobs.evidence.lean import Row
from plumbline.jobs.evidence.phrases import of_phrase, parsed
from plumbline.jobs.evidence.sightings import (
    ALL_SOURCES,
    UNNAMED,
    DocumentTable,
    Inquiry,
    Ints,
    document_marks,
    joined,
    meetings,
    near_counts,
    read_shards,
    source_index,
)
from plumbline.warehouse.finding import LEAST_CLUSTERS
from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True)
class QueryResult:
    """The result of a query: its row of counts, and the rows of the sampled lines."""

    counts: Row
    lines: list[Row]


def occurrences(
    store: Store,
    corpus: str,
    query: str,
    sampling: Sampling,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> QueryResult:
    """Count a word or phrase in a corpus's documents; sample lines that hold it.

    ``WORD NEAR OTHER...`` counts the occurrences of WORD less than a window away from any of the
    other words; a group's name in capitals (``FEMALE``) stands for its listed words.
    ``n_pair`` follows the corpus's counting rule: under `pairs` it counts pairs of WORD with any of
    the other words, under `windows` the windows that hold WORD and any of them.

    Raises:
        UsageProblem: unknown corpus, a word that isn't in it, or nothing on a side of ``NEAR``.
        MissingComponent: its kept documents are not on this machine.
        BadInput: its kept documents are damaged.
    """
    evidence = evidence_of(store, corpus)
    text, near = parsed(store, evidence.corpus, query)
    rule, window = evidence.options.rule, evidence.options.window
    vocabulary = store.read("word_count", corpus=corpus)["word"].combine_chunks()
    base = Inquiry((), near or (text,), (), (), rule, window, vocabulary)
    question = of_phrase(base, corpus, text)
    sample = OccurrenceSample(question, sampling.n, sampling.seed)

    def read(shard: int, _: int, documents: Documents) -> _BatchCounts:
        met = meetings(question, joined(question, documents))
        every = np.arange(met.at.size)
        # Without NEAR each occurrence counts as near itself; the words after NEAR are one target.
        where = (met.occurrence, met.target_at) if near else (every, met.at)
        met = replace(met, occurrence=where[0], target=np.zeros_like(where[0]), target_at=where[1])
        marks, n = document_marks(documents, question.keys), len(documents.row)
        sample.offer(shard, met, marks)
        return _BatchCounts(
            np.full(n, shard),
            documents.row,
            documents.source.fill_null(UNNAMED),
            np.diff(documents.offsets),
            marks,
            np.bincount(met.document, minlength=n),
            np.bincount(met.document[np.unique(met.occurrence)], minlength=n),
            near_counts(question, met, met.document, n)[:, 0] if near else np.zeros(n, np.int64),
        )

    parts = read_shards(evidence, question, read, progress)
    names, source = source_index([part.source for part in parts], ALL_SOURCES)
    mark = np.concatenate([np.empty(0, np.uint64), *(part.mark for part in parts)])
    shard, row, n_kept, n_word, n, n_pair = (
        np.concatenate([np.empty(0, np.int64), *(getattr(part, name) for part in parts)])
        for name in ("shard", "row", "n_kept", "n_word", "n", "n_pair")
    )
    clusters = widest_clusters(evidence)
    cluster = source if clusters == "source" else np.arange(n.size)
    counts = {
        **{"corpus": corpus, "query": query, "n": int(n.sum()), "n_documents": int((n > 0).sum())},
        **{"clusters": clusters, "n_clusters": int(np.unique(cluster[n > 0]).size)},
        **ratio("per_million", n, n_kept / 1e6, cluster),
        **({"n_word": int(n_word.sum())} if near else {}),
        **(ratio("share_near", n, n_word, cluster, is_share=True) if near else {}),
        **({"n_pair": int(n_pair.sum())} if near else {}),
    }
    table = DocumentTable(shard, row, source, n_kept, n_kept[:, None], mark, names)
    lines = snippet_rows(evidence, question, table, sample.occurrences(), sampling)
    return QueryResult(counts, [{"query": query, **line} for _, line in lines])


class _BatchCounts(NamedTuple):
    """Columns of ``DocumentTable``; for each document ``n_word``, ``n`` (near) and ``n_pair``."""

    shard: Ints
    row: Ints
    source: pa.StringArray
    n_kept: Ints
    mark: NDArray[np.uint64]
    n_word: Ints
    n: Ints
    n_pair: Ints


def ratio(
    name: str,
    n: Sequence[int] | Ints,
    of: Sequence[float] | NDArray[np.float64] | Ints,
    cluster: Sequence[int] | Ints,
    *,
    is_share: bool = False,
) -> Row:
    """The ratio ``name``, r = sum(n) / sum(of) over documents, and its 95% interval over clusters.

    The standard error is linearised and cluster-robust (see ``evidence.lean``): cluster k has the
    influence (n_k - r of_k) / sum(of), and the variance is D / (D - 1) times the sum of their
    squares over the D clusters where ``of`` is above 0. The interval is Student's t on log r, or on
    the log odds of a share, with one degree of freedom fewer than clusters where ``n`` is above 0.
    A share of 0 or 1 has the exact interval of D trials. All values are ``None`` if ``of`` sums to
    0, intervals below ``LEAST_CLUSTERS`` clusters (those where ``n`` is above 0, or all D).

    >>> ratio("share", [4, 0, 2, 3], [10, 10, 10, 10], [0, 1, 2, 3], is_share=True)
    {'share': 0.225, 'share_low': None, 'share_high': None}
    >>> row = ratio("share", [2, 3, 1, 1, 1], [2, 3, 1, 1, 1], range(5), is_share=True)
    >>> round(row["share_low"], 6)  # 0.025 ** (1 / 5)
    0.478176
    """
    from scipy.special import expit, logit, stdtrit

    counted, base = np.asarray(n, np.float64), np.asarray(of, np.float64)
    ends = f"{name}_low", f"{name}_high"
    if not base.sum() > 0:
        return dict.fromkeys((name, *ends))
    _, at = np.unique(np.asarray(cluster), return_inverse=True)
    n_of, base_of = np.bincount(at, counted), np.bincount(at, base)
    drawn, with_n = int((base_of > 0).sum()), int((n_of > 0).sum())
    r = float(n_of.sum() / base_of.sum())
    if (drawn if is_share and r in (0, 1) else with_n) < LEAST_CLUSTERS:
        return {name: r, **dict.fromkeys(ends)}
    if is_share and r in (0, 1):
        far = 0.025 ** (1 / drawn)
        return dict(zip((name, *ends), (r, r * far, 1 - (1 - r) * far), strict=True))
    squares = np.square((n_of - r * base_of) / base_of.sum()).sum()
    half = stdtrit(with_n - 1, 0.975) * np.sqrt(squares * drawn / (drawn - 1)) / r
    if is_share:
        low, high = (expit(logit(r) + sign * half / (1 - r)) for sign in (-1, 1))
    else:
        low, high = (r * np.exp(sign * half) for sign in (-1, 1))
    return {name: r, **dict(zip(ends, (float(low), float(high)), strict=True))}
