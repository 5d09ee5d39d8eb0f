"""Change in the preference of the text's 5-gram model when each document is left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plumbline.eval_workers.models.ngram import NgramOptions
from plumbline.pipelines.attribution.contract import Floats, Progress, Query, Subject, silent
from plumbline.warehouse.errors import UsageProblem

DESCRIPTION = "change of a 5-gram model's preference when each document is left out"
UNIT = "nats of the 5-gram model"


def scores(queries: Sequence[Query], subject: Subject, progress: Progress = silent) -> Floats:
    """Preference of a 5-gram model of the documents read, minus its preference without each one.

    The model is that of `plumbline train --preset 5gram`; counts are exact, while words and
    discounts stay those of all documents (``ngram.left_out``). A document that the model didn't
    read has 0.
    """
    from plumbline.eval_workers.models.ngram.left_out import LeftOut, counts
    from plumbline.eval_workers.models.ngram.ngram_training import tokenizer_of
    from plumbline.eval_workers.models.ngram.text_words import BOS, UNKNOWN, numbered_words

    read = subject.text.read
    texts = list(subject.text.texts(read))
    numbers, words = numbered_words(texts)
    sentences = [some[:-1] for some in np.split(numbers, np.flatnonzero(numbers == BOS) + 1)[:-1]]
    if not sentences:
        raise UsageProblem(f"corpus {subject.text.corpus!r}", "holds no text")
    tokenizer = tokenizer_of(words)
    n_sentences = [np.count_nonzero(numbered_words([text])[0] == BOS) for text in texts]
    part = np.repeat(np.arange(len(texts)), n_sentences)
    counted = counts(sentences, len(words) + UNKNOWN + 1, NgramOptions().order)
    query_texts = sorted({text for query in queries for text, _ in query.texts()})
    ids = {text: tokenizer.encode(text, add_special_tokens=False).ids for text in query_texts}
    model = LeftOut(counted, part, len(texts))
    document_scores = np.zeros((len(queries), len(subject.text)))
    for done, (row, query) in enumerate(zip(document_scores, queries, strict=True), 1):
        without = np.sum([w * model.logprob(ids[text]) for text, w in query.texts()], axis=0)
        row[read] = without[-1] - without[:-1]
        progress(done, len(queries))
    return document_scores
