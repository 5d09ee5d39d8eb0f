"""Explanations of words' leans: tables computed from a corpus's documents."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray

from plumbline.jobs.association.associations import contrasts_of, sides_of
from plumbline.jobs.association.measures import summed_list
from plumbline.jobs.association.target_lists import targets_of
from plumbline.jobs.corpus_lookup import corpus_contrast, corpus_lists, writes_corpus
from plumbline.jobs.counting.document_words import FEWEST_SOURCES, Evidence, evidence_of
from plumbline.jobs.evidence.collocates import Contexts, collocates, contexts, put_together
from plumbline.jobs.evidence.concordance import (
    SIDES,
    Occurrence,
    OccurrenceSample,
    snippets,
)
from plumbline.jobs.evidence.duplicates import (
    OFTEN,
    Signatures,
    first_copies,
    first_of_near,
    number_of_copies,
    signatures,
)
from plumbline.jobs.evidence.lean import OF_PART, Leans, Row, lean, lean_tables
from plumbline.jobs.evidence.phrases import of_phrase, parsed
from plumbline.jobs.evidence.sightings import (
    DocumentTable,
    Inquiry,
    Ints,
    Meetings,
    Sightings,
    look,
)
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.evidence_tables import ANSWERS
from plumbline.warehouse.storage.run_records import recorded
from plumbline.warehouse.storage.store import Store, cast
from plumbline.warehouse.wordlists import WordPair

#: Sampling units of intervals.
CLUSTERS = ("document", "source")
#: Collocates kept for each side of a word.
N_COLLOCATES = 20


@dataclass(frozen=True)
class Sampling:
    """Sample of occurrences: ``n`` per word and side, only near ``targets`` if there are any."""

    n: int = 5
    seed: int = 0
    targets: tuple[str, ...] = ()


@writes_corpus
def explain(
    store: Store,
    corpus: str,
    words: Sequence[str],
    contrast: str = "she/he",
    sampling: Sampling | None = None,
    clusters: str | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> dict[str, list[Row]]:
    """Explain the leans of words and phrases by a corpus's documents; writes and returns rows.

    The tables are ``ANSWERS`` of ``warehouse/schema/evidence_tables.py``.

    The sampling units of intervals are documents or, with ``clusters`` "source", whole sources,
    since pieces of one book are not independent. The default is sources if the corpus has ten or
    more. Rows of other words stay. A word that doesn't occur near the contrast has a row without a
    delta. An entry of several words (at most ``LONGEST_PHRASE``) is a phrase. It gets its own pass
    over the documents, in which each of its occurrences is one word. So does a word or phrase near
    other words, as in ``nurse NEAR doctor`` (``phrases.parsed``).

    Raises:
        UsageProblem: unknown corpus, contrast or target, or a corpus without words; a phrase is too
            long or has a word that isn't in the corpus; or a side of ``NEAR`` is empty.
        MissingComponent: its kept documents are not on this machine.
        BadInput: its kept documents are damaged.
    """
    evidence, sampling = evidence_of(store, corpus), sampling or Sampling()
    contrast = corpus_contrast(store, corpus, contrast)
    pairs = _pairs(store, evidence, contrast)
    counts = store.read("word_count", corpus=corpus)
    if not counts.num_rows:
        raise UsageProblem(f"corpus {corpus!r}", "has no words")
    requested = list(dict.fromkeys(words))
    question = Inquiry(
        tuple(word for word in requested if " " not in word),
        tuple(dict.fromkeys(pair.a for pair in pairs)),
        tuple(dict.fromkeys(pair.b for pair in pairs)),
        targets_of(corpus_lists(store, evidence.corpus)),
        evidence.options.rule,
        evidence.options.window,
        counts["word"].combine_chunks(),
    )
    clusters = clusters or widest_clusters(evidence)
    check(question, contrast, sampling, clusters)
    questions = [question] if question.words else []
    for text in requested:
        if " " in text:
            phrase, near = parsed(store, evidence.corpus, text)
            questions.append(of_phrase(question, corpus, phrase, near, text))
    config = {"corpus": corpus, "words": requested, "contrast": contrast, "clusters": clusters}
    with recorded(store, "why", {**config, **vars(sampling)}) as run_id:
        n_word = counts["n_word"].to_numpy()
        rows: dict[str, list[Row]] = {table: [] for table in ANSWERS}
        key = {"corpus": corpus, "contrast": contrast, "word": "", "run_id": run_id}
        for part in questions:
            options = pairs, n_word, sampling, clusters
            for table, part_rows in _rows_by_table(evidence, part, *options, progress).items():
                rows[table] += [{**key, **row} for row in part_rows]
        add_association(store, evidence, contrast, n_word, rows["word_evidence"])
        with store.together(run_id, "why"):
            for table, new_rows in rows.items():
                replace_words(store, corpus, contrast, requested, new_rows, table, run_id)
    return rows


def _rows_by_table(
    evidence: Evidence,
    question: Inquiry,
    pairs: Sequence[WordPair],
    n_word: Ints,
    sampling: Sampling,
    clusters: str,
    progress: Callable[[int, int], None],
) -> dict[str, list[Row]]:
    """The rows of each table about the words of a question, from one pass."""
    collector = _Collector(question, sampling)
    seen = look(evidence, question, collector, progress)
    if question.phrase:
        n = seen.n_word.sum()
        n_word = np.append(n_word, n)
        np.subtract.at(n_word, question.ids(pa.array(question.phrase, pa.string())), n)
    rows: dict[str, list[Row]] = {table: [] for table in ANSWERS}
    rows |= _lean_rows(seen, pairs, clusters)
    signed, around = collector.joined()
    for k, word in enumerate(question.words):
        copies = _copies(seen, signed, k, pairs, clusters)
        rows["word_copies"] += [{"word": word, **row} for row in copies]
        near = _collocates(question, around, k, n_word)
        rows["word_collocate"] += [{"word": word, **row} for row in near]
    sample = collector.sample.occurrences()
    for occurrence, row in snippet_rows(evidence, question, seen.documents, sample, sampling):
        rows["word_snippet"].append({"word": question.words[occurrence.word], **row})
    return rows


def widest_clusters(evidence: Evidence) -> str:
    """``source`` if the documents of a corpus name ten sources or more, else ``document``."""
    return "source" if len(evidence.sources()) >= FEWEST_SOURCES else "document"


def check(question: Inquiry, contrast: str, sampling: Sampling, clusters: str) -> None:
    """Raise ``UsageProblem`` for targets that aren't the contrast's, or unknown clusters."""
    if unknown := [t for t in sampling.targets if t not in question.targets]:
        problem, fix = f"is not a word of {contrast}", f"one of {', '.join(question.targets)}"
        raise UsageProblem(f"target {unknown[0]!r}", problem, fix)
    if clusters not in CLUSTERS:
        raise UsageProblem(f"clusters {clusters!r}", f"unknown; use {' or '.join(CLUSTERS)}")


def _pairs(store: Store, evidence: Evidence, contrast: str) -> tuple[WordPair, ...]:
    by_name = contrasts_of(store, evidence.corpus)
    if contrast in by_name:
        return by_name[contrast]
    if list_name := summed_list(contrast, by_name):
        fix = f"give --contrast {list_name}"
        raise UsageProblem(f"contrast {contrast!r}", "is a sum; only its list has evidence", fix)
    problem = f"is not one of corpus {evidence.corpus['corpus']}"
    raise UsageProblem(f"contrast {contrast!r}", problem, f"one of {', '.join(by_name)}")


class _Collector:
    """A callback of ``look`` that collects a sample, signatures and contexts. Thread-safe."""

    def __init__(self, question: Inquiry, sampling: Sampling) -> None:
        self._question = question
        self.sample = OccurrenceSample(question, sampling.n, sampling.seed, sampling.targets)
        self._signatures: list[Signatures] = []
        self._contexts: list[Contexts] = []

    def __call__(self, shard: int, met: Meetings, marks: NDArray[np.uint64]) -> None:
        self.sample.offer(shard, met, marks)
        near = np.unique(met.document[met.occurrence])
        self._signatures.append(signatures(shard, met.documents, near, self._question.keys))
        self._contexts.append(contexts(self._question, met))

    def joined(self) -> tuple[Signatures, Contexts]:
        """Signatures of all documents with a co-occurrence, and the contexts of the words."""
        signed = Signatures(*map(np.concatenate, zip(*self._signatures, strict=True)))
        return signed, put_together(self._contexts)


def _clusters(seen: Sightings, clusters: str) -> Ints | None:
    return seen.documents.source if clusters == "source" else None


def _lean_rows(seen: Sightings, pairs: Sequence[WordPair], clusters: str) -> dict[str, list[Row]]:
    """The rows of ``word_evidence`` and ``word_source`` of all words, without their key."""
    table, n_words = seen.documents, len(seen.question.words)
    n_sources = len(table.sources)
    n_copies = number_of_copies(table)
    near, copies = seen.n_near.sum(axis=1), n_copies[seen.document]
    n_all, n_copied, n_often = (
        np.bincount(seen.word, near * (copies > least), n_words) for least in (0, 1, OFTEN)
    )
    cells = table.source[seen.document] * n_words + seen.word
    holds = np.bincount(cells, minlength=n_sources * n_words).reshape(n_sources, n_words) > 0

    def leans_of(words: Ints, keep: NDArray[np.bool_], drawn: str) -> Leans:
        documents, cluster = keep[table.source], _clusters(seen, drawn)
        each = (lean(seen, word, pairs, documents, cluster) for word in words)
        return Leans(*map(np.array, zip(*each, strict=True)))

    rows = lean_tables(seen.question, table.sources, holds, leans_of, clusters)
    for k, row in enumerate(rows["word_evidence"]):
        for name, n in (("share_copied", n_copied), ("share_often", n_often)):
            row[name] = float(n[k] / n_all[k]) if n_all[k] else None
    return rows


def _copies(
    seen: Sightings, signed: Signatures, word: int, pairs: Sequence[WordPair], clusters: str
) -> Iterator[Row]:
    """The rows of ``word_copies`` of a word, without their key; none without co-occurrences."""
    if not seen.n_near[seen.word == word].any():
        return
    once = {
        "copies once": first_copies(seen),
        "near copies once": first_of_near(seen, signed, word),
    }
    for name, keep in once.items():
        word_lean = lean(seen, word, pairs, keep, _clusters(seen, clusters))
        values = ((column, getattr(word_lean, column)) for column in OF_PART)
        yield {"counted": name, **{c: None if math.isnan(x) else x for c, x in values}}


def _collocates(question: Inquiry, around: Contexts, word: int, n_word: Ints) -> list[Row]:
    """The rows of ``word_collocate`` of a word, without their key."""
    rows: list[Row] = collocates(question, around, word, n_word).to_pylist()
    sides = [[r for r in rows if (r["log_odds_nats"] > 0) == is_f] for is_f in (True, False)]
    return [row for side in sides for row in side[:N_COLLOCATES]]


def add_association(
    store: Store,
    evidence: Evidence,
    contrast: str,
    n_word: NDArray[np.int64],
    rows: Sequence[Row],
) -> None:
    """Add each word's frequency, results of ``corpus associate`` and the sides' names to rows."""
    corpus, targets = evidence.corpus["corpus"], contrast.split("/")
    sides = sides_of(store, evidence.corpus, contrast)
    is_asked = ds.field("word").isin(pa.array([row["word"] for row in rows], pa.string()))
    deltas = store.read("word_delta", is_asked & (ds.field("contrast") == contrast), corpus=corpus)
    near = store.read(
        "word_association", is_asked & ds.field("target").isin(targets), corpus=corpus
    )
    error = {r["word"]: r["delta_nats_se"] for r in deltas.to_pylist()}
    pmi = {(r["word"], r["target"]): r["pmi_nats"] for r in near.to_pylist()}
    for row in rows:
        row["per_million"] = 1e6 * row["n_word"] / evidence.corpus["n_kept_tokens"]
        row["frequency_rank"] = 1 + int((n_word > row["n_word"]).sum())
        row["pmi_f_nats"] = pmi.get((row["word"], targets[0])) if len(targets) == 2 else None
        row["pmi_m_nats"] = pmi.get((row["word"], targets[-1])) if len(targets) == 2 else None
        row["delta_nats_count_se"] = error.get(row["word"])
        row["side_a"], row["side_b"] = sides


def snippet_rows(
    evidence: Evidence,
    question: Inquiry,
    documents: DocumentTable,
    sample: Sequence[Occurrence],
    sampling: Sampling,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[tuple[Occurrence, Row]]:
    """Each occurrence with its row of ``word_snippet``, without the key."""
    marks, n_copies = np.unique(documents.mark, return_counts=True)
    copies = n_copies[np.searchsorted(marks, np.array([o.mark for o in sample], np.uint64))]
    sampled = {(o.shard, o.row) for o in sample}
    source = {
        (shard, row): documents.sources[k]
        for shard, row, k in zip(
            documents.shard.tolist(), documents.row.tolist(), documents.source.tolist(), strict=True
        )
        if (shard, row) in sampled
    }
    rows, number = [], dict.fromkeys(((o.word, o.side) for o in sample), 0)
    texts = snippets(evidence, question, sample, progress)
    for occurrence, snippet, n in zip(sample, texts, copies.tolist(), strict=True):
        number[occurrence.word, occurrence.side] += 1
        file = snippet.pop("file")
        row = {
            "side": SIDES[occurrence.side],
            "place": number[occurrence.word, occurrence.side],
            "seed": sampling.seed,
            **snippet,
            "shard": evidence.shards[occurrence.shard].name,
            "source_row": occurrence.row,
            "source": source[occurrence.shard, occurrence.row],
            "file": file,
            "position": occurrence.position,
            "n_copies": n,
        }
        rows.append((occurrence, row))
    return rows


def replace_words(
    store: Store,
    corpus: str,
    contrast: str,
    words: Sequence[str],
    rows: Sequence[Row],
    table: str,
    run_id: str,
) -> None:
    """Replace the rows of these words and this contrast in a table by new ones."""
    old = store.read(table, corpus=corpus)
    is_replaced = pc.and_(
        pc.equal(old["contrast"], contrast), pc.is_in(old["word"], pa.array(words, pa.string()))
    )
    combined = pa.concat_tables([old.filter(pc.invert(is_replaced)), cast(TABLES[table], rows)])
    store.replace(table, combined, {"corpus": corpus}, run_id)
