"""Leans of the most frequent words of a corpus, thousands at once, by sums over its sources.

``explanation.explain`` stores a row for each word in a document: too many for thousands of words.
Their leans, intervals and sources follow from sums over documents (``Moments``), which one
pass computes for all words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.jobs.association.target_lists import targets_of
from plumbline.jobs.corpus_lookup import corpus_contrast, corpus_lists, writes_corpus
from plumbline.jobs.counting.document_words import Documents, Evidence, evidence_of
from plumbline.jobs.evidence.concordance import OccurrenceSample
from plumbline.jobs.evidence.duplicates import OFTEN, number_of_copies
from plumbline.jobs.evidence.explanation import (
    Sampling,
    add_association,
    check,
    replace_words,
    snippet_rows,
    widest_clusters,
)
from plumbline.jobs.evidence.lean import Leans, Row, lean_tables, leans
from plumbline.jobs.evidence.moments import Bools, Floats, MomentSums
from plumbline.jobs.evidence.sightings import (
    DocumentTable,
    Inquiry,
    Ints,
    document_marks,
    look,
    meetings,
    read_shards,
)
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.run_records import recorded
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.wordlists import WordPair

#: Greatest number of cells (word, source); the sums take a hundred bytes per cell.
MOST_CELLS = 4_000_000


@dataclass(frozen=True)
class Surveyed:
    """Numbers of words that got a lean, that got sentences, and that already had a lean."""

    n_words: int
    n_with_sentences: int
    n_known: int


@writes_corpus
def survey(
    store: Store,
    corpus: str,
    top: int,
    contrast: str = "she/he",
    sampling: Sampling | None = None,
    clusters: str | None = None,
    n_with_sentences: int | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Surveyed:
    """Write the leans of a corpus's most frequent words, and sentences with them.

    The rows of ``word_evidence``, ``word_source`` and ``word_snippet`` are computed as in
    ``explanation.explain``; ``word_copies`` and ``word_collocate`` get none. A word keeps its lean
    over these clusters and its sentences of this sampling, if it has them.

    Args:
        top: number of words; equally frequent words are taken in alphabetical order.
        n_with_sentences: number of these words that get sentences; all by default.
        progress: called with (shards done, shards); a shard counts twice, once for its words and
            once for its sentences.

    Raises:
        UsageProblem: as ``explanation.explain``; or the contrast is not a pair, or the corpus was
            counted by the rule ``windows`` or has too many sources.
    """
    evidence, sampling = evidence_of(store, corpus), sampling or Sampling()
    contrast = corpus_contrast(store, corpus, contrast)
    counts = store.read("word_count", corpus=corpus)
    order = [("n_word", "descending"), ("word", "ascending")]
    words = counts.sort_by(order)["word"][:top].to_pylist()
    targets = targets_of(corpus_lists(store, evidence.corpus))
    question = _question(evidence, contrast, counts, targets)
    clusters = clusters or widest_clusters(evidence)
    check(question, contrast, sampling, clusters)
    chosen = words[: len(words) if n_with_sentences is None else n_with_sentences]
    same = (pc.field("contrast") == contrast) & (pc.field("clusters") == clusters)
    answered = store.read("word_evidence", same, corpus=corpus)
    new = _without(words, set(answered["word"].to_pylist()))
    to_quote = _without(chosen, _quoted(store, corpus, contrast, sampling)) if sampling.n else []
    if not new and not to_quote:
        return Surveyed(0, 0, len(words))
    config = {"corpus": corpus, "top": top, "contrast": contrast, "clusters": clusters}
    config["n_with_sentences"] = len(chosen)
    with recorded(store, "why", {**config, **vars(sampling)}) as run_id:
        n_shards = len(evidence.shards)
        documents = look(evidence, question).documents
        sums = _SourceSums(replace(question, words=tuple(new)), documents)
        quoting = replace(question, words=tuple(to_quote))
        sample = OccurrenceSample(quoting, sampling.n, sampling.seed, sampling.targets)

        def read(shard: int, n_before: int, batch: Documents) -> None:
            sums.add(shard, n_before, batch)
            if to_quote:
                marks = document_marks(batch, quoting.keys)
                sample.offer(shard, meetings(quoting, batch), marks)

        read_shards(evidence, question, read, lambda k, _: progress(k, 2 * n_shards))
        n_word = counts["n_word"].to_numpy()
        rows = sums.rows(clusters)
        add_association(store, evidence, contrast, n_word, rows["word_evidence"])
        quoted = snippet_rows(
            evidence,
            quoting,
            documents,
            sample.occurrences(),
            sampling,
            lambda k, _: progress(n_shards + k, 2 * n_shards),
        )
        rows["word_snippet"] = [{"word": to_quote[o.word], **row} for o, row in quoted]
        key = {"corpus": corpus, "contrast": contrast, "run_id": run_id}
        with store.together(run_id, "why"):
            for name, table_rows in rows.items():
                words_of = to_quote if name == "word_snippet" else new
                new_rows = [{**key, **row} for row in table_rows]
                replace_words(store, corpus, contrast, words_of, new_rows, name, run_id)
    return Surveyed(len(new), len(to_quote), len(words) - len(new))


def _question(
    evidence: Evidence, contrast: str, counts: pa.Table, targets: tuple[str, ...]
) -> Inquiry:
    options = evidence.options
    first, _, second = contrast.partition("/")
    if first == second or not {first, second} <= set(targets):
        fix = "give a pair of words that the corpus was counted with, such as she/he"
        raise UsageProblem(f"contrast {contrast!r}", "is not a pair of counted words", fix)
    if options.rule != "pairs":
        fix = "name the words, or count it with --rule pairs"
        raise UsageProblem(f"corpus {evidence.corpus['corpus']!r}", "was counted by windows", fix)
    vocabulary = counts["word"].combine_chunks()
    rest = targets, options.rule, options.window, vocabulary
    return Inquiry((), (first,), (second,), *rest)


def _without(words: Sequence[str], known: set[str]) -> list[str]:
    return [word for word in words if word not in known]


def _quoted(store: Store, corpus: str, contrast: str, sampling: Sampling) -> set[str]:
    """Words that have sentences of this sampling, and words without an occurrence to sample."""
    rows = store.read("word_evidence", pc.field("contrast") == contrast, corpus=corpus)
    has_none = pc.and_(pc.equal(rows["n_pair_f"], 0), pc.equal(rows["n_pair_m"], 0))
    never = set(rows.filter(has_none)["word"].to_pylist())
    runs = store.read("run").to_pylist()
    run_ids = [r["run_id"] for r in runs if r["command"] == "why" and _draws(r, sampling)]
    drawn = store.read("word_snippet", pc.field("contrast") == contrast, corpus=corpus)
    same = drawn.filter(pc.is_in(drawn["run_id"], pa.array(run_ids, pa.string())))
    return never | set(pc.unique(same["word"]).to_pylist())


def _draws(run: Row, sampling: Sampling) -> bool:
    """True if a run of ``why`` drew what this sampling draws; a larger sample begins with it."""
    config = json.loads(run["config"])
    same = (config["seed"], tuple(config["targets"])) == (sampling.seed, sampling.targets)
    return bool(same and config["n"] >= sampling.n)


class _SourceSums(MomentSums):
    """Sums over the documents of each source, for each word of a question.

    Attributes:
        n_word: int64[source, word], occurrences.
        n_target: int64[source, target], occurrences of the targets.
        n_copied: int64[2, word], co-occurrences in documents that the corpus holds more than once,
            and more than ``OFTEN`` times.
    """

    def __init__(self, question: Inquiry, table: DocumentTable) -> None:
        n_words, n_sources = len(question.words), len(table.sources)
        if n_words * n_sources > MOST_CELLS:
            problem = f"are too many for {n_sources:,} sources"
            raise UsageProblem(f"{n_words:,} words", problem, f"--top {MOST_CELLS // n_sources}")
        super().__init__(question, question.words, table, table.source, n_sources)
        self.n_word = np.zeros((n_sources, n_words), np.int64)
        columns = (np.bincount(table.source, n, n_sources) for n in table.n_target.T)
        self.n_target = np.stack(list(columns), axis=1)
        self.n_copied = np.zeros((2, n_words), np.int64)
        self._n_copies = number_of_copies(table)

    def add(self, shard: int, n_before: int, documents: Documents) -> tuple[Ints, Ints, Ints]:
        """Add some documents, see ``read_shards``."""
        document, word, c = super().add(shard, n_before, documents)
        start, n_words = self._first[shard] + n_before, len(self._question.words)
        source = self.table.source[start : start + len(documents.row)][documents.document]
        held = self._word[documents.values]
        cells, n_word = np.unique((source * n_words + held)[held >= 0], return_counts=True)
        copies, n_near = self._n_copies[document], c.sum(axis=1)
        with self._lock:
            self.n_word.reshape(-1)[cells] += n_word
            for n_copied, least in zip(self.n_copied, (1, OFTEN), strict=True):
                np.add.at(n_copied, word[copies > least], n_near[copies > least])
        return document, word, c

    def rows(self, clusters: str) -> dict[str, list[Row]]:
        """The rows of ``word_evidence`` and ``word_source``, without constant columns."""
        sources, question = self.table.sources, self._question
        contrast = [WordPair(question.female[0], question.male[0])]

        def leans_of(words: Ints, keep: Bools, drawn: str) -> Leans:
            return leans(_SourceCoOccurrences(self, words, keep, drawn), question, contrast)

        rows = lean_tables(question, sources, self.n_word > 0, leans_of, clusters)
        for row, copied in zip(rows["word_evidence"], self.n_copied.T, strict=True):
            n = row["n_pair_f"] + row["n_pair_m"]
            for name, n_copied in zip(("share_copied", "share_often"), copied, strict=True):
                row[name] = n_copied / n if n else None
        return rows


class _SourceCoOccurrences:
    """``CoOccurrences`` of some words in the documents of some sources."""

    def __init__(self, whole: _SourceSums, words: Ints, keep: Bools, drawn: str) -> None:
        self._own, self._by_source = whole.of(keep, words), drawn == "source"
        self._near, self._target = whole.sums[:2, keep][:, :, words], whole.n_target[keep]
        self._n_documents = whole.n_documents[keep][:, words]
        self.n_word = whole.n_word[keep][:, words].sum(axis=0)
        self.n_near = self._own.sums[:2].T.astype(np.int64)
        self.n_target = self._own.n.astype(np.int64)
        self.n_drawn = int(keep.sum() if self._by_source else keep[whole.group].sum())

    def influence(self, near: Floats, target: Floats, counts: Bools) -> tuple[Floats, Ints, Ints]:
        """See ``CoOccurrences``; with one pair all co-occurrences count."""
        n_documents = self._own.n_documents
        if self._by_source:
            of_source = np.einsum("tsw,wt->sw", self._near, near) - self._target @ target.T
            n_sources = (self._n_documents > 0).sum(axis=0)
            return np.square(of_source).sum(axis=0), n_documents, n_sources
        squares = self._own.covariance((near.T, target.T), (near.T, target.T))
        return np.maximum(squares, 0), n_documents, n_documents
