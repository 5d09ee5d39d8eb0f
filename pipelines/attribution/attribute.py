"""Which documents, sources and words of a text made preferences of a model; writes the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.eval_workers.models import open_backend
from plumbline.jobs.corpus_lookup import sole_writer
from plumbline.jobs.evidence.sightings import Ints
from plumbline.pipelines.attribution.contract import METHODS, Floats, Progress, Query, Subject
from plumbline.pipelines.attribution.nearby import Nearby, nearby
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.run_records import config_hash
from plumbline.warehouse.storage.store import cast

Row = dict[str, Any]
#: Raised when a method of ours gives other scores.
VERSION = 1
#: Documents behind the score of a word that is listed, at least.
_LEAST = 2
#: Opens the progress of a part of the work by its name.
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
    """Attribute preferences by each method in its turn; returns all rows, also those of before.

    What the table has of the same pairs, text and options is not computed again. ``n``: documents
    and words of each side that are kept; of sources all are.

    Raises what the methods raise, and ``UsageProblem`` for pairs that the model can't score.
    """
    subject.store.read("attribution")
    backend = open_backend(subject.model, subject.how)
    identity = backend.identity
    where = {"corpus": subject.text.corpus, "model_key": identity.key}
    constant = {**where, "model": identity.model, "contrast": subject.contrast, "run_id": run_id}
    around: Nearby | None = None
    with sole_writer(subject.store, subject.text.corpus):
        for name in methods:
            method = METHODS.load(name)
            asked = {query.name: _asked_id(subject, query, name, n) for query in queries}
            there = set(subject.store.read("attribution", **where)["asked_id"].to_pylist())
            left = [query for query in queries if asked[query.name] not in there]
            if not left:
                continue
            if around is None:
                words = sorted({p.word for query in queries for p in query.pairs if p.word})
                with shown(f"look through {subject.text.corpus}") as progress:
                    around = nearby(subject, words, progress)
            with shown(f"attribute by {name}") as progress:
                scores = method.scores(left, subject, progress)
            if subject.text.n_read is not None:
                scores[:, subject.text.n_read == 0] = 0
            rows: list[Row] = []
            for query, own in zip(left, scores, strict=True):
                of_query = {
                    **constant,
                    "query": query.name,
                    "benchmark": benchmark,
                    "n_pairs": len(query.pairs),
                    "preference_nats": preference(backend, query),
                    "method": name,
                    "unit": method.UNIT,
                    "asked_id": asked[query.name],
                }
                rows += [of_query | row for row in _parts(subject, query, own, around, n)]
            _replace(subject, where, name, [query.name for query in left], rows, run_id)
        every = subject.store.read("attribution", **where).to_pylist()
    ids = [_asked_id(subject, query, name, n) for query in queries for name in methods]
    own = [row for row in every if row["asked_id"] in ids]
    return sorted(own, key=lambda r: (ids.index(r["asked_id"]), r["place"] < 0, r["place"]))


def preference(backend: Any, query: Query) -> float:
    """The preference of the model itself, in nats. Raises ``UsageProblem`` for a problem."""
    total = 0.0
    texts = [text for pair in query.pairs for text in (pair.text_f, pair.text_m)]
    scored = backend.score(texts)
    for pair, f, m in zip(query.pairs, scored[::2], scored[1::2], strict=True):
        if problem := f.problem or m.problem:
            raise UsageProblem(f"sentence {pair.text_f!r}", f"the model can't score it: {problem}")
        total += pair.weight * (f.logprob_nats - m.logprob_nats)
    return total


def _asked_id(subject: Subject, query: Query, method: str, n: int) -> str:
    of_text = subject.text.evidence.corpus["run_id"]
    options = [subject.contrast, subject.model, str(subject.how), subject.seed, n, VERSION]
    return config_hash({"query": str(query), "text": of_text, "method": method, "how": options})


def _parts(subject: Subject, query: Query, scores: Floats, around: Nearby, n: int) -> Iterator[Row]:
    """Rows of documents, sources and collocates, without what they share."""
    text, words = subject.text, sorted({pair.word for pair in query.pairs if pair.word})
    table, read, total = text.documents, text.n_read, float(np.abs(scores).sum()) or 1.0
    places, some = _ends(scores, n)
    shown = around.texts(words, some, scores, subject)
    for place, k, quoted in zip(places, some.tolist(), shown, strict=True):
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
    used = text.read
    of_sources = _sums(table.source[used], scores[used], len(table.sources))
    n_read = None if read is None else np.bincount(table.source, read, len(table.sources))
    places, some = _ends(of_sources["score"], len(table.sources))
    for place, k in zip(places, some.tolist(), strict=True):
        tokens = None if n_read is None else int(n_read[k])
        row = {name: column[k].item() for name, column in of_sources.items()}
        share = float(np.abs(scores[table.source == k]).sum()) / total
        of = {"part": "source", "place": place, "name": table.sources[k], "share": share}
        yield {**of, "n_read": tokens, **row}
    _, other, part = around.collocates(words, scores)
    vocabulary = around.question.vocabulary
    of_words = _sums(other, part, len(vocabulary))
    enough = of_words["n_documents"] >= _LEAST
    absolute = np.bincount(other, np.abs(part), len(vocabulary))
    places, some = _ends(np.where(enough, of_words["score"], 0.0), n)
    for place, k in zip(places, some.tolist(), strict=True):
        row = {name: column[k].item() for name, column in of_words.items()}
        share = float(absolute[k]) / total
        yield {
            "part": "collocate",
            "place": place,
            "name": vocabulary[k].as_py(),
            "share": share,
        } | row


def _ends(scores: Floats, n: int) -> tuple[list[int], Ints]:
    """The ``n`` highest scores above 0 and lowest below: places 1, 2, ... and ..., -2, -1."""
    order = np.argsort(-scores, kind="stable")
    high, low = order[scores[order] > 0][:n], order[scores[order] < 0]
    low = low[len(low) - min(n, len(low)) :]
    return [*range(1, len(high) + 1), *range(-len(low), 0)], np.concatenate([high, low])


def _sums(group: Ints, values: Floats, n_groups: int) -> dict[str, Any]:
    """Sums of documents' values by group, and intervals as if the documents had been drawn.

    NaN, which the table keeps as NULL, where there are fewer than two.

    >>> found = _sums(np.array([0, 0, 0, 1]), np.array([1.0, 2.0, 3.0, 4.0]), 2)
    >>> found["score"].tolist(), found["score_low"].round(2).tolist()
    ([6.0, 4.0], [-1.45, nan])
    """
    from scipy.special import stdtrit

    n = np.bincount(group, minlength=n_groups)
    total, squares = (np.bincount(group, x, n_groups) for x in (values, values**2))
    enough = np.where(n > 1, n, 2)
    variance = enough / (enough - 1) * np.maximum(squares - total**2 / np.maximum(n, 1), 0)
    half = np.where(n > 1, stdtrit(enough - 1, 0.975) * np.sqrt(variance), np.nan)
    return {
        "n_documents": n,
        "score": total,
        "score_low": total - half,
        "score_high": total + half,
    }


def _replace(
    subject: Subject,
    where: dict[str, str],
    method: str,
    queries: Sequence[str],
    rows: list[Row],
    run_id: str,
) -> None:
    """Replace the rows of a method and some queries by new ones."""
    old = subject.store.read("attribution", **where)
    same = pc.and_(pc.equal(old["method"], method), pc.equal(old["contrast"], subject.contrast))
    same = pc.and_(same, pc.is_in(old["query"], pa.array(queries, pa.string())))
    for row in rows:
        for end in ("score_low", "score_high"):
            row[end] = None if row.get(end) != row.get(end) else row.get(end)
    both = pa.concat_tables([old.filter(pc.invert(same)), cast(TABLES["attribution"], rows)])
    subject.store.replace("attribution", both, where, run_id)
