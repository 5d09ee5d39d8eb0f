"""Sums over documents from which the standard errors of words' leans follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from plumbline.jobs.counting.document_words import Documents
from plumbline.jobs.evidence.sightings import (
    DocumentTable,
    Inquiry,
    Ints,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Progress = Callable[[int, int], None]
#: Two arrays float64[2, word]: the weights of a word's co-occurrences with the first and the second
#: target, and the weights of these targets' occurrences.
Weights = tuple[Floats, Floats]


def influence_weights(c: Floats, n: Floats) -> Weights:
    """Weights of co-occurrences c[2, word] and target occurrences n[2] in influences on delta."""
    signs = np.array([1.0, -1.0])
    weights = signs[:, None] / np.where(c > 0, c, np.nan)
    return weights, np.repeat((signs / n)[:, None], c.shape[1], axis=1)


@dataclass(frozen=True)
class Moments:
    """Sums over documents for every word; the standard error of its lean follows from them.

    Attributes:
        sums: float64[9, word], sums of c_f, c_m, c_f^2, c_f c_m, c_m^2, c_f n_f, c_f n_m, c_m n_f
            and c_m n_m. c_f and c_m are a document's co-occurrences of the word with the first and
            the second target, n_f and n_m the document's occurrences of these targets.
        n_documents: int64[word], documents with a co-occurrence.
        n: float64[2], sums of n_f and n_m.
        squares: float64[2, 2], sums of the products of n_f and n_m.
    """

    sums: Floats
    n_documents: Ints
    n: Floats
    squares: Floats

    @property
    def weights(self) -> Weights:
        """Weights of the influence on delta: +1 / C_f, -1 / C_m, 1 / N_f and -1 / N_m.

        NaN where a word's count is 0: the word has no lean.
        """
        return influence_weights(self.sums[:2], self.n)

    def covariance(self, a: Weights, b: Weights) -> Floats:
        """Sums of u_a u_b over these documents, float64[word].

        u is a document's influence on delta: the weighted sum of its co-occurrences minus the
        weighted sum of its occurrences of the targets, as in ``evidence.lean``.
        """
        cc, cn = self.sums[[[2, 3], [3, 4]]], self.sums[[[5, 6], [7, 8]]]
        covariance: Floats = (
            np.einsum("iw,ijw,jw->w", a[0], cc, b[0])
            - np.einsum("iw,ijw,jw->w", a[0], cn, b[1])
            - np.einsum("iw,ijw,jw->w", b[0], cn, a[1])
            + np.einsum("iw,ij,jw->w", a[1], self.squares, b[1])
        )
        return covariance


class MomentSums:
    """Sums of ``Moments`` for some words by group of documents; several threads add to them.

    Attributes:
        table, group: all documents of a corpus, and the group of each by index, such as its source;
            -1 for documents left out.
        sums, n_documents: as in ``Moments``, but [9, group, word] and [group, word].
    """

    def __init__(
        self, question: Inquiry, words: Sequence[str], table: DocumentTable, group: Ints, n: int
    ) -> None:
        self.table, self.group = table, group
        self.sums = np.zeros((9, n, len(words)))
        self.n_documents = np.zeros((n, len(words)), np.int64)
        self._question, self._lock = question, Lock()
        self._word = question.table(words).astype(np.int64)
        self._first = np.searchsorted(table.shard, np.arange(table.shard.max(initial=0) + 1))

    def add(self, shard: int, n_before: int, documents: Documents) -> tuple[Ints, Ints, Ints]:
        """Add documents, see ``read_shards``.

        Returns the rows of ``near`` that were used, with indices into ``table`` and the words.
        """
        document, word, c = near(self._question, documents)
        document, word = document + self._first[shard] + n_before, self._word[word]
        is_used = (word >= 0) & (self.group[document] >= 0)
        document, word, c = document[is_used], word[is_used], c[is_used]
        n, group = self.table.n_target[document], self.group[document]
        products = [c[:, 0], c[:, 1], c[:, 0] ** 2, c[:, 0] * c[:, 1], c[:, 1] ** 2]
        products += [c[:, i] * n[:, j] for i in range(2) for j in range(2)]
        cells, at = np.unique(group * self.sums.shape[2] + word, return_inverse=True)
        with self._lock:
            for row, product in zip(self.sums.reshape(9, -1), products, strict=True):
                row[cells] += np.bincount(at, product, cells.size)
            self.n_documents.reshape(-1)[cells] += np.bincount(at, minlength=cells.size)
        return document, word, c

    def of(self, groups: Bools, words: Ints | slice = slice(None)) -> Moments:
        """Moments of words (by index) over the documents of some groups."""
        n = self.table.n_target[(self.group >= 0) & groups[self.group]].astype(np.float64)
        sums = self.sums[:, groups][:, :, words].sum(axis=1)
        n_documents = self.n_documents[groups][:, words].sum(axis=0)
        return Moments(sums, n_documents, n.sum(axis=0), n.T @ n)


def near(question: Inquiry, documents: Documents) -> tuple[Ints, Ints, Ints]:
    """Indices of document and word, and their co-occurrences int64[n, 2] if there are any."""
    document, word, target, n = near_targets(question, documents)
    cell = document * len(question.vocabulary) + word
    both, place = np.unique(cell, return_inverse=True)
    counts = np.zeros((both.size, 2), np.int64)
    counts[place, target] = n
    return *np.divmod(both, len(question.vocabulary)), counts


def near_targets(question: Inquiry, documents: Documents) -> tuple[Ints, Ints, Ints, Ints]:
    """Co-occurrences under the rule ``pairs``: document, word, target, by index, and how many.

    One row for each document, word of the vocabulary and target of the question that co-occur.
    """
    ids, offsets, size = documents.values, documents.offsets, len(question.vocabulary)
    n_targets = len(question.targets)
    target = question.table(question.targets)[ids]
    at = np.flatnonzero(target >= 0)
    document = np.searchsorted(offsets, at, side="right") - 1
    cells = [np.empty(0, np.int64)]
    for step in question.steps:
        inside = (at + step >= offsets[document]) & (at + step < offsets[document + 1])
        here, there = at[inside], at[inside] + step
        # A pair of two occurrences of one target counts once, a word outside the vocabulary never.
        counts = (ids[there] >= 0) & ((step < 0) | (ids[there] != ids[here]))
        cell = document[inside].astype(np.int64) * size + ids[there]
        cells.append((cell * n_targets + target[here])[counts])
    cell, n = np.unique(np.concatenate(cells), return_counts=True)
    both, of_target = np.divmod(cell, n_targets)
    return *np.divmod(both, size), of_target, n
