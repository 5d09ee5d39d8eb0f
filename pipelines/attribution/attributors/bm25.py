"""Search scores of documents: similarity to the sentences, signed by each document's own lean.

A score is BM25 (Robertson and Zaragoza 2009, doi:10.1561/1500000019; k1 = 1.2, b = 0.75) of the
kept words that both sentences of a pair share, times s - S. s is (n_f - n_m) / (n_f + n_m) of the
contrast's words in the document, S the same over all documents. (BM25 of one sentence minus BM25
of the other would depend on *she* and *he* alone: all other words cancel.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plumbline.jobs.kernel.tokenizer import Tokenizer
from plumbline.pipelines.attribution.contract import Floats, Progress, Query, Subject, silent

DESCRIPTION = "similarity with the sentences, signed by the document's own she and he"
UNIT = "arbitrary units"
_K1, _B = 1.2, 0.75


def scores(queries: Sequence[Query], subject: Subject, progress: Progress = silent) -> Floats:
    """Mean BM25 of shared words over a query's pairs, times s - S (0 without contrast words)."""
    options = subject.text.evidence.options
    tokenizer = Tokenizer(options.targets, language=options.language)
    shared: dict[tuple[str, str], set[str]] = {}
    for pair in (pair for query in queries for pair in query.pairs):
        both = (set(tokenizer.tokens(text)) for text in (pair.text_f, pair.text_m))
        shared[pair.text_f, pair.text_m] = set.intersection(*both)
    words = sorted(set().union(*shared.values()))
    seen = subject.sightings(words, progress)
    table, sides = seen.documents, seen.question.sides
    n_documents = len(table.row)
    n_f, n_m = (
        table.n_target[:, np.isin(seen.question.targets, side)].sum(axis=1) for side in sides
    )
    overall = (n_f.sum() - n_m.sum()) / max(n_f.sum() + n_m.sum(), 1)
    side = np.where(n_f + n_m > 0, (n_f - n_m) / np.maximum(n_f + n_m, 1) - overall, 0)
    length = _K1 * (1 - _B + _B * table.n_kept / max(table.n_kept.mean(), 1))
    n_with = np.bincount(seen.word, minlength=len(words))
    idf = np.log1p((n_documents - n_with + 0.5) / (n_with + 0.5))
    part = idf[seen.word] * seen.n_word * (_K1 + 1) / (seen.n_word + length[seen.document])
    document_scores = np.zeros((len(queries), n_documents))
    for row, query in zip(document_scores, queries, strict=True):
        weight = dict.fromkeys(words, 0.0)
        for pair in query.pairs:
            for word in shared[pair.text_f, pair.text_m]:
                weight[word] += pair.weight
        word_weights = np.array([weight[word] for word in words])
        row += np.bincount(seen.document, part * word_weights[seen.word], n_documents) * side
    return document_scores
