"""The documents behind a model's preference, from rows of ``attribution``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import (
    Cell,
    Missing,
    PageTable,
    Section,
    counted,
    number,
    shown,
    stem,
    table,
)
from plumbline.pipelines.report.rows import Rows
from plumbline.warehouse.query.method_validation import OF_BENCHMARKS, OF_WORDS, validation

PLACE = 1015
NAMES = ("attribution",)
#: Most preferences with a method in a report: the last that `attribute` explained.
_MOST = 12
_ALL = """FROM attribution
ORDER BY run_id DESC, corpus, model, model_key, query, contrast, method, part, place < 0, place;"""
#: The rows of the preferences whose ``asked_id`` is in the list ``$asked``.
QUERY = """FROM attribution WHERE list_contains($asked, asked_id)
ORDER BY query, method, part, place < 0, place"""


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """A section for each of the last ``_MOST`` combinations of preference and method."""
    rows = facts.query(_ALL)
    if not rows:
        command = "plumbline attribute --model MODEL --corpus NAME --word WORD"
        yield Missing("Documents behind a preference", command)
    studies = facts.query("FROM datamodelling_score ORDER BY ALL;")
    answers = rows.groups("corpus", "model_key", "query", "contrast", "method")
    for answer in answers[:_MOST]:
        first = answer[0]
        outcomes = OF_BENCHMARKS if first["query"].startswith("benchmark ") else OF_WORDS
        verdict = validation(studies, first["method"], outcomes)
        note = f"By retraining (docs/attribution-study.md), {verdict}."
        yield attribution_section(answer, (note,), folded=True)


def attribution_section(rows: Rows, notes: Sequence[str] = (), *, folded: bool = False) -> Section:
    """The section on one preference by one method. ``notes`` are further sentences."""
    first = rows[0]
    tables = [
        _documents(rows.only(lambda r: r["place"] > 0), "female", folded),
        _documents(rows.only(lambda r: r["place"] < 0), "male", folded),
        _sums(rows, "source", "Sources, with 95% intervals over documents", folded),
        _sums(rows, "collocate", "Words nearby: their parts of the documents' scores", folded),
    ]
    return Section(
        stem("attribution", *(first[k] for k in ("corpus", "model", "query", "method"))),
        f"{first['query']}, {first['model']}: {first['method']}",
        [preference(first), f"Scores are in {first['unit']}.", *notes],
        tables=[t for t in tables if t.rows],
    )


def preference(row: Mapping[str, Any]) -> str:
    """A sentence on the preference that the section explains.

    >>> preference({"preference_nats": -0.512, "n_pairs": 4, "model": "small"})
    'small prefers the male sentences by 0.51 nats, the mean over 4 pairs.'
    >>> preference({"preference_nats": 0.0, "n_pairs": 4, "model": "dummy"})
    'dummy prefers neither group: the mean over 4 pairs is 0.'
    """
    pairs = counted(row["n_pairs"], "pair")
    if not row["preference_nats"]:
        return f"{row['model']} prefers neither group: the mean over {pairs} is 0."
    side = "female" if row["preference_nats"] > 0 else "male"
    size = shown(abs(row["preference_nats"]), 2)
    return f"{row['model']} prefers the {side} sentences by {size} nats, the mean over {pairs}."


def _documents(rows: Rows, side: str, folded: bool) -> PageTable:
    documents = rows.where(part="document")
    return table(
        f"Documents that made it more {side}",
        documents,
        [
            ("score", _score),
            ("% of all", lambda r: number(100 * r["share"], 1)),
            ("before", lambda r: Cell(r["text_before"] or "", None, True)),
            ("word", lambda r: r["keyword"]),
            ("after", lambda r: r["text_after"]),
            ("where", lambda r: f"{r['name']}, {r['shard'].rpartition('/')[2]}:{r['source_row']}"),
        ],
        folded=folded,
    )


def _sums(rows: Rows, part: str, caption: str, folded: bool) -> PageTable:
    return table(
        caption,
        rows.where(part=part),
        [
            (part, "name"),
            ("documents", "n_documents"),
            ("score", _score),
            ("% of all", lambda r: number(100 * r["share"], 1)),
        ],
        folded=folded,
    )


def _score(row: Mapping[str, Any]) -> Cell:
    text = f"{row['score']:+.3g}"
    if row["score_low"] is not None:
        text += f" ({row['score_low']:+.3g} to {row['score_high']:+.3g})"
    return Cell(text, row["score"], True, row["score_low"], row["score_high"])
