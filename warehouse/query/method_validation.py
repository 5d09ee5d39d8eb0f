"""Validation of attribution methods by studies that retrain models.

The studies are those in a warehouse (`plumbline reproduce attribution`). Without any, Plumbline's
shipped study is used.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import pyarrow as pa
from pyarrow import csv

Row = Mapping[str, Any]
#: Predicted outcomes: the mean preference, each word's preference, and each word's difference from
#: the mean. Placebos: a word is predicted by another word's scores, or words of a generated text
#: are predicted that lean least in it.
BENCHMARK, WORDS, OWN = "benchmark", "words", "words, own part"
OTHER_WORD, PLACEBO_WORDS = "another word's own part", "placebo words, own part"
#: Outcome in a generated text whose words lean in one of its sources, the planted one: share of
#: words for which that source has the largest sum of scores to the side that the word leans to.
FIRST, PLACEBO_FIRST = "planted source first", "planted source first for placebo words"
#: Outcomes to validate for questions about words, and for questions about a benchmark.
OF_WORDS, OF_BENCHMARKS = (WORDS, OWN, FIRST), (BENCHMARK,)
PLACEBOS = (OTHER_WORD, PLACEBO_WORDS, PLACEBO_FIRST)
#: The table ``datamodelling_score`` of the study that Plumbline ships.
SHIPPED = resources.files("plumbline.warehouse.query") / "datamodelling_score.csv"


@dataclass(frozen=True)
class Validation:
    """The results of studies for one method, as rows of ``datamodelling_score``."""

    method: str
    rows: Sequence[Row]

    @property
    def is_trusted(self) -> bool:
        """True if there are rows, and all of them trust the method."""
        return bool(self.rows) and all(row["is_trusted"] for row in self.rows)

    def __str__(self) -> str:
        """The verdict as a sentence.

        >>> row = {"corpus": "novels", "outcome": WORDS, "score": 0.4, "score_low": 0.3}
        >>> trusted = {**row, "score_high": 0.5, "is_trusted": True}
        >>> print(Validation("counts", [trusted]))
        counts is validated: LDS 0.40 (0.30 to 0.50) on novels (words)
        >>> print(Validation("ngram", [{**trusted, "is_trusted": False}]))
        ngram is not shown to be better than chance and baselines on novels (words)
        """
        if not self.rows:
            return f"{self.method} is not validated here"
        parts = []
        if trusted := [_figure(row) for row in self.rows if row["is_trusted"]]:
            parts.append(f"is validated: {', '.join(trusted)}")
        if failed := [_place(row) for row in self.rows if not row["is_trusted"]]:
            where = ", ".join(failed)
            parts.append(f"is not shown to be better than chance and baselines on {where}")
        return f"{self.method} {'; it '.join(parts)}"


def validation(rows: Sequence[Row], method: str, outcomes: Collection[str]) -> Validation:
    """The studies' results for a method and some outcomes.

    ``rows`` of table ``datamodelling_score``; if empty, the shipped study's rows are used.
    """
    chosen = [r for r in rows or shipped() if r["method"] == method and r["outcome"] in outcomes]
    return Validation(method, sorted(chosen, key=lambda row: (row["corpus"], row["outcome"])))


def shipped() -> list[Row]:
    """Rows of ``datamodelling_score`` of the shipped study."""
    rows: list[Row] = csv.read_csv(pa.BufferReader(SHIPPED.read_bytes())).to_pylist()
    return rows


def _place(row: Row) -> str:
    return f"{row['corpus']} ({row['outcome']})"


def _figure(row: Row) -> str:
    """The score with its interval: a linear datamodelling score (LDS), or a share of words."""
    measure = "share" if row["outcome"] in (FIRST, PLACEBO_FIRST) else "LDS"
    span = f"{row['score']:.2f} ({row['score_low']:.2f} to {row['score_high']:.2f})"
    return f"{measure} {span} on {_place(row)}"
