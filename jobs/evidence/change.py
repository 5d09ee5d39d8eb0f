"""Which words lean otherwise in another text: two corpora, or sources of them, over documents."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plumbline.jobs.association.bounds import adjusted
from plumbline.jobs.corpus_lookup import corpus_contrast
from plumbline.jobs.counting.kept_documents import Documents, Evidence, evidence_of
from plumbline.jobs.counting.writer import sole_writer
from plumbline.jobs.evidence.sightings import DocumentTable, Inquiry, Ints, look
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class ComparedText:
    """A text to compare: a corpus, or the documents of one source of it."""

    label: str
    evidence: Evidence
    source: str | None


def subject(store: Store, label: str) -> ComparedText:
    """The text that ``CORPUS`` or ``CORPUS:SOURCE`` names; a corpus of that very name comes first.

    Raises:
        UsageProblem: there is no such corpus, or its documents were not kept.
        MissingComponent: they are not on this machine.
    """
    known = set(store.read("corpus")["corpus"].to_pylist())
    corpus, _, source = label.partition(":")
    if label in known or not source:
        return ComparedText(label, evidence_of(store, label), None)
    return ComparedText(label, evidence_of(store, corpus), source)


@dataclass(frozen=True)
class Moments:
    """Sums over documents for every word, from which errors of its lean follow.

    Attributes:
        sums: float64[9, word]: of c_f, c_m, c_f^2, c_f c_m, c_m^2, c_f n_f, c_f n_m, c_m n_f and
            c_m n_m, with c_f and c_m a document's co-occurrences of the word with the female and
            the male target and n_f and n_m its occurrences of these.
        n_documents: int64[word], documents with a co-occurrence.
        n: float64[2], sums of n_f and n_m.
        squares: float64[2, 2], sums of their products.
    """

    sums: Floats
    n_documents: Ints
    n: Floats
    squares: Floats

    def covariance(self, a: Moments, b: Moments) -> Floats:
        """Sums over these documents of the influences u_a u_b, float64[word].

        u_a = c_f / C_f - c_m / C_m - n_f / N_f + n_m / N_m with the capitals those of ``a``: what a
        document adds to delta, as in ``evidence.lean``.
        """
        # A word without a count has no lean; its figures are not used.
        (fa, ma), (fb, mb) = (1 / np.where(x.sums[:2] > 0, x.sums[:2], np.nan) for x in (a, b))
        (na, oa), (nb, ob) = (1 / x.n for x in (a, b))
        _, _, ff, fm, mm, fnf, fnm, mnf, mnm = self.sums
        near = ff * fa * fb - fm * (fa * mb + ma * fb) + mm * ma * mb
        # c of a with n of b, and the other way round.
        cross = (fnf * nb - fnm * ob) * fa - (mnf * nb - mnm * ob) * ma
        cross = cross + (fnf * na - fnm * oa) * fb - (mnf * na - mnm * oa) * mb
        totals = self.squares[0, 0] * na * nb + self.squares[1, 1] * oa * ob
        totals -= self.squares[0, 1] * (na * ob + oa * nb)
        covariance: Floats = near - cross + totals
        return covariance


@dataclass(frozen=True)
class Change:
    """What was compared: documents of each text and of both, and the rows of ``word_change``."""

    n_documents_a: int
    n_documents_b: int
    n_documents_both: int
    rows: pa.Table


def compare(
    store: Store,
    a: str,
    b: str,
    run_id: str,
    contrast: str = "she/he",
    min_pairs: int = 5,
    progress: Progress = lambda *_: None,
) -> Change:
    """Compare the leans of all words in two texts; writes and returns ``word_change``.

    change = delta in b - delta in a for every word with ``min_pairs`` co-occurrences on each side
    in both, but for the two of the contrast. Documents are drawn, not words (see
    ``evidence.lean``), and a document with the same kept words in both texts is one document: what
    it adds to both deltas cancels, so a corpus and a filtered copy of it are compared by what was
    left out. The interval takes Student's t; q
    is the p of no change, adjusted for all words compared (Benjamini and Hochberg 1995).

    Raises:
        UsageProblem: no such corpus or source, a contrast that is not a pair of both word lists,
            the same text twice, or texts counted by the rule ``windows`` or by different windows.
    """
    texts = subject(store, a), subject(store, b)
    contrast = corpus_contrast(store, texts[0].evidence.corpus["corpus"], contrast)
    question = _question(store, texts, contrast)
    if a == b:
        raise UsageProblem(f"texts {a!r}", "are the same", "name two")
    with ExitStack() as held:
        for name in sorted({text.evidence.corpus["corpus"] for text in texts}):
            held.enter_context(sole_writer(store, name))
        tables = [look(text.evidence, question, progress=progress).documents for text in texts]
        chosen = [_of_source(t, table) for t, table in zip(texts, tables, strict=True)]
        shared = _shared(tables, chosen)
        whole, both = [], []
        for text, table, own, common in zip(texts, tables, chosen, shared, strict=True):
            found = moments(text.evidence, question, table, (own, common), progress)
            whole.append(found[0])
            both.append(found[1])
        rows = _rows(question, whole[0], whole[1], both[0], min_pairs)
        where = {"text_a": a, "text_b": b}
        constant = {**where, "contrast": contrast, "run_id": run_id}
        for name, value in constant.items():
            rows = rows.append_column(name, pa.array([value] * rows.num_rows, pa.string()))
        store.replace("word_change", rows, where, run_id)
    n_a, n_b, n_both = (int(mask.sum()) for mask in (*chosen, shared[0]))
    return Change(n_a, n_b, n_both, rows)


def _question(store: Store, texts: tuple[ComparedText, ComparedText], contrast: str) -> Inquiry:
    female, _, male = contrast.partition("/")
    for text in texts:
        listed = text.evidence.options.targets
        if not male or female not in listed or male not in listed:
            fix = "give a pair of words that both were counted with, such as she/he"
            raise UsageProblem(f"contrast {contrast!r}", f"is not a pair of {text.label}", fix)
        if text.evidence.options.rule != "pairs":
            fix = "count it with --rule pairs"
            raise UsageProblem(f"text {text.label}", "was counted by the rule windows", fix)
    options = texts[0].evidence.options
    if options.window != texts[1].evidence.options.window:
        problem = "were counted with different windows"
        raise UsageProblem(f"texts {texts[0].label} and {texts[1].label}", problem)
    names = dict.fromkeys(text.evidence.corpus["corpus"] for text in texts)
    words = [store.read("word_count", corpus=name)["word"] for name in names]
    vocabulary = pa.chunked_array([c for w in words for c in w.chunks], pa.string()).unique()
    vocabulary = vocabulary.take(pc.sort_indices(vocabulary))
    return Inquiry((), (female,), (male,), (), "pairs", options.window, vocabulary)


def _of_source(text: ComparedText, table: DocumentTable) -> NDArray[np.bool_]:
    if text.source is None:
        return np.ones(len(table.row), np.bool_)
    if text.source not in table.sources:
        name = text.evidence.corpus["corpus"]
        fix = f"it has {', '.join(table.sources[:8])}"
        raise UsageProblem(f"source {text.source!r}", f"is not one of corpus {name}", fix)
    own: NDArray[np.bool_] = table.source == table.sources.index(text.source)
    return own


def _shared(
    tables: list[DocumentTable], chosen: list[NDArray[np.bool_]]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which documents of each stand in the other text, too: copies one for one."""
    numbered = []
    for table, own in zip(tables, chosen, strict=True):
        index = np.flatnonzero(own)
        order = index[np.argsort(table.mark[index], kind="stable")]
        mark = table.mark[order]
        _, first, n = np.unique(mark, return_index=True, return_counts=True)
        copy = np.arange(mark.size) - np.repeat(first, n)
        pairs = np.empty(mark.size, [("mark", np.uint64), ("copy", np.int64)])
        pairs["mark"], pairs["copy"] = mark, copy
        numbered.append((order, pairs))
    _, at_a, at_b = np.intersect1d(numbered[0][1], numbered[1][1], return_indices=True)
    masks = []
    for table, (order, _), at in zip(tables, numbered, (at_a, at_b), strict=True):
        mask = np.zeros(len(table.row), np.bool_)
        mask[order[at]] = True
        masks.append(mask)
    return masks[0], masks[1]


