"""Why the most frequent words of a corpus lean, thousands at once: sums over documents by source.

``why.explain`` keeps a row for each document that holds a word, which is too much for many words.
Their leans, intervals and sources follow from sums over documents (``change.Moments``), and so one
reading gives those of all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plumbline.jobs.corpus_lookup import corpus_contrast
from plumbline.jobs.counting.kept_documents import Documents, Evidence, evidence_of
from plumbline.jobs.counting.writer import writes_corpus
from plumbline.jobs.evidence.change import Floats, Moments, near
from plumbline.jobs.evidence.concordance import Occurrence, OccurrenceSample
from plumbline.jobs.evidence.copies import OFTEN
from plumbline.jobs.evidence.lean import cluster_bounds
from plumbline.jobs.evidence.sightings import (
    DocumentTable,
    Inquiry,
    Ints,
    document_marks,
    look,
    meetings,
)
from plumbline.jobs.evidence.why import (
    Row,
    Sampling,
    add_association,
    check,
    replace_words,
    snippet_rows,
    widest_clusters,
)
from plumbline.warehouse.cores import n_cores
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.runs import recorded
from plumbline.warehouse.storage.store import Store, cast

#: Most words times sources: their sums take a hundred bytes each.
MOST_CELLS = 4_000_000
#: Occurrences that may wait to be sorted out.
_WAITING = 200_000


@dataclass(frozen=True)
class Surveyed:
    """Words whose leans, and whose sentences, a survey added; and whose leans were there before."""

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
    """Write how the most frequent words of a corpus lean, and sentences with them.

    The rows of ``word_evidence``, ``word_source`` and ``word_snippet`` are those of
    ``why.explain``; there are none of ``word_copies`` and ``word_collocate``. Words that have their
    rows already, of the same sampling and clusters, are left alone.

    Args:
        top: how many of the most frequent words; of words equally frequent the first by spelling.
        n_with_sentences: how many of these get sentences; all by default.
        progress: called with (shards done, shards), each shard being there once to look through
            and once for its sentences.

    Raises:
        UsageProblem: as ``why.explain``; or the contrast is not a pair, or the corpus was counted
            by the rule ``windows`` or has too many sources.
    """
    evidence, sampling = evidence_of(store, corpus), sampling or Sampling()
    contrast = corpus_contrast(store, corpus, contrast)
    counts = store.read("word_count", corpus=corpus)
    order = [("n_word", "descending"), ("word", "ascending")]
    words = counts.sort_by(order)["word"][:top].to_pylist()
    question = _question(evidence, contrast, counts)
    clusters = clusters or widest_clusters(evidence)
    check(question, contrast, sampling, clusters)
    asked = words[: len(words) if n_with_sentences is None else n_with_sentences]
    new = _without(words, _surveyed(store, corpus, contrast, clusters))
    to_quote = _without(asked, _quoted(store, corpus, contrast, sampling)) if sampling.n else []
    if not new and not to_quote:
        return Surveyed(0, 0, len(words))
    config = {"corpus": corpus, "top": top, "contrast": contrast, "clusters": clusters}
    config["n_with_sentences"] = len(asked)
    with recorded(store, "why", {**config, **vars(sampling)}) as run_id:
        n_shards = len(evidence.shards)
        documents = look(evidence, question).documents
        sums = _Sums(replace(question, words=tuple(new)), documents)
        sample = _Sample(replace(question, words=tuple(to_quote)), sampling)
        _read(evidence, question, (sums, sample), lambda k, _: progress(k, 2 * n_shards))
        n_word = counts["n_word"].to_numpy()
        rows = sums.rows(clusters)
        add_association(store, evidence, contrast, n_word, rows["word_evidence"])
        quoted = snippet_rows(
            evidence,
            sample.question,
            documents,
            sample.places,
            sampling,
            lambda k, _: progress(n_shards + k, 2 * n_shards),
        )
        rows["word_snippet"] = [{"word": to_quote[place.word], **row} for place, row in quoted]
        key = {"corpus": corpus, "contrast": contrast, "run_id": run_id}
        with store.together(run_id, "why"):
            for name, found in rows.items():
                table = cast(TABLES[name], [{**key, **row} for row in found])
                of = to_quote if name == "word_snippet" else new
                replace_words(store, corpus, contrast, of, table, name, run_id)
    return Surveyed(len(new), len(to_quote), len(words) - len(new))


def _question(evidence: Evidence, contrast: str, counts: pa.Table) -> Inquiry:
    options = evidence.options
    female, _, male = contrast.partition("/")
    if female not in options.targets or male not in options.targets:
        fix = "give a pair of words that the corpus was counted with, such as she/he"
        raise UsageProblem(f"contrast {contrast!r}", "is not such a pair", fix)
    if options.rule != "pairs":
        fix = "name the words, or count it with --rule pairs"
        raise UsageProblem(f"corpus {evidence.corpus['corpus']!r}", "was counted by windows", fix)
    vocabulary = counts["word"].combine_chunks()
    rest = options.targets, options.rule, options.window, vocabulary
    return Inquiry((), (female,), (male,), *rest)


def _without(words: Sequence[str], known: set[str]) -> list[str]:
    return [word for word in words if word not in known]


def _surveyed(store: Store, corpus: str, contrast: str, clusters: str) -> set[str]:
    """Words that have a lean with an interval over these clusters."""
    known = store.read("word_evidence", corpus=corpus)
    same = pc.and_(pc.equal(known["contrast"], contrast), pc.equal(known["clusters"], clusters))
    return set(known.filter(same)["word"].to_pylist())


def _quoted(store: Store, corpus: str, contrast: str, sampling: Sampling) -> set[str]:
    """Words that have sentences drawn like this, or had none to draw from."""
    known = store.read("word_evidence", pc.field("contrast") == contrast, corpus=corpus)
    same = pc.and_(pc.equal(known["n_pair_f"], 0), pc.equal(known["n_pair_m"], 0))
    never = set(known.filter(same)["word"].to_pylist())
    written = store.read("run").to_pylist()
    alike = {r["run_id"] for r in written if r["command"] == "why" and _draws(r, sampling)}
    drawn = store.read("word_snippet", pc.field("contrast") == contrast, corpus=corpus)
    like = drawn.filter(pc.is_in(drawn["run_id"], pa.array(list(alike), pa.string())))
    return never | set(pc.unique(like["word"]).to_pylist())


def _draws(run: Row, sampling: Sampling) -> bool:
    """Whether a run of ``why`` drew what this sampling draws; a larger sample begins with it."""
    config = json.loads(run["config"])
    same = (config["seed"], tuple(config["targets"])) == (sampling.seed, sampling.targets)
    return bool(same and config["n"] >= sampling.n)


class _Sums:
    """Sums over the documents of each source, for each word of a question.

    Attributes, a cell for each source and word: ``sums`` and ``n_documents`` as of ``Moments``,
    ``n_word`` occurrences; and for each word ``copied``, its co-occurrences in documents that are
    there more than once, and more than ``OFTEN`` times.
    """

    def __init__(self, question: Inquiry, documents: DocumentTable) -> None:
        self._question, self.documents = question, documents
        self._word, self._lock = question.table(question.words), Lock()
        n_words, n_sources = len(question.words), len(documents.sources)
        if n_words * n_sources > MOST_CELLS:
            problem = f"are too many for {n_sources:,} sources"
            raise UsageProblem(f"{n_words:,} words", problem, f"--top {MOST_CELLS // n_sources}")
        self._shape = n_sources, n_words
        self._sums = np.zeros((9, n_sources * n_words))
        self._n_documents = np.zeros(n_sources * n_words, np.int64)
        self._n_word = np.zeros(n_sources * n_words, np.int64)
        self._copied = np.zeros((2, n_words), np.int64)
        _, inverse, n = np.unique(documents.mark, return_inverse=True, return_counts=True)
        self._n_copies = n[inverse]

    def add(self, shard: int, start: int, documents: Documents) -> None:
        """Add some documents, of which the first is the one with that index in the table."""
        table, (_, n_words) = self.documents, self._shape
        document, word, c = near(self._question, documents)
        word = self._word[word].astype(np.int64)
        asked = word >= 0
        document, c, word = document[asked] + start, c[asked], word[asked]
        n = table.n_target[document]
        products = [c[:, 0], c[:, 1], c[:, 0] ** 2, c[:, 0] * c[:, 1], c[:, 1] ** 2]
        products += [c[:, i] * n[:, j] for i in range(2) for j in range(2)]
        cells, at = np.unique(table.source[document] * n_words + word, return_inverse=True)
        held = self._word[documents.values]
        own = np.repeat(
            table.source[start : start + len(documents.row)], np.diff(documents.offsets)
        )
        all_cells, n_word = np.unique((own * n_words + held)[held >= 0], return_counts=True)
        copies, both = self._n_copies[document], c.sum(axis=1)
        with self._lock:
            for row, product in zip(self._sums, products, strict=True):
                row[cells] += np.bincount(at, product, cells.size)
            self._n_documents[cells] += np.bincount(at, minlength=cells.size)
            self._n_word[all_cells] += n_word
            for k, least in enumerate((1, OFTEN)):
                np.add.at(self._copied[k], word[copies > least], both[copies > least])

    def rows(self, clusters: str) -> dict[str, list[Row]]:
        """The rows of ``word_evidence`` and ``word_source``, without what all of them share."""
        table, (n_sources, n_words) = self.documents, self._shape
        sums = self._sums.reshape(9, n_sources, n_words)
        n_documents, n_word = (x.reshape(self._shape) for x in (self._n_documents, self._n_word))
        every = np.ones(n_sources, np.bool_)

        def leans(keep: NDArray[np.bool_], drawn: str) -> dict[str, Any]:
            of = keep[table.source]
            n = table.n_target[of].astype(np.float64)
            own = Moments(
                sums[:, keep].sum(axis=1), n_documents[keep].sum(axis=0), n.sum(axis=0), n.T @ n
            )
            if drawn == "document":
                with np.errstate(divide="ignore", invalid="ignore"):  # texts without a target
                    squares = own.covariance(own, own)
                return _leans(own, int(of.sum()), own.n_documents, squares)
            of_source = np.stack(
                [np.bincount(table.source, t, n_sources) for t in table.n_target.T]
            )
            parts = zip(
                sums[:2, keep], of_source[:, keep], own.sums[:2], own.n, (1, -1), strict=True
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                u = sum(sign * (c / total - (m / k)[:, None]) for c, m, total, k, sign in parts)
            n_meeting = (n_documents[keep] > 0).sum(axis=0)
            return _leans(own, int(keep.sum()), n_meeting, np.square(u).sum(axis=0))

        whole = leans(every, clusters)
        n_near = np.maximum(whole["n_pair_f"] + whole["n_pair_m"], 1)
        shares = np.where(whole["n_documents"] > 0, self._copied / n_near, np.nan)
        evidence = {
            **whole,
            "n_word": n_word.sum(axis=0),
            "clusters": np.full(n_words, clusters),
            "n_defined": np.isfinite(whole["delta_nats"]).astype(int),
            "share_copied": shares[0],
            "share_often": shares[1],
        }
        found = {
            "word_evidence": self._listed(evidence, np.ones(n_words, np.bool_)),
            "word_source": [],
        }
        for k, source in enumerate(table.sources):
            alone, rest = np.arange(n_sources) == k, np.arange(n_sources) != k
            own, without = leans(alone, "document"), leans(rest, clusters)
            names = {"delta_nats": "delta_without_nats", "delta_nats_low": "delta_without_nats_low"}
            names["delta_nats_high"] = "delta_without_nats_high"
            columns = {**own, "n_word": n_word[k], "source": np.full(n_words, source)}
            columns |= {name: without[of] for of, name in names.items()}
            for name in ("n_clusters", "delta_nats_se", "p"):
                del columns[name]
            found["word_source"] += self._listed(columns, n_word[k] > 0)
        return found

    def _listed(self, columns: dict[str, Any], chosen: NDArray[np.bool_]) -> list[Row]:
        """Rows of the chosen words; what is not a number is NULL."""
        columns = {"word": np.array(self._question.words, object), **columns}
        arrays = {name: pa.array(x[chosen], from_pandas=True) for name, x in columns.items()}
        rows: list[Row] = pa.table(arrays).to_pylist()
        return rows


def _leans(own: Moments, n_drawn: int, n_clusters: Ints, squares: Floats) -> dict[str, Any]:
    """The columns of leans, as ``lean.lean`` finds them for one word.

    Args:
        n_drawn: how many clusters were drawn.
        n_clusters: int64[word], those in which a word co-occurs.
        squares: float64[word], sum of the squared influences of the clusters.
    """
    from scipy.special import stdtr, stdtrit

    f, m = own.sums[:2]
    with np.errstate(divide="ignore", invalid="ignore"):
        delta = np.where((f > 0) & (m > 0), np.log(f / m) - np.log(own.n[0] / own.n[1]), np.nan)
        variance = np.maximum(squares, 0) * n_drawn / max(n_drawn - 1, 1)
        se = np.where((n_clusters > 1) & np.isfinite(delta), np.sqrt(variance), np.nan)
    df = np.maximum(n_clusters - 1, 1)
    half = stdtrit(df, 0.975) * se
    with np.errstate(divide="ignore", invalid="ignore"):
        by_t = delta - half, delta + half, 2 * stdtr(df, -np.abs(delta) / se)
    bounds = cluster_bounds(f, m, n_clusters, own.n)
    low, high, p = (np.where(np.isfinite(delta), *x) for x in zip(by_t, bounds, strict=True))
    return {
        "n_documents": own.n_documents,
        "n_clusters": n_clusters,
        "n_pair_f": f.astype(np.int64),
        "n_pair_m": m.astype(np.int64),
        "delta_nats": delta,
        "delta_nats_se": se,
        "delta_nats_low": low,
        "delta_nats_high": high,
        "p": p,
    }


class _Sample:
    """Occurrences drawn for the words of a question, while documents pass by."""

    def __init__(self, question: Inquiry, sampling: Sampling) -> None:
        self.question = question
        self._sample = OccurrenceSample(question, sampling.n, sampling.seed, sampling.targets)
        self._places: list[Occurrence] = []
        self._room, self._lock = _WAITING, Lock()

    def add(self, shard: int, start: int, documents: Documents) -> None:
        """Draw from some documents of a shard."""
        if not self.question.words:
            return
        marks = document_marks(documents, self.question.keys)
        found = self._sample.offer(shard, meetings(self.question, documents), marks)
        with self._lock:
            self._places += found
            if len(self._places) > self._room:
                self._places = self._sample.lowest(self._places)
                self._room = len(self._places) + _WAITING

    @property
    def places(self) -> list[Occurrence]:
        """What was drawn of all documents."""
        return self._sample.lowest(self._places)


def _read(
    evidence: Evidence,
    question: Inquiry,
    readers: tuple[_Sums, _Sample],
    progress: Callable[[int, int], None],
) -> None:
    """Show every document to all; shards side by side."""
    table = readers[0].documents
    first = np.searchsorted(table.shard, np.arange(len(evidence.shards)))
    done = 0

    def read(index: int) -> None:
        nonlocal done
        start = int(first[index])
        for documents in evidence.documents(evidence.shards[index], question.ids):
            for reader in readers:
                reader.add(index, start, documents)
            start += len(documents.row)
        done += 1
        progress(done, len(evidence.shards))

    with ThreadPoolExecutor(n_cores()) as pool:
        list(pool.map(read, range(len(evidence.shards))))
