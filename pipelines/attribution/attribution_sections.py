"""The answer of `plumbline attribute` in sentences and tables, from rows of ``attribution``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plumbline.pipelines.report.model import Cell, PageTable, Section, counted, shown, table
from plumbline.pipelines.report.rows import Rows

#: The rows of a run.
QUERY = """FROM attribution WHERE list_contains($asked, asked_id)
ORDER BY query, method, part, place < 0, place"""


def sections_of(rows: Sequence[Mapping[str, Any]]) -> Iterator[Section]:
    """A section for each preference and method, in the order of the rows."""
    for answer_rows in Rows(rows).groups("query", "method"):
        first = answer_rows[0]
        title = f"{first['query']}, {first['model']}: {first['method']}"
        tables = [
            _documents(answer_rows.only(lambda r: r["place"] > 0), "female"),
            _documents(answer_rows.only(lambda r: r["place"] < 0), "male"),
            _sums(answer_rows, "source", "Sources, with 95% intervals over documents"),
            _sums(answer_rows, "collocate", "Words nearby: their parts of the documents' scores"),
        ]
        sentences = [preference(first), f"Scores are in {first['unit']}."]
        yield Section("", title, sentences, tables=[t for t in tables if t.rows])


def preference(row: Mapping[str, Any]) -> str:
    """The preference that is explained, in a sentence.

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


def _documents(rows: Rows, side: str) -> PageTable:
    documents = rows.where(part="document")
    return table(
        f"Documents that made it more {side}",
        documents,
        [
            ("score", _score),
            ("% of all", lambda r: Cell(shown(100 * r["share"], 1), r["share"], True)),
            ("before", lambda r: Cell(r["text_before"] or "", None, True)),
            ("word", lambda r: r["keyword"]),
            ("after", lambda r: r["text_after"]),
            ("where", lambda r: f"{r['name']}, {r['shard'].rpartition('/')[2]}:{r['source_row']}"),
        ],
    )


def _sums(rows: Rows, part: str, caption: str) -> PageTable:
    return table(
        caption,
        rows.where(part=part),
        [
            (part, "name"),
            ("documents", "n_documents"),
            ("score", _score),
            ("% of all", lambda r: Cell(shown(100 * r["share"], 1), r["share"], True)),
        ],
    )


def _score(row: Mapping[str, Any]) -> Cell:
    """A score of whatever unit in three figures, with its interval where it has one."""
    text = f"{row['score']:+.3g}"
    if row["score_low"] is not None:
        text += f" ({row['score_low']:+.3g} to {row['score_high']:+.3g})"
    return Cell(text, row["score"], True, row["score_low"], row["score_high"])
