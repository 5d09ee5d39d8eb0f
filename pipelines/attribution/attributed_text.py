"""The documents of a counted corpus in their fixed order, and what a model read of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plumbline.eval_workers.models.ngram.text_words import BOS, numbered_words
from plumbline.eval_workers.training.trained_models import reading, trained_on
from plumbline.jobs.counting.document_words import Evidence, evidence_of
from plumbline.jobs.evidence.concordance import texts_of
from plumbline.jobs.evidence.sightings import ALL_SOURCES, DocumentTable, Inquiry, look
from plumbline.warehouse.input.remote_files import located
from plumbline.warehouse.storage.store import Store

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TrainingText:
    """The documents of a corpus, shard after shard, as counting kept them.

    Attributes:
        evidence: the corpus and its kept documents.
        documents: each document's shard, row, source, number of kept words and mark, which is the
            same for copies of a document.
        n_read: int64[document], tokens that the model read of it, repetitions counted; ``None``
            if unknown, as for an adapter or a model that was trained elsewhere.
    """

    evidence: Evidence
    documents: DocumentTable
    n_read: Ints | None = None

    def __len__(self) -> int:
        return len(self.documents.row)

    @property
    def corpus(self) -> str:
        """The name of the corpus."""
        return str(self.evidence.corpus["corpus"])

    @property
    def shards(self) -> list[Path]:
        """The shards, in the order in which they were counted."""
        return [located(shard.name) for shard in self.evidence.shards]

    @property
    def read(self) -> Ints:
        """Indices of the documents that the model read; of all documents if that is unknown."""
        every = np.arange(len(self))
        return every if self.n_read is None else every[self.n_read > 0]

    def numbers(self, place: Ints) -> Ints:
        """Indices int64[...] of documents by ``place``, int64[..., 2]: shard, number in shard."""
        first = np.searchsorted(self.documents.shard, np.arange(len(self.shards)))
        return first[place[..., 0]] + place[..., 1]

    def texts(self, documents: Ints | None = None) -> Iterator[str]:
        """The whole texts of documents (ascending indices, by default all), one at a time.

        Raises ``BadInput`` for a shard that can't be read.
        """
        indices = np.arange(len(self)) if documents is None else documents
        for k, shard in enumerate(self.shards):
            in_shard = indices[self.documents.shard[indices] == k]
            if in_shard.size:
                rows = set(self.documents.row[in_shard].tolist())
                yield from (of_row.text for of_row in texts_of(shard, self.evidence, rows))


def training_text(
    store: Store,
    corpus: str,
    model: str | Path | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> TrainingText:
    """Documents of a counted corpus, with ``n_read`` of ``model`` (a directory) if it is known.

    Raises:
        UsageProblem: no such corpus, or its documents were not kept.
        MissingComponent: the kept documents are not on this machine.
    """
    evidence = evidence_of(store, corpus)
    words = store.read("word_count", corpus=corpus)["word"].combine_chunks()
    question = Inquiry((), (), (), (), "pairs", evidence.options.window, words)
    seen = look(evidence, question, progress=progress, most_sources=ALL_SOURCES)
    text = TrainingText(evidence, seen.documents)
    return text if model is None else replace(text, n_read=_n_read(text, Path(model)))


def _n_read(text: TrainingText, model: Path) -> Ints | None:
    """Tokens that a model read of each document; ``None`` if ``trained_on`` returns ``None``.

    An n-gram model read every word once.
    """
    identity = trained_on(model, text.shards, text.evidence.form)
    if identity is None:
        return None
    if "ngram_version" in identity:
        numbered = (numbered_words([whole])[0] for whole in text.texts())
        return np.array([np.count_nonzero(words != BOS) for words in numbered], np.int64)
    read = reading(model, text.shards, text.evidence.form)
    document = text.numbers(read.place)
    times = np.broadcast_to(read.n_times[:, None], document.shape)
    return np.bincount(document.ravel(), times.ravel(), len(text)).astype(np.int64)
