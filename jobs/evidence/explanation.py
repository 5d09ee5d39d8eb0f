"""Explain why words lean to one gender, from the documents that a corpus keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from plumbline.jobs.association.associations import contrasts_of, sides_of, targets_of
from plumbline.jobs.association.measures import adjusted
from plumbline.jobs.counting.co_occurrences import Occurrences, Query
from plumbline.jobs.counting.corpus_lookup import corpus_contrast, corpus_lists, writes_corpus
from plumbline.jobs.counting.kept_documents import Evidence, evidence_of
from plumbline.jobs.evidence.concordance import OccurrenceSample, Sampling, snippet_rows
from plumbline.jobs.evidence.index import Hashes, Index, Row, of_phrase, parsed, read_index
from plumbline.jobs.evidence.lean import OF_PART, lean_tables, leans, word_rows
from plumbline.jobs.kernel.pair_runs import Ints, Run, between, summed
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.corpus_tables import ANSWERS
from plumbline.warehouse.storage.data_files import cast
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.wordlists import WordPair

#: Number of collocates (words nearby) that are stored for each word and side of the contrast.
N_COLLOCATES = 20
#: Memory limits of one pass: counts per source and word, and per document, word and target.
MOST_CELLS, MOST_ROWS = 4_000_000, 50_000_000
#: Total pseudo-counts of the prior for each side, distributed like the corpus's words.
PRIOR_WORDS = 1000.0
_CANDIDATES = "SELECT word FROM lean_candidate WHERE corpus = $corpus AND contrast = $contrast"
_DEFAULT = Sampling()


@writes_corpus
def explain(
    store: Store,
    corpus: str,
    words: Sequence[str],
    contrast: str = "she/he",
    sampling: Sampling = _DEFAULT,
) -> dict[str, list[Row]]:
    """Explain why words and phrases lean. Write rows about them to tables, and return the rows.

    The tables are ``ANSWERS`` in ``warehouse/schema/corpus_tables.py``. Rows of other words stay.

    If the corpus has ten sources or more, intervals treat each source as one cluster, since pieces
    of one book are not independent. Otherwise each document is a cluster. A word that never occurs
    near the contrast's words gets a row without a delta.

    An item of ``words`` may also be a phrase of at most ``LONGEST_PHRASE`` words, or a query such
    as ``nurse NEAR doctor`` (see ``index.parsed``). Each phrase or query needs one more pass over
    the documents.

    Raises:
        UsageProblem: the corpus or contrast is unknown, or the corpus has no words; a phrase is too
            long or has a word that isn't in the corpus; or nothing is before or after ``NEAR``.
        MissingComponent: the corpus's kept documents are not on this machine.
        BadInput: the corpus's kept documents are damaged.
    """
    inquiry = _inquiry(store, corpus, contrast, sampling)
    asked = list(dict.fromkeys(words))
    single = tuple(word for word in asked if " " not in word)
    queries = [replace(inquiry.query, words=single)] if single else []
    for text in asked:
        if " " in text:
            phrase, context = parsed(store, inquiry.evidence.corpus, text)
            queries.append(of_phrase(inquiry.query, corpus, phrase, context, text))
    return _answer(store, inquiry, queries, asked, ANSWERS, {"words": asked})


@writes_corpus
def explain_top(
    store: Store,
    corpus: str,
    top: int,
    contrast: str = "she/he",
    sampling: Sampling = _DEFAULT,
) -> int:
    """Write leans and sentences for a corpus's ``top`` most frequent words. Return their number.

    This writes the same rows of ``word_evidence``, ``word_source`` and ``word_snippet`` as
    ``explain``, but no rows of ``word_copies`` and ``word_collocate``. Equally frequent words are
    taken in alphabetical order. Raises the errors of ``explain``.
    """
    inquiry = _inquiry(store, corpus, contrast, sampling)
    counts = pa.table({"n_word": inquiry.n_word, "word": inquiry.query.vocabulary})
    keys = [("n_word", "descending"), ("word", "ascending")]
    words = counts.sort_by(keys)["word"][:top].to_pylist()
    _explain_leans(store, inquiry, words)
    return len(words)


@writes_corpus
def explain_candidates(store: Store, corpus: str, contrast: str = "she/he") -> None:
    """Write the leans of all words that a report page may rank (view ``lean_candidate``).

    This writes ``word_evidence`` and ``word_source``. Words that already have rows with the same
    clusters (documents or sources) are skipped. Raises the errors of ``explain``.
    """
    inquiry = _inquiry(store, corpus, contrast, Sampling(0))
    key = {"corpus": corpus, "contrast": inquiry.contrast}
    words = [row["word"] for row in rows_of(store, _CANDIDATES, key)]
    clusters = inquiry.evidence.clusters
    same = (pc.field("contrast") == inquiry.contrast) & (pc.field("clusters") == clusters)
    answered = set(store.read("word_evidence", same, corpus=corpus)["word"].to_pylist())
    if new := [word for word in words if word not in answered]:
        _explain_leans(store, inquiry, new)


def _explain_leans(store: Store, inquiry: _Inquiry, words: list[str]) -> None:
    tables = ("word_evidence", "word_source", "word_snippet")[: 3 if inquiry.sampling.n else 2]
    queries = (replace(inquiry.query, words=in_pass) for in_pass in _passes(inquiry, words))
    _answer(store, inquiry, queries, words, tables, {"n_words": len(words)})


def _answer(
    store: Store,
    inquiry: _Inquiry,
    queries: Iterable[Query],
    words: Sequence[str],
    tables: Sequence[str],
    asked: Row,
) -> dict[str, list[Row]]:
    """Run the queries. Replace the rows of ``words`` in each table. Return {table: new rows}."""
    key = {"corpus": inquiry.corpus, "contrast": inquiry.contrast, "word": ""}
    rows: dict[str, list[Row]] = {table: [] for table in tables}
    with recorded(store, "why", inquiry.config(asked)) as run_id:
        key["run_id"] = run_id
        for query in queries:
            for table, new in _rows_by_table(inquiry, query, tables).items():
                rows[table] += ({**key, **row} for row in new)
        _add_association(store, inquiry, rows["word_evidence"])
        with store.transaction(run_id, "why"):
            for table in tables:
                old = store.read(table, corpus=inquiry.corpus)
                is_replaced = pc.and_(
                    pc.equal(old["contrast"], inquiry.contrast),
                    pc.is_in(old["word"], pa.array(words, pa.string())),
                )
                kept = old.filter(pc.invert(is_replaced))
                combined = pa.concat_tables([kept, cast(TABLES[table], rows[table])])
                store.replace(table, combined, {"corpus": inquiry.corpus}, run_id)
    return rows


@dataclass(frozen=True)
class _Inquiry:
    """The corpus and contrast to explain, and the settings.

    ``query.words`` is empty. ``n_word`` says how often each word of ``query.vocabulary`` occurs.
    """

    evidence: Evidence
    contrast: str
    pairs: tuple[WordPair, ...]
    query: Query
    n_word: Ints
    sampling: Sampling

    @property
    def corpus(self) -> str:
        return str(self.evidence.corpus["corpus"])

    def config(self, asked: Row) -> Row:
        own = {"corpus": self.corpus, "contrast": self.contrast, "clusters": self.evidence.clusters}
        return {**own, **asked, **vars(self.sampling)}


def _inquiry(store: Store, corpus: str, contrast: str, sampling: Sampling) -> _Inquiry:
    evidence = evidence_of(store, corpus)
    contrast = corpus_contrast(store, corpus, contrast)
    by_name = contrasts_of(store, evidence.corpus)
    if contrast not in by_name:
        problem, fix = f"is not a contrast of corpus {corpus}", f"one of {', '.join(by_name)}"
        raise UsageProblem(f"contrast {contrast!r}", problem, fix)
    pairs = by_name[contrast]
    counts = store.read("word_count", corpus=corpus)
    if not counts.num_rows:
        raise UsageProblem(f"corpus {corpus!r}", "has no words")
    query = Query(
        (),
        tuple(dict.fromkeys(pair.a for pair in pairs)),
        tuple(dict.fromkeys(pair.b for pair in pairs)),
        targets_of(corpus_lists(store, evidence.corpus)),
        evidence.options.rule,
        evidence.options.window,
        counts["word"].combine_chunks(),
    )
    return _Inquiry(evidence, contrast, pairs, query, counts["n_word"].to_numpy(), sampling)


def _passes(inquiry: _Inquiry, words: list[str]) -> Iterator[tuple[str, ...]]:
    """Split words into groups whose counts fit in memory (``MOST_CELLS``, ``MOST_ROWS``)."""
    query, n_word, texts = inquiry.query, inquiry.n_word, np.array(words, object)
    n_near = 2 * query.window * n_word[query.target_table[:-1] >= 0].sum()
    n_of_word = n_word[query.ids(pa.array(words, pa.string()))]
    load = n_near * n_of_word / n_word.sum() / MOST_ROWS
    number = np.cumsum(load + len(inquiry.evidence.sources) / MOST_CELLS).astype(np.int64)
    for k in np.unique(number):
        yield tuple(texts[number == k])


def _rows_by_table(inquiry: _Inquiry, query: Query, tables: Sequence[str]) -> dict[str, list[Row]]:
    """Return {table: its new rows}. The rows lack the columns corpus, contrast and run."""
    evidence, sampling = inquiry.evidence, inquiry.sampling
    sample = OccurrenceSample(query, sampling)
    has_context = "word_collocate" in tables

    def collect(shard: int, found: Occurrences, hashes: Hashes) -> Run | None:
        sample.offer(shard, found, hashes)
        return contexts(query, found) if has_context else None

    index, collected = read_index(evidence, query, collect)
    rows = lean_tables(index, inquiry.pairs, inquiry.evidence.clusters)
    if has_context:
        around = summed([*filter(None, collected)])
        rows["word_copies"] = _copies(inquiry, index)
        rows["word_collocate"] = [*_collocates(inquiry, index, around)]
    if "word_snippet" in tables:
        rows["word_snippet"] = snippet_rows(evidence, index, sample.occurrences(), sampling.seed)
    return rows


def _copies(inquiry: _Inquiry, index: Index) -> list[Row]:
    """Return rows of ``word_copies``: leans computed from only one copy of each document."""
    _, first = np.unique(index.text_hash, return_index=True)
    is_first = np.isin(np.arange(index.text_hash.size), first)
    documents, words = index.pairs.within(is_first), np.unique(index.pairs.word)
    counted = documents.by(inquiry.evidence.clusters)
    found = leans(index.query, inquiry.pairs, counted, documents, words)
    values = {column: getattr(found, column) for column in OF_PART}
    names = np.full(words.size, "copies once", object)
    return word_rows(index.query, words, {"counted": names, **values})


def _collocates(inquiry: _Inquiry, index: Index, around: Run) -> Iterator[Row]:
    query, n_word = index.query, inquiry.n_word
    if query.phrase:
        n = index.n_word.sum()
        n_word = np.append(n_word, n)
        np.subtract.at(n_word, query.ids(pa.array(query.phrase, pa.string())), n)
    for k, word in enumerate(query.words):
        rows = collocates(query, around, k, n_word).to_pylist()
        for is_f in (True, False):
            side = [row for row in rows if (row["log_odds_nats"] > 0) == is_f]
            yield from ({"word": word, **row} for row in side[:N_COLLOCATES])


def contexts(query: Query, found: Occurrences) -> Run:
    """Count the neighbours of the query's words, near female and near male targets separately.

    An occurrence near targets of both sides counts for each side. The key of a count is
    (word * 2 + side) * vocabulary size + neighbour.
    """
    size = len(query.vocabulary)
    cells = [np.empty(0, np.int64)]
    for side, names in enumerate(query.sides):
        is_of_side = np.isin(query.targets, names)[found.target]
        occurrence, other = _neighbours(query, found, np.unique(found.occurrence[is_of_side]))
        cells.append((found.word[occurrence] * 2 + side) * size + other)
    return np.unique(np.concatenate(cells), return_counts=True)


def _neighbours(query: Query, found: Occurrences, occurrence: Ints) -> tuple[Ints, Ints]:
    """Find the words less than a window away from the given occurrences.

    Return two arrays, with one item per word found: the index of the occurrence, and the word's id.
    Targets and rare words (id -1) are skipped.
    """
    ids, offsets = found.documents.values, found.documents.offsets
    is_target = query.table(query.listed) >= 0
    at, document = found.at[occurrence], found.document[occurrence]
    parts = []
    for step in query.steps:
        inside = np.flatnonzero(
            (at + step >= offsets[document]) & (at + step < offsets[document + 1])
        )
        other = ids[at[inside] + step]
        counted = (other >= 0) & ~is_target[other]
        parts.append((occurrence[inside][counted], other[counted].astype(np.int64)))
    occurrences, others = (np.concatenate(x) for x in zip(*parts, strict=True))
    return occurrences, others


def collocates(query: Query, counted: Run, word: int, n_word: Ints) -> pa.Table:
    """Return the neighbours of a word, and how much more often each occurs on the female side.

    Neighbour v occurs f_v times near female targets, and m_v times near male targets. F and M are
    the sums of f_v and m_v over all neighbours. The log odds ratio is
    ln((f_v + p_v) / (F + P - f_v - p_v)) - ln((m_v + p_v) / (M + P - m_v - p_v)).
    The prior is p_v = P n_v / sum n, with P = ``PRIOR_WORDS`` and the corpus's counts n. The
    variance is about 1 / (f_v + p_v) + 1 / (m_v + p_v) (Monroe, Colaresi and Quinn 2008, with an
    informative Dirichlet prior).

    ``counted`` are the counts of :func:`contexts`, and ``word`` is an index in ``query.words``. The
    rows have the columns of ``word_collocate``. The most significant rows come first.
    """
    from scipy.special import erfc

    size = len(query.vocabulary)
    f, m = np.zeros((2, size), np.int64)
    for start, n in ((word * 2 * size, f), ((word * 2 + 1) * size, m)):
        cells, counts = between(counted, start, start + size)
        n[cells - start] = counts
    seen = np.flatnonzero(f + m)
    prior = PRIOR_WORDS * n_word[seen] / n_word.sum()
    odds = [np.log((n[seen] + prior) / (n.sum() + PRIOR_WORDS - n[seen] - prior)) for n in (f, m)]
    log_odds = odds[0] - odds[1]
    se = np.sqrt(1 / (f[seen] + prior) + 1 / (m[seen] + prior))
    order = np.argsort(-np.abs(log_odds / se), kind="stable")
    half = NormalDist().inv_cdf(0.975) * se
    return pa.table(
        {
            "collocate": query.vocabulary.take(pa.array(seen[order])),
            "n_f": f[seen][order],
            "n_m": m[seen][order],
            "log_odds_nats": log_odds[order],
            "log_odds_nats_se": se[order],
            "log_odds_nats_low": (log_odds - half)[order],
            "log_odds_nats_high": (log_odds + half)[order],
            "q": adjusted(erfc(np.abs(log_odds / se)[order] / np.sqrt(2))),
        }
    )


def _add_association(store: Store, inquiry: _Inquiry, rows: Sequence[Row]) -> None:
    """Add columns to each row: the word's frequency and PMI, and the names of the two sides."""
    corpus, contrast, n_word = inquiry.corpus, inquiry.contrast, np.sort(inquiry.n_word)
    row_of_corpus, targets = inquiry.evidence.corpus, contrast.split("/")
    sides = sides_of(store, row_of_corpus, contrast)
    is_asked = ds.field("word").isin(pa.array([row["word"] for row in rows], pa.string()))
    of_targets = ds.field("target").isin(targets)
    associations = store.read("word_association", is_asked & of_targets, corpus=corpus)
    pmi = {(r["word"], r["target"]): r["pmi_nats"] for r in associations.to_pylist()}
    for row in rows:
        row["per_million"] = 1e6 * row["n_word"] / row_of_corpus["n_kept_tokens"]
        n_at_most = np.searchsorted(n_word, row["n_word"], side="right")
        row["frequency_rank"] = 1 + int(n_word.size - n_at_most)
        row["pmi_f_nats"] = pmi.get((row["word"], targets[0])) if len(targets) == 2 else None
        row["pmi_m_nats"] = pmi.get((row["word"], targets[-1])) if len(targets) == 2 else None
        row["side_a"], row["side_b"] = sides