def moments(
    evidence: Evidence,
    question: Inquiry,
    table: DocumentTable,
    masks: tuple[NDArray[np.bool_], ...],
    progress: Progress = lambda *_: None,
) -> list[Moments]:
    """Moments over the documents of each mask, under the rule ``pairs``."""
    size = len(question.vocabulary)
    sums = [np.zeros((9, size)) for _ in masks]
    n_documents = [np.zeros(size, np.int64) for _ in masks]
    first = np.searchsorted(table.shard, np.arange(len(evidence.shards)))
    for index, shard in enumerate(evidence.shards):
        start = int(first[index])
        for documents in evidence.documents(shard, question.ids):
            document, word, c = near(question, documents)
            document = document + start
            n = table.n_target[document]
            products = [c[:, 0], c[:, 1], c[:, 0] ** 2, c[:, 0] * c[:, 1], c[:, 1] ** 2]
            products += [c[:, i] * n[:, j] for i in range(2) for j in range(2)]
            for k, mask in enumerate(masks):
                inside = mask[document]
                n_documents[k] += np.bincount(word[inside], minlength=size)
                for row, product in zip(sums[k], products, strict=True):
                    row += np.bincount(word[inside], product[inside], size)
            start += len(documents.row)
        progress(index + 1, len(evidence.shards))
    found = []
    for k, mask in enumerate(masks):
        own: Floats = table.n_target[mask].astype(np.float64)
        squares: Floats = own.T @ own
        found.append(Moments(sums[k], n_documents[k], own.sum(axis=0), squares))
    return found


