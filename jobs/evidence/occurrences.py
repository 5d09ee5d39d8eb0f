"""Occurrences of words and phrases, alone or near a group of words: counts, rates and lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from plumbline.jobs.counting.co_occurrences import Occurrences, Query, co_occurrences
from plumbline.jobs.counting.kept_documents import evidence_of
from plumbline.jobs.evidence.concordance import OccurrenceSample, snippet_rows
from plumbline.jobs.evidence.explanation import Sampling
from plumbline.jobs.evidence.index import Hashes, Row, of_phrase, parsed, read_index
from plumbline.jobs.kernel.pair_runs import Ints
from plumbline.warehouse.finding import LEAST_CLUSTERS
from plumbline.warehouse.storage.store import Store


def occurrences(
    store: Store,
    corpus: str,
    query: str,
    sampling: Sampling,
) -> tuple[Row, list[Row]]:
    """Count a word or phrase in a corpus's documents. Return a row of counts, and sampled lines.

    ``WORD NEAR OTHER...`` counts the occurrences of WORD less than a window away from any of the
    other words; a group's name in capitals (``FEMALE``) stands for its listed words.
    ``n_pair`` follows the corpus's counting rule: under `pairs` it counts pairs of WORD with any of
    the other words, under `windows` the windows that contain WORD and any of the other words.

    Raises:
        UsageProblem: the corpus is unknown, lacks a word, or a side of ``NEAR`` is empty.
        MissingComponent: the corpus's kept documents are not on this machine.
        BadInput: the corpus's kept documents are damaged.
    """
    evidence = evidence_of(store, corpus)
    text, context = parsed(store, evidence.corpus, query)
    rule, window = evidence.options.rule, evidence.options.window
    vocabulary = store.read("word_count", corpus=corpus)["word"].combine_chunks()
    base = Query((), context or (text,), (), (), rule, window, vocabulary)
    question = of_phrase(base, corpus, text)
    sample = OccurrenceSample(question, sampling.n, sampling.seed)

    def count(shard: int, found: Occurrences, hashes: Hashes) -> Ints:
        """Count by document: occurrences, those in context, co-occurrences with the context."""
        every = np.arange(found.at.size)
        # The words after NEAR are one target. Without them each occurrence is its own context.
        occurrence, at = (found.occurrence, found.target_at) if context else (every, found.at)
        found = replace(
            found, occurrence=occurrence, target=np.zeros_like(occurrence), target_at=at
        )
        sample.offer(shard, found, hashes)
        document, _, _, n = co_occurrences(question, found)
        documents = found.document, found.document[np.unique(occurrence)]
        sizes = [np.bincount(x, minlength=hashes.size) for x in documents]
        n_pair = np.bincount(document, n, hashes.size) if context else np.zeros(hashes.size)
        return np.stack([*sizes, n_pair.astype(np.int64)])

    index, counted = read_index(evidence, question, count)
    n_word, n, n_pair = np.concatenate([np.empty((3, 0), np.int64), *counted], axis=1)
    clusters = evidence.clusters
    cluster = index.source if clusters == "source" else np.arange(n.size)
    counts = {
        **{"corpus": corpus, "query": query, "n": int(n.sum()), "n_documents": int((n > 0).sum())},
        **{"clusters": clusters, "n_clusters": int(np.unique(cluster[n > 0]).size)},
        **ratio("per_million", n, index.n_kept / 1e6, cluster),
        **({"n_word": int(n_word.sum())} if context else {}),
        **(ratio("share_near", n, n_word, cluster, is_share=True) if context else {}),
        **({"n_pair": int(n_pair.sum())} if context else {}),
    }
    lines = snippet_rows(evidence, index, sample.occurrences(), sampling.seed)
    return counts, [{"query": query, **line} for line in lines]


def ratio(
    name: str,
    n: Sequence[int] | Ints,
    of: Sequence[float] | NDArray[np.float64] | Ints,
    cluster: Sequence[int] | Ints,
    *,
    is_share: bool = False,
) -> Row:
    """Return the ratio ``name``, r = sum(n) / sum(of), and its 95% interval over clusters.

    The standard error is linearised and cluster-robust (see ``evidence.lean``): cluster k has the
    influence (n_k - r of_k) / sum(of). The variance is D / (D - 1) times the sum of the squared
    influences of the D clusters where ``of`` is above 0. The interval is Student's t on log r, or
    on the log odds of a share; its degrees of freedom are the C clusters where ``n`` is above 0,
    minus one. A share of 0 or 1 has the exact interval of D trials. All values are ``None`` if
    ``of`` sums to 0. The interval is ``None`` if C (for a share of 0 or 1: D) is below
    ``LEAST_CLUSTERS``.

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
