"""Conclusions of a study: how its predictions turned out, and which methods to trust."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plumbline.pipelines.report.rows import Row, Rows
from plumbline.pipelines.reproduce.cause import side
from plumbline.pipelines.reproduce.retraining.design import AttributionDesign, ScorePrediction
from plumbline.warehouse.query.method_validation import PLACEBOS
from plumbline.warehouse.text.escape import markdown_row

_HIDDEN = ("design_sha256", "run_id", "n_words", "n_halves")


def shown_row(row: Row) -> dict[str, Any]:
    """Printed row of the table."""
    return {name: row[name] for name in row if name not in _HIDDEN}


def lines(design: AttributionDesign, rows: Sequence[Row]) -> list[str]:
    """How each prediction turned out; then the methods to trust for each outcome but placebos."""
    shown = [f"{p.name}: expected {p.expected}, found {_side(p, rows)}" for p in design.prediction]
    for group in Rows(rows).groups("corpus", "outcome"):
        first = group[0]
        if first["outcome"] not in PLACEBOS:
            trusted = ", ".join(row["method"] for row in group if row["is_trusted"])
            shown.append(
                f"{first['corpus']}, {first['outcome']}: trust {trusted or 'none of the methods'}"
            )
    return shown


def page(design: AttributionDesign, rows: Sequence[Row]) -> str:
    """Results of docs/attribution-study.md: a table per outcome, then the conclusions."""
    parts = [f"Design `{design.sha256[:16]}...`."]
    heads = ("method", "score (95% interval)", "over the best baseline", "CPU s", "trust it")
    for group in Rows(rows).groups("corpus", "outcome"):
        first = group[0]
        about = f"chance {first['chance']:.2f}"
        if first["ceiling"] is not None:
            about += f", ceiling {_span(first, 'ceiling')}, {first['n_halves']} halves"
        title = f"**{first['corpus']}: {first['outcome']}** ({first['n_words']} words; {about})"
        cells = [
            (
                row["method"],
                _span(row, "score"),
                _span(row, "over_baseline"),
                f"{row['cpu_seconds']:.0f}",
                "yes" if row["is_trusted"] else "",
            )
            for row in sorted(group, key=lambda row: -row["score"])
        ]
        table = map(markdown_row, *zip(heads, ("---",) * len(heads), *cells, strict=True))
        parts.append("\n".join([title, "", *table]))
    parts.append("\n".join(f"- {line}" for line in lines(design, rows)))
    return "\n\n".join(parts) + "\n"


def _span(row: Row, name: str) -> str:
    """A figure with its interval.

    >>> _span({"score": 0.5, "score_low": -0.125, "score_high": 1.0}, "score")
    '0.50 (−0.12 to 1.00)'
    """
    if row[name] is None:
        return ""
    value, low, high = (f"{row[name + end]:.2f}" for end in ("", "_low", "_high"))
    return f"{value} ({low} to {high})".replace("-", "−")


def _side(prediction: ScorePrediction, rows: Sequence[Row]) -> str:
    """Side of 0 on which the interval of a prediction lies; ``not measured`` without its row."""
    names = ("corpus", "method", "outcome")
    expected = tuple(getattr(prediction, name) for name in names)
    for row in rows:
        if tuple(row[name] for name in names) == expected:
            low, high = (row[f"{prediction.column}_{end}"] for end in ("low", "high"))
            if low is None:
                return side(low, high)
            chance = row["chance"] if prediction.column == "score" else 0
            return side(low - chance, high - chance)
    return "not measured"
