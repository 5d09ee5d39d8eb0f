"""By document: words near the queries' words, and places of these words near the contrast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plumbline.jobs.evidence.concordance import Occurrence, snippets
from plumbline.jobs.evidence.sightings import (
    ALL_SOURCES,
    DocumentTable,
    Inquiry,
    Ints,
    Meetings,
    look,
    neighbours,
)
from plumbline.pipelines.attribution.contract import Floats, Progress, Subject

#: Characters shown of a document without a word of the query near the contrast.
_BEGINNING = 120


@dataclass(frozen=True)
class Nearby:
    """Words and contrast words near the queries' words, in each document.

    Attributes:
        question: the words of the queries, and the contrast.
        documents: all documents.
        near: int64[n, 4]: document, word (index in ``question.words``), other word less than a
            window away (index in ``question.vocabulary``), number of times.
        places: int64[n, 6]: document, word, side (0 female, 1 male), distance of the nearest target
            of that side, positions of word and target in the document's kept words.
    """

    question: Inquiry
    documents: DocumentTable
    near: Ints
    places: Ints

    def collocates(self, words: Sequence[str], scores: Floats) -> tuple[Ints, Ints, Floats]:
        """Divide documents' scores among the words near ``words``: document, other word, part.

        Parts are proportional to how often each word is near. A document's parts sum to its score.
        """
        size = len(self.question.vocabulary)
        rows = self.near[self._is_of(self.near, words)]
        cells, place = np.unique(rows[:, 0] * size + rows[:, 2], return_inverse=True)
        n = np.bincount(place, rows[:, 3], cells.size)
        document, other = np.divmod(cells, size)
        total = np.bincount(document, n, len(scores))
        return document, other, scores[document] * n / total[document]

    def texts(
        self, words: Sequence[str], documents: Ints, scores: Floats, subject: Subject
    ) -> list[dict[str, Any]]:
        """``text_before``, ``keyword`` and ``text_after`` of each document.

        The keyword is the occurrence of ``words`` nearest to a contrast word of the score's side,
        or else of the other side. Without a keyword, ``text_after`` is the document's beginning.
        """
        rows = self.places[self._is_of(self.places, words)]
        quoted: dict[int, Occurrence] = {}
        table = self.documents
        for document in documents.tolist():
            near = rows[rows[:, 0] == document]
            if near.size:
                other_side = near[:, 2] != (scores[document] < 0)
                _, word, side, _, *at = near[np.lexsort((near[:, 3], other_side))[0]].tolist()
                place = int(table.shard[document]), int(table.row[document])
                quoted[document] = Occurrence(0, word, side, *place, int(table.mark[document]), *at)
        texts = snippets(subject.text.evidence, self.question, list(quoted.values()))
        columns = ("text_before", "keyword", "text_after")
        by_document: dict[int, dict[str, Any]] = {
            d: {c: text[c] for c in columns} for d, text in zip(quoted, texts, strict=True)
        }
        others = np.array(sorted(set(documents.tolist()) - set(by_document)), np.int64)
        for document, text in zip(others.tolist(), subject.text.texts(others), strict=True):
            by_document[document] = dict.fromkeys(columns, "") | {
                "text_after": " ".join(text[: 2 * _BEGINNING].split())[:_BEGINNING]
            }
        return [by_document[document] for document in documents.tolist()]

    def _is_of(self, rows: Ints, words: Sequence[str]) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = np.isin(np.array(self.question.words)[rows[:, 1]], list(words))
        return mask


def nearby(subject: Subject, words: Sequence[str], progress: Progress) -> Nearby:
    """Find the words and the words near them in one pass over the documents."""
    table, lock, question = subject.text.documents, Lock(), subject.inquiry(words)
    first = np.searchsorted(table.shard, np.arange(len(subject.text.shards) + 1))
    near, places = [np.empty((0, 4), np.int64)], [np.empty((0, 6), np.int64)]

    def watch(shard: int, met: Meetings, _: NDArray[np.uint64]) -> None:
        rows = table.row[first[shard] : first[shard + 1]]
        number = first[shard] + np.searchsorted(rows, met.documents.row)
        new_rows = _near(question, met, number), _places(question, met, number)
        with lock:
            near.append(new_rows[0])
            places.append(new_rows[1])

    look(subject.text.evidence, question, watch, progress, most_sources=ALL_SOURCES)
    return Nearby(question, table, np.concatenate(near), np.concatenate(places))


def _near(question: Inquiry, met: Meetings, number: Ints) -> Ints:
    """Rows of ``Nearby.near``; like `why`, without targets. ``number``: indices of documents."""
    occurrence, other = neighbours(question, met, np.unique(met.occurrence))
    rows = np.column_stack([number[met.document[occurrence]], met.word[occurrence], other])
    return np.column_stack(np.unique(rows, axis=0, return_counts=True))


def _places(question: Inquiry, met: Meetings, number: Ints) -> Ints:
    """Rows of ``Nearby.places``: the nearest occurrence for each document, word and side."""
    here, there = met.at[met.occurrence], met.target_at
    document, word = met.document[met.occurrence], met.word[met.occurrence]
    side = (~np.isin(question.targets, question.female)[met.target]).astype(np.int64)
    distance = np.abs(there - here)
    order = np.lexsort((distance, side, word, document))
    _, first = np.unique(np.stack([document, word, side], axis=1)[order], axis=0, return_index=True)
    nearest = order[first]
    positions = (met.documents.places(x[nearest], document[nearest]) for x in (here, there))
    return np.column_stack(
        [number[document[nearest]], word[nearest], side[nearest], distance[nearest], *positions]
    )
