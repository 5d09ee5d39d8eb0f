"""Why words lean: one look at a corpus's documents, and the tables of what it shows."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray

from plumbline.jobs.association.associations import contrasts_of
from plumbline.jobs.association.measures import summed_list
from plumbline.jobs.corpus_lookup import corpus_contrast
from plumbline.jobs.counting.kept_documents import FEWEST_SOURCES, Evidence, evidence_of
from plumbline.jobs.counting.writer import writes_corpus
from plumbline.jobs.evidence.collocates import Contexts, collocates, contexts, put_together
from plumbline.jobs.evidence.concordance import (
    SIDES,
    Occurrence,
    OccurrenceSample,
    lowest,
    snippets,
)
from plumbline.jobs.evidence.copies import (
    OFTEN,
    Signatures,
    first_copies,
    first_of_near,
    signatures,
)
from plumbline.jobs.evidence.lean import WordLean, lean
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
from plumbline.warehouse.schema.evidence import ANSWERS
from plumbline.warehouse.storage.runs import recorded
from plumbline.warehouse.storage.store import Store, cast
from plumbline.warehouse.wordlists import WordPair

#: What intervals take as drawn.
CLUSTERS = ("document", "source")
#: Collocates kept for each side of a word.
N_COLLOCATES = 20
Row = dict[str, Any]


@dataclass(frozen=True)
class Sampling:
    """Which occurrences are shown: ``n`` of each side by ``seed``, near ``targets`` if any."""

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
    """What the documents of a corpus say about words: rows by table, which are written.

    The tables are ``ANSWERS`` of ``warehouse/schema/evidence.py``.

    Intervals take each document as drawn for itself or, with ``clusters`` "source", each source as
    a whole: for pieces of one book, which are not independent. By default they take sources if the
    corpus has ten or more. Rows of other words stay. Words that don't occur near the contrast have
    a row without a delta.

    Raises:
        UsageProblem: unknown corpus, contrast or target; or no word of it is in the corpus.
        MissingComponent: its documents are not on this machine.
        BadInput: what was kept of them is damaged.
    """
    evidence, sampling = evidence_of(store, corpus), sampling or Sampling()
    contrast = corpus_contrast(store, corpus, contrast)
    pairs = _pairs(store, evidence, contrast)
    counts = store.read("word_count", corpus=corpus)
    question = Inquiry(
        tuple(dict.fromkeys(words)),
        tuple(dict.fromkeys(pair.female for pair in pairs)),
        tuple(dict.fromkeys(pair.male for pair in pairs)),
        evidence.options.targets,
        evidence.options.rule,
        evidence.options.window,
        counts["word"].combine_chunks(),
    )
    clusters = clusters or widest_clusters(evidence)
    check(question, contrast, sampling, clusters)
    config = {"corpus": corpus, "words": list(question.words), "contrast": contrast}
    config["clusters"] = clusters
    with recorded(store, "why", {**config, **vars(sampling)}) as run_id:
        watched = _Watched(question, sampling)
        seen = look(evidence, question, watched, progress)
        n_word = counts["n_word"].to_numpy()
        rows: dict[str, list[Row]] = {table: [] for table in ANSWERS}
        for index, word in enumerate(question.words):
            key = {"corpus": corpus, "contrast": contrast, "word": word, "run_id": run_id}
            for table, found in _of_word(seen, watched, index, pairs, n_word, clusters).items():
                rows[table] += [{**key, **row} for row in found]
        add_association(store, evidence, contrast, n_word, rows["word_evidence"])
        places = lowest(watched.places, sampling.n)
        for place, row in snippet_rows(evidence, question, seen.documents, places, sampling):
            key = {"corpus": corpus, "contrast": contrast, "word": question.words[place.word]}
            rows["word_snippet"].append({**key, "run_id": run_id, **row})
        with store.together(run_id, "why"):
            for table, found in rows.items():
                new = cast(TABLES[table], found)
                replace_words(store, corpus, contrast, question.words, new, table, run_id)
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
        raise UsageProblem(f"clusters {clusters!r}", f"there is {' and '.join(CLUSTERS)}")


def _pairs(store: Store, evidence: Evidence, contrast: str) -> tuple[WordPair, ...]:
    by_name = contrasts_of(store, evidence.corpus)
    if contrast in by_name:
        return by_name[contrast]
    if listed := summed_list(contrast, by_name):
        fix = f"give --contrast {listed}"
        raise UsageProblem(f"contrast {contrast!r}", "its evidence is that of its list", fix)
    problem = f"is not one of corpus {evidence.corpus['corpus']}"
    raise UsageProblem(f"contrast {contrast!r}", problem, f"one of {', '.join(by_name)}")


class _Watched:
    """What is collected while the documents pass by, from several threads."""

    def __init__(self, question: Inquiry, sampling: Sampling) -> None:
        self._question = question
        self._sample = OccurrenceSample(question, sampling.n, sampling.seed, sampling.targets)
        self._lock = threading.Lock()
        self.places: list[Occurrence] = []
        self._signatures: list[Signatures] = []
        self._contexts: list[Contexts] = []

    def __call__(self, shard: int, met: Meetings, marks: NDArray[np.uint64]) -> None:
        places = self._sample.offer(shard, met, marks)
        near = np.unique(met.document[met.occurrence])
        found = contexts(self._question, met)
        signed = signatures(shard, met.documents, near, self._question.keys)
        with self._lock:
            self.places = self._sample.lowest([*self.places, *places])
            self._signatures.append(signed)
            self._contexts.append(found)

    @property
    def signatures(self) -> Signatures:
        """The signatures of all documents where a word asked about meets a target."""
        self._signatures = [Signatures(*map(np.concatenate, zip(*self._signatures, strict=True)))]
        return self._signatures[0]

    @property
    def contexts(self) -> Contexts:
        """The words around the words asked about, in all documents."""
        self._contexts = [put_together(self._contexts)]
        return self._contexts[0]


def _of_word(
    seen: Sightings,
    watched: _Watched,
    word: int,
    pairs: Sequence[WordPair],
    n_word: NDArray[np.int64],
    clusters: str,
) -> dict[str, list[Row]]:
    """The rows of a word, without their key, by table."""
    drawn = seen.documents.source if clusters == "source" else None
    whole = lean(seen, word, pairs, cluster=drawn)
    is_first, n_copies = first_copies(seen)
    rows = seen.word == word
    near = seen.n_near[rows].sum(axis=1)
    copies = n_copies[seen.document[rows]]
    n = int(near.sum())
    evidence = {
        "n_word": whole.n_word,
        "n_documents": whole.n_documents,
        "clusters": clusters,
        "n_clusters": whole.n_clusters,
        "n_pair_f": whole.n_pair_f,
        "n_pair_m": whole.n_pair_m,
        "n_defined": whole.n_defined,
        "delta_nats": _known(whole.delta_nats),
        "delta_nats_se": _known(whole.delta_nats_se),
        "delta_nats_low": _known(whole.low_nats),
        "delta_nats_high": _known(whole.high_nats),
        "p": _known(whole.p),
        "share_copied": float(near[copies > 1].sum() / n) if n else None,
        "share_often": float(near[copies > OFTEN].sum() / n) if n else None,
    }
    once = {
        "copies once": is_first,
        "near copies once": first_of_near(seen, watched.signatures, word),
    }
    counted = [
        {"counted": name, **_lean_row(lean(seen, word, pairs, keep, drawn))}
        for name, keep in once.items()
    ]
    found = collocates(seen.question, watched.contexts, word, n_word).to_pylist()
    sides = [[r for r in found if (r["log_odds_nats"] > 0) == is_f] for is_f in (True, False)]
    return {
        "word_evidence": [evidence],
        "word_copies": counted if n else [],
        "word_source": _source_rows(seen, word, pairs, drawn),
        "word_collocate": [row for side in sides for row in side[:N_COLLOCATES]],
    }


def _lean_row(found: WordLean) -> Row:
    return {
        "n_documents": found.n_documents,
        "n_pair_f": found.n_pair_f,
        "n_pair_m": found.n_pair_m,
        "delta_nats": _known(found.delta_nats),
        "delta_nats_low": _known(found.low_nats),
        "delta_nats_high": _known(found.high_nats),
    }


def _source_rows(
    seen: Sightings, word: int, pairs: Sequence[WordPair], drawn: Ints | None
) -> list[Row]:
    """One row per source that holds the word, those with most of its co-occurrences first."""
    source = seen.documents.source
    found = []
    for k in np.unique(source[seen.document[seen.word == word]]):
        own = lean(seen, word, pairs, source == k)
        without = lean(seen, word, pairs, source != k, drawn)
        row = {
            "source": seen.documents.sources[k],
            "n_word": own.n_word,
            **_lean_row(own),
            "delta_without_nats": _known(without.delta_nats),
            "delta_without_nats_low": _known(without.low_nats),
            "delta_without_nats_high": _known(without.high_nats),
        }
        found.append(row)
    return sorted(found, key=lambda r: (-r["n_pair_f"] - r["n_pair_m"], r["source"]))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def add_association(
    store: Store,
    evidence: Evidence,
    contrast: str,
    n_word: NDArray[np.int64],
    rows: Sequence[Row],
) -> None:
    """Add how frequent each word is, and what ``corpus associate`` found, where it was run."""
    corpus, targets = evidence.corpus["corpus"], contrast.split("/")
    of = ds.field("word").isin(pa.array([row["word"] for row in rows], pa.string()))
    deltas = store.read("word_delta", of & (ds.field("contrast") == contrast), corpus=corpus)
    near = store.read("word_association", of & ds.field("target").isin(targets), corpus=corpus)
    error = {r["word"]: r["delta_nats_se"] for r in deltas.to_pylist()}
    pmi = {(r["word"], r["target"]): r["pmi_nats"] for r in near.to_pylist()}
    for row in rows:
        row["per_million"] = 1e6 * row["n_word"] / evidence.corpus["n_kept_tokens"]
        row["frequency_rank"] = 1 + int((n_word > row["n_word"]).sum())
        row["pmi_f_nats"] = pmi.get((row["word"], targets[0])) if len(targets) == 2 else None
        row["pmi_m_nats"] = pmi.get((row["word"], targets[-1])) if len(targets) == 2 else None
        row["delta_nats_count_se"] = error.get(row["word"])


def snippet_rows(
    evidence: Evidence,
    question: Inquiry,
    documents: DocumentTable,
    places: Sequence[Occurrence],
    sampling: Sampling,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[tuple[Occurrence, Row]]:
    """Rows of ``word_snippet`` without their key, each with its place."""
    marks, n_copies = np.unique(documents.mark, return_counts=True)
    copies = n_copies[np.searchsorted(marks, np.array([p.mark for p in places], np.uint64))]
    at = {(p.shard, p.row) for p in places}
    source = {
        (shard, row): documents.sources[k]
        for shard, row, k in zip(
            documents.shard.tolist(), documents.row.tolist(), documents.source.tolist(), strict=True
        )
        if (shard, row) in at
    }
    found, number = [], dict.fromkeys(((p.word, p.side) for p in places), 0)
    texts = snippets(evidence, question, places, progress)
    for snippet, n in zip(texts, copies.tolist(), strict=True):
        place = snippet.place
        number[place.word, place.side] += 1
        row = {
            "side": SIDES[place.side],
            "place": number[place.word, place.side],
            "seed": sampling.seed,
            "target": snippet.target,
            "text_before": snippet.before,
            "keyword": snippet.keyword,
            "text_after": snippet.after,
            "is_text": snippet.text,
            "shard": evidence.shards[place.shard].name,
            "source_row": place.row,
            "source": source[place.shard, place.row],
            "file": snippet.file,
            "position": place.position,
            "n_copies": n,
        }
        found.append((place, row))
    return found


def replace_words(
    store: Store,
    corpus: str,
    contrast: str,
    words: Sequence[str],
    rows: pa.Table,
    table: str,
    run_id: str,
) -> None:
    """Replace the rows of these words in a table by new ones."""
    old = store.read(table, corpus=corpus)
    asked = pc.and_(
        pc.equal(old["contrast"], contrast), pc.is_in(old["word"], pa.array(words, pa.string()))
    )
    both = pa.concat_tables([old.filter(pc.invert(asked)), rows])
    store.replace(table, both, {"corpus": corpus}, run_id)
