"""Changes of words' leans between two texts: corpora, or sources of corpora."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plumbline.jobs.association.lean_intervals import adjusted
from plumbline.jobs.association.target_lists import targets_of
from plumbline.jobs.corpus_lookup import corpus_contrast, corpus_lists, corpus_of, sole_writer
from plumbline.jobs.counting.document_words import Documents, Evidence, evidence_of
from plumbline.jobs.evidence.sightings import (
    ALL_SOURCES,
    DocumentTable,
    Inquiry,
    Ints,
    look,
    read_shards,
)
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Progress = Callable[[int, int], None]
#: Two arrays float64[2, word]: the weights of a word's co-occurrences with the first and the second
#: target, and the weights of these targets' occurrences.
Weights = tuple[Floats, Floats]


@dataclass(frozen=True)
class ComparedText:
    """A text to compare: a corpus, or one source of a corpus."""

    label: str
    evidence: Evidence
    source: str | None


def subject(store: Store, label: str) -> ComparedText:
    """The text that ``label`` names, ``CORPUS`` or ``CORPUS:SOURCE``; ``CORPUS`` may hold a ``:``.

    Raises:
        UsageProblem: there is no such corpus, or its documents were not kept.
        MissingComponent: its documents are not on this machine.
    """
    corpora = set(store.read("corpus")["corpus"].to_pylist())
    corpus = corpus_of(label, corpora)
    source = label[len(corpus) + 1 :]
    return ComparedText(label, evidence_of(store, corpus if source else label), source or None)


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


@dataclass(frozen=True)
class WordChanges:
    """Outcome: numbers of documents in each text and in both, numbers of words, and rows.

    ``n_words``: words of the two corpora. ``n_near``: words with a co-occurrence on each
    side in both texts. Neither counts the two words of the contrast.
    """

    n_documents_a: int
    n_documents_b: int
    n_documents_both: int
    n_words: int
    n_near: int
    rows: pa.Table


def compare(
    store: Store,
    a: str,
    b: str,
    run_id: str,
    contrast: str = "she/he",
    min_pairs: int = 5,
    progress: Progress = lambda *_: None,
) -> WordChanges:
    """Compare the leans of all words in two texts; writes and returns ``word_change``.

    The change is delta in b minus delta in a. A word has a row if, in both texts, it has
    ``min_pairs`` co-occurrences on each side, and co-occurs in two documents. The contrast's own
    words have no row. The sampling units are documents (see ``evidence.lean``). A document with the
    same kept words in both texts is one unit, whose influences on the two deltas cancel: a corpus
    and its filtered copy differ only by what was left out. The interval uses Student's t; q is the
    p-value of no change, adjusted for all words compared (Benjamini and Hochberg 1995).

    Raises:
        UsageProblem: no such corpus or source, a contrast that is not a pair of both word lists,
            the same text twice, or texts counted by the rule ``windows`` or by different windows.
    """
    texts = subject(store, a), subject(store, b)
    contrast = corpus_contrast(store, texts[0].evidence.corpus["corpus"], contrast)
    question = question_of(store, texts, contrast)
    if a == b:
        raise UsageProblem(f"texts {a!r}", "are the same", "name two")
    with ExitStack() as locks:
        for name in sorted({text.evidence.corpus["corpus"] for text in texts}):
            locks.enter_context(sole_writer(store, name))
        seen = [
            look(text.evidence, question, progress=progress, most_sources=ALL_SOURCES)
            for text in texts
        ]
        tables = [sightings.documents for sightings in seen]
        chosen = [_of_source(t, table) for t, table in zip(texts, tables, strict=True)]
        shared = _shared(tables, chosen)
        sums = []
        for text, table, is_chosen, is_shared in zip(texts, tables, chosen, shared, strict=True):
            group = np.where(is_chosen, is_shared.astype(np.int64), -1)
            sums.append(MomentSums(question, question.vocabulary.to_pylist(), table, group, 2))
            read_shards(text.evidence, question, sums[-1].add, progress)
        moments_a, moments_b = (of_text.of(np.ones(2, np.bool_)) for of_text in sums)
        both = sums[0].of(np.array([False, True]))
        rows = _rows(question, moments_a, moments_b, both, min_pairs)
        where = {"text_a": a, "text_b": b}
        constant = {**where, "contrast": contrast, "run_id": run_id}
        for name, value in constant.items():
            rows = rows.append_column(name, pa.array([value] * rows.num_rows, pa.string()))
        store.replace("word_change", rows, where, run_id)
    n_a, n_b, n_both = (int(mask.sum()) for mask in (*chosen, shared[0]))
    near = np.minimum(moments_a.sums[:2], moments_b.sums[:2]).min(axis=0) > 0
    others = ~_of_contrast(question)
    n_words, n_near = int(others.sum()), int((near & others).sum())
    return WordChanges(n_a, n_b, n_both, n_words, n_near, rows)


def question_of(store: Store, texts: Sequence[ComparedText], contrast: str) -> Inquiry:
    """The targets and vocabulary of a comparison. Raises ``UsageProblem`` as ``compare``."""
    first, _, second = contrast.partition("/")
    for text in texts:
        listed = targets_of(corpus_lists(store, text.evidence.corpus))
        if first == second or not {first, second} <= set(listed):
            fix = "give a pair of words that both were counted with, such as she/he"
            raise UsageProblem(f"contrast {contrast!r}", f"is not a pair of {text.label}", fix)
        if text.evidence.options.rule != "pairs":
            fix = "count it with --rule pairs"
            raise UsageProblem(f"text {text.label}", "was counted by the rule windows", fix)
    options = texts[0].evidence.options
    if any(text.evidence.options.window != options.window for text in texts):
        problem = "were counted with different windows"
        raise UsageProblem(f"texts {' and '.join(text.label for text in texts)}", problem)
    names = dict.fromkeys(text.evidence.corpus["corpus"] for text in texts)
    words = [store.read("word_count", corpus=name)["word"] for name in names]
    vocabulary = pa.chunked_array([c for w in words for c in w.chunks], pa.string()).unique()
    vocabulary = vocabulary.take(pc.sort_indices(vocabulary))
    return Inquiry((), (first,), (second,), (), "pairs", options.window, vocabulary)


def _of_source(text: ComparedText, table: DocumentTable) -> Bools:
    if text.source is None:
        return np.ones(len(table.row), np.bool_)
    if text.source not in table.sources:
        name = text.evidence.corpus["corpus"]
        fix = f"it has {', '.join(table.sources[:8])}"
        raise UsageProblem(f"source {text.source!r}", f"is not one of corpus {name}", fix)
    is_chosen: Bools = table.source == table.sources.index(text.source)
    return is_chosen


def _shared(tables: list[DocumentTable], chosen: list[Bools]) -> tuple[Bools, Bools]:
    """Masks of each text's documents that the other text has too, matched one to one."""
    masks = [is_chosen.copy() for is_chosen in chosen]
    marks = (table.mark[is_chosen] for table, is_chosen in zip(tables, chosen, strict=True))
    for mask, both in zip(masks, matched(*marks), strict=True):
        mask[mask] = both
    return masks[0], masks[1]


