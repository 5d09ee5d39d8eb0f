"""The verdict on the closed world: whether the instrument finds what was planted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.model import shown
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.warehouse.query.finding import Verdict

#: Least rank correlation of measured with planted leans, at the low end of its interval.
LEAST_FOUND = 0.9


@dataclass(frozen=True)
class Check:
    """Whether it passed, in a sentence; ``more`` is the section of the appendix that shows it."""

    has_passed: bool
    sentence: str
    more: str = "planted"


def closed_world(facts: Facts) -> Check | None:
    """What counting and models made of planted leans; ``None`` where none were planted.

    It passes where the interval of counting's rank correlation begins above ``LEAST_FOUND``, a
    model's slope on the planted lean above 0, and, where a text with the leans swapped was made,
    that of the correlation between both models ends below 0.
    """
    found = facts.metrics("rank correlation", subset="words, measured on planted")
    followed = facts.metrics("slope", subset="words, planted delta")
    turned = facts.metrics("correlation", subset="words, swapped on straight")
    if not found:
        return None
    own = {(r["model"], r["trained_on"]) for r in facts.rows("model")}
    followed = followed.only(lambda r: (r["model"], r["corpus"]) in own)
    parts: list[tuple[Rows, str, str, Callable[[Row], float], Verdict, int]] = [
        (found, "counting finds the planted leans", "rank correlation", _low, "above", 3),
        (followed, "a model trained on them follows", "slope", _low, "above", 2),
        (
            turned,
            "swapped leans turn it round",
            "correlation",
            lambda r: -r["value_high"],
            "below",
            2,
        ),
    ]
    said, has_passed = [], True
    for rows, what, name, margin, wanted, digits in parts:
        known = [r for r in rows if r["value_low"] is not None]
        if known:
            worst = min(known, key=margin)
            null = LEAST_FOUND if rows is found else 0.0
            has_passed &= finding(worst, null=null).verdict == wanted
            ends = " to ".join(shown(worst[end], digits) for end in ("value_low", "value_high"))
            said.append(f"{what} ({name} {shown(worst['value'], digits)}, {ends})")
    sentence = "; ".join(said)
    return Check(has_passed, sentence[0].upper() + sentence[1:]) if said else None


def _low(row: Row) -> float:
    return float(row["value_low"])
