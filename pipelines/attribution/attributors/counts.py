"""Each document's contribution to the lean of the pairs' words, among the documents read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plumbline.jobs.evidence.lean import influences
from plumbline.pipelines.attribution.contract import Floats, Progress, Query, Subject, silent
from plumbline.warehouse.errors import UsageProblem

DESCRIPTION = "what each document adds to delta of the pairs' words, to first order"
UNIT = "nats of delta"


def scores(queries: Sequence[Query], subject: Subject, progress: Progress = silent) -> Floats:
    """Each document's influence on the pairs' words (``evidence.lean``), the mean over pairs.

    0 for a document that the model didn't read, and for a word without counts on both sides.
    """
    words = sorted(set().union(*(query.words for query in queries)))
    if not words:
        problem = "its pairs were made for no word"
        raise UsageProblem(f"query {queries[0].name}", problem, "give --method ngram or gradients")
    seen, keep = subject.sightings(words, progress), np.zeros(len(subject.text), np.bool_)
    keep[subject.text.read] = True
    of_word = [influences(seen, k, subject.pairs, keep) for k in range(len(words))]
    return np.array([query.weights(words) for query in queries]) @ np.array(of_word)