def matched(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> tuple[Bools, Bools]:
    """Masks of the marks in each array that the other has too, matched one to one in order.

    >>> matched(np.array([7, 7, 5], np.uint64), np.array([7, 9], np.uint64))[0].tolist()
    [True, False, False]
    """
    numbered = []
    for marks in (a, b):
        order = np.argsort(marks, kind="stable")
        _, first, n = np.unique(marks[order], return_index=True, return_counts=True)
        pairs = np.empty(marks.size, [("mark", np.uint64), ("copy", np.int64)])
        pairs["mark"] = marks[order]
        pairs["copy"] = np.arange(marks.size) - np.repeat(first, n)
        numbered.append((order, pairs))
    _, *places = np.intersect1d(numbered[0][1], numbered[1][1], return_indices=True)
    masks = [np.zeros(marks.size, np.bool_) for marks in (a, b)]
    for mask, (order, _), at in zip(masks, numbered, places, strict=True):
        mask[order[at]] = True
    return masks[0], masks[1]


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


def tested(change: Floats, variance: Floats, df: Ints) -> dict[str, Floats]:
    """Columns of changes: standard error, interval, p (no change, Student's t), adjusted p.

    All are NaN where the change and its variance are.
    """
    from scipy.special import stdtr, stdtrit

    se = np.sqrt(variance)
    half = stdtrit(df, 0.975) * se
    p = 2 * stdtr(df, -np.where(se == 0, 0, np.abs(change) / np.where(se == 0, 1, se)))
    return {
        "change_nats": change,
        "change_nats_se": se,
        "change_nats_low": change - half,
        "change_nats_high": change + half,
        "p": p,
        "q": adjusted(p),
    }


def _of_contrast(question: Inquiry) -> Bools:
    words: Bools = question.table(question.targets)[:-1] >= 0
    return words


def _rows(question: Inquiry, a: Moments, b: Moments, both: Moments, min_pairs: int) -> pa.Table:
    enough = np.minimum(a.sums[:2].min(axis=0), b.sums[:2].min(axis=0)) >= max(min_pairs, 1)
    df = np.minimum(a.n_documents, b.n_documents) - 1
    words = np.flatnonzero(enough & (df > 0) & ~_of_contrast(question))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [x.n[0] / x.n[1] for x in (a, b)]
        deltas = [np.log(x.sums[0] / x.sums[1]) - np.log(x.n[0] / x.n[1]) for x in (a, b)]
        weights_a, weights_b = a.weights, b.weights
        variance = a.covariance(weights_a, weights_a) + b.covariance(weights_b, weights_b)
        variance -= 2 * both.covariance(weights_a, weights_b)
    change = deltas[1][words] - deltas[0][words]
    rows = pa.table(
        {
            "word": question.vocabulary.take(pa.array(words)),
            **{
                f"n_pair_{side}_{name}": x.sums[k][words].astype(np.int64)
                for name, x in (("a", a), ("b", b))
                for k, side in enumerate("fm")
            },
            "n_documents_a": a.n_documents[words],
            "n_documents_b": b.n_documents[words],
            "delta_a_nats": deltas[0][words],
            "delta_b_nats": deltas[1][words],
            "base_change_nats": np.full(words.size, np.log(ratios[0] / ratios[1])),
            **tested(change, np.maximum(variance[words], 0), df[words]),
        }
    )
    return rows.take(np.lexsort((-np.abs(change), rows["q"].to_numpy())))