def near(question: Inquiry, documents: Documents) -> tuple[Ints, Ints, Ints]:
    """Co-occurrences of every word of every document: document, word, int64[n, 2] counts."""
    document, word, target, n = near_targets(question, documents)
    cell = document * len(question.vocabulary) + word
    both, place = np.unique(cell, return_inverse=True)
    counts = np.zeros((both.size, 2), np.int64)
    counts[place, target] = n
    return *np.divmod(both, len(question.vocabulary)), counts


def near_targets(question: Inquiry, documents: Documents) -> tuple[Ints, Ints, Ints, Ints]:
    """Co-occurrences under the rule ``pairs``: document, word, target, by index, and how many.

    Every document, word of the vocabulary and target of the question that meet are there once.
    """
    ids, offsets, size = documents.values, documents.offsets, len(question.vocabulary)
    n_targets = len(question.targets)
    target = question.table(question.targets)[ids]
    at = np.flatnonzero(target >= 0)
    document = np.searchsorted(offsets, at, side="right") - 1
    cells = [np.empty(0, np.int64)]
    for step in (*range(1 - question.window, 0), *range(1, question.window)):
        inside = (at + step >= offsets[document]) & (at + step < offsets[document + 1])
        here, there = at[inside], at[inside] + step
        # A target meets each other of its kind once; words that both corpora left out don't count.
        good = (ids[there] >= 0) & ((step < 0) | (ids[there] != ids[here]))
        cell = document[inside].astype(np.int64) * size + ids[there]
        cells.append((cell * n_targets + target[here])[good])
    cell, n = np.unique(np.concatenate(cells), return_counts=True)
    both, of_target = np.divmod(cell, n_targets)
    return *np.divmod(both, size), of_target, n


def _rows(question: Inquiry, a: Moments, b: Moments, both: Moments, min_pairs: int) -> pa.Table:
    enough = np.minimum(a.sums[:2].min(axis=0), b.sums[:2].min(axis=0)) >= max(min_pairs, 1)
    df = np.minimum(a.n_documents, b.n_documents) - 1
    of_contrast = question.table(question.targets)[:-1] >= 0
    words = np.flatnonzero(enough & (df > 0) & ~of_contrast)
    ratios = [x.n[0] / x.n[1] for x in (a, b)]
    with np.errstate(divide="ignore", invalid="ignore"):
        deltas = [np.log(x.sums[0] / x.sums[1]) - np.log(x.n[0] / x.n[1]) for x in (a, b)]
        variance = a.covariance(a, a) + b.covariance(b, b) - 2 * both.covariance(a, b)
        se = np.sqrt(np.maximum(variance, 0))[words]
        change = (deltas[1] - deltas[0])[words]
        statistic = np.where(se > 0, np.abs(change) / se, 0)
    from scipy.special import stdtr, stdtrit

    p = 2 * stdtr(df[words], -statistic)
    half = stdtrit(df[words], 0.975) * se
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
            "change_nats": change,
            "base_change_nats": np.full(words.size, np.log(ratios[0] / ratios[1])),
            "change_nats_se": se,
            "change_nats_low": change - half,
            "change_nats_high": change + half,
            "p": p,
            "q": adjusted(p),
        }
    )
    return rows.take(np.lexsort((-np.abs(change), rows["q"].to_numpy())))
