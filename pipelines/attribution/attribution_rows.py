"""Rows of the table ``attribution``: documents, sources and words behind a model's preferences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.jobs.corpus_lookup import sole_writer
from plumbline.jobs.evidence.lean import as_rows
from plumbline.jobs.evidence.sightings import Ints
from plumbline.pipelines.attribution.contract import METHODS, Floats, Progress, Query, Subject
from plumbline.pipelines.attribution.nearby import Nearby, nearby
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.run_records import config_hash
from plumbline.warehouse.storage.store import cast

Row = dict[str, Any]
#: Increased when the scores of one of our methods change.
VERSION = 1
#: Fewest documents behind the score of a listed collocate.
_LEAST = 2
#: Opens a progress display for a part of the work, by its name.
Shown = Callable[[str], AbstractContextManager[Progress]]


def attribute(
    subject: Subject,
    queries: Sequence[Query],
    methods: Sequence[str],
    benchmark: str | None,
    n: int,
    run_id: str,
    shown: Shown,
) -> list[Row]:
    """Attribute preferences by each method in turn; returns all requested rows, new and stored.

    Rows that the table has for the same pairs, text and options are not computed again. ``n`` is
    the number of documents and of words per side; all sources have a row unless their score is 0.

    Raises what the methods raise, and ``UsageProblem`` for pairs that the model can't score.
    """
    store, corpus = subject.store, subject.text.corpus
    backend = open_backend(subject.model, ModelOptions())
    where = {"corpus": corpus, "model_key": backend.identity.key}
    asked_ids = {(q.name, m): _asked_id(subject, q, m, n) for q in queries for m in methods}
    around: Nearby | None = None
    with sole_writer(store, corpus):
        for name in methods:
            stored_ids = set(store.read("attribution", **where)["asked_id"].to_pylist())
            missing = [query for query in queries if asked_ids[query.name, name] not in stored_ids]
            if not missing:
                continue
            if around is None:
                words = set().union(*(query.words for query in queries))
                with shown(f"look through {corpus}") as progress:
                    around = nearby(subject, sorted(words), progress)
            rows: list[Row] = []
            for query, scores in zip(missing, _scores(subject, missing, name, shown), strict=True):
                shared = {
                    "model": backend.identity.model,
                    "query": query.name,
                    "benchmark": benchmark,
                    "n_pairs": len(query.pairs),
                    "preference_nats": preference(backend, query),
                    "method": name,
                    "unit": METHODS.load(name).UNIT,
                    "asked_id": asked_ids[query.name, name],
                }
                rows += [shared | row for row in _parts(subject, query, scores, around, n)]
            _replace(subject, where, name, missing, rows, run_id)
        stored = store.read("attribution", **where).to_pylist()
    place = {asked_id: k for k, asked_id in enumerate(asked_ids.values())}
    own_rows = [row for row in stored if row["asked_id"] in place]
    return sorted(own_rows, key=lambda r: (place[r["asked_id"]], r["place"] < 0, r["place"]))


def preference(backend: Any, query: Query) -> float:
    """The model's preference in nats. Raises ``UsageProblem`` for a text that it can't score."""
    total = 0.0
    scored = backend.score([text for text, _ in query.texts()])
    for (text, weight), text_score in zip(query.texts(), scored, strict=True):
        if problem := text_score.problem:
            raise UsageProblem(f"sentence {text!r}", f"the model can't score it: {problem}")
        total += weight * text_score.logprob_nats
    return total


def _asked_id(subject: Subject, query: Query, method: str, n: int) -> str:
    counted_by = subject.text.evidence.corpus["run_id"]
    options = [subject.contrast, subject.model, subject.seed, n, VERSION]
    return config_hash({"query": str(query), "text": counted_by, "method": method, "how": options})


def _scores(subject: Subject, queries: Sequence[Query], method: str, shown: Shown) -> Floats:
    """A method's scores, float64[query, document]; 0 for documents that the model didn't read."""
    with shown(f"attribute by {method}") as progress:
        scores: Floats = METHODS.load(method).scores(queries, subject, progress)
    if subject.text.n_read is not None:
        scores[:, subject.text.n_read == 0] = 0
    return scores


def _parts(subject: Subject, query: Query, scores: Floats, around: Nearby, n: int) -> Iterator[Row]:
    """Rows of documents, sources and collocates, without the columns that are the same in all."""
    text, words = subject.text, sorted(query.words)
    table, read, total = text.documents, text.n_read, float(np.abs(scores).sum()) or 1.0
    places, documents = _ends(scores, n)
    quotations = around.texts(words, documents, scores, subject)
    for place, k, quoted in zip(places, documents.tolist(), quotations, strict=True):
        yield {
            "part": "document",
            "place": place,
            "name": table.sources[table.source[k]],
            "shard": text.evidence.shards[int(table.shard[k])].name,
            "source_row": int(table.row[k]),
            "n_documents": 1,
            "n_read": None if read is None else int(read[k]),
            "score": float(scores[k]),
            "share": float(abs(scores[k])) / total,
            **quoted,
        }
    n_read = None if read is None else np.bincount(table.source, read, len(table.sources))
    of_sources = _sums(table.source[text.read], scores[text.read], len(table.sources), total)
    for k, row in _listed(of_sources, len(table.sources)):
        tokens = None if n_read is None else int(n_read[k])
        yield {"part": "source", "name": table.sources[k], "n_read": tokens, **row}
    _, other, part = around.collocates(words, scores)
    vocabulary = around.question.vocabulary
    of_words = _sums(other, part, len(vocabulary), total)
    of_words["score"] *= of_words["n_documents"] >= _LEAST
    for k, row in _listed(of_words, n):
        yield {"part": "collocate", "name": vocabulary[k].as_py(), **row}


def _ends(scores: Floats, n: int) -> tuple[list[int], Ints]:
    """Places and indices of the ``n`` highest positive scores and the ``n`` lowest negative ones.

    Places count 1, 2, ... from the highest, and -1, -2, ... from the lowest score.

    >>> _ends(np.array([0.5, 0.0, -1.0, 2.0]), 1)
    ([1, -1], array([3, 2]))
    """
    order = np.argsort(-scores, kind="stable")
    high, low = order[scores[order] > 0][:n], order[scores[order] < 0]
    low = low[max(len(low) - n, 0) :]
    return [*range(1, len(high) + 1), *range(-len(low), 0)], np.concatenate([high, low])


def _listed(sums: dict[str, Any], n: int) -> Iterator[tuple[int, Row]]:
    """Index and row of the groups with the ``n`` highest positive and lowest negative sums."""
    places, groups = _ends(sums["score"], n)
    rows = as_rows({"place": np.array(places), **{name: x[groups] for name, x in sums.items()}})
    return zip(groups.tolist(), rows, strict=True)


def _sums(group: Ints, values: Floats, n_groups: int, total: float) -> dict[str, Any]:
    """Sums of documents' values by group; 95% t-intervals, with the documents as the sample.

    Intervals are NaN for fewer than two documents. ``share`` is sum of absolute values / ``total``.

    >>> sums = _sums(np.array([0, 0, 0, 1]), np.array([1.0, 2.0, 3.0, 4.0]), 2, 10.0)
    >>> sums["score"].tolist(), sums["score_low"].round(2).tolist(), sums["share"].tolist()
    ([6.0, 4.0], [-1.45, nan], [0.6, 0.4])
    """
    from scipy.special import stdtrit

    n = np.bincount(group, minlength=n_groups)
    score, squares, size = (
        np.bincount(group, x, n_groups) for x in (values, values**2, abs(values))
    )
    enough = np.where(n > 1, n, 2)
    variance = enough / (enough - 1) * np.maximum(squares - score**2 / np.maximum(n, 1), 0)
    half = np.where(n > 1, stdtrit(enough - 1, 0.975) * np.sqrt(variance), np.nan)
    ends = {"score_low": score - half, "score_high": score + half}
    return {"n_documents": n, "score": score, **ends, "share": size / total}


def _replace(
    subject: Subject,
    where: dict[str, str],
    method: str,
    queries: Sequence[Query],
    rows: list[Row],
    run_id: str,
) -> None:
    """Replace the rows of one method for these queries and the contrast; other rows stay."""
    constant = {**where, "contrast": subject.contrast, "run_id": run_id}
    new = cast(TABLES["attribution"], [constant | row for row in rows])
    old = subject.store.read("attribution", **where)
    same = pc.and_(pc.equal(old["method"], method), pc.equal(old["contrast"], subject.contrast))
    names = pa.array([query.name for query in queries], pa.string())
    same = pc.and_(same, pc.is_in(old["query"], names))
    both = pa.concat_tables([old.filter(pc.invert(same)), new])
    subject.store.replace("attribution", both, where, run_id)
