"""The check on the closed world: does the instrument find the leans that were planted?"""

from __future__ import annotations

from dataclasses import dataclass

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.model import shown
from plumbline.pipelines.report.rows import Rows
from plumbline.warehouse.query.finding import Verdict

#: Least rank correlation of measured with planted leans, at the low end of its interval.
LEAST_FOUND = 0.9


@dataclass(frozen=True)
class ClosedWorldVerdict:
    """The result of the check, in a sentence; ``more`` is the anchor of its appendix section."""

    has_passed: bool
    sentence: str
    more: str = "planted"


def closed_world(facts: Facts) -> ClosedWorldVerdict | None:
    """The check on planted leans; ``None`` if there are none, or nothing has an interval.

    It passes if all intervals are on the expected side: counting's rank correlation above
    ``LEAST_FOUND``, a model's slope on the planted lean of its text above 0, and, if a text with
    swapped leans was made, the correlation between both models below 0.
    """
    counted = facts.metrics("rank correlation", subset="words, measured on planted")
    followed = facts.metrics("slope", subset="words, planted delta")
    turned = facts.metrics("correlation", subset="words, swapped on straight")
    if not counted:
        return None
    trained_on = {(r["model"], r["trained_on"]) for r in facts.rows("model")}
    followed = followed.only(lambda r: (r["model"], r["corpus"]) in trained_on)
    parts: list[tuple[Rows, str, str, Verdict, int]] = [
        (counted, "counting finds the planted leans", "rank correlation", "above", 3),
        (followed, "a model trained on them follows", "slope", "above", 2),
        (turned, "swapped leans turn it round", "correlation", "below", 2),
    ]
    results, has_passed = [], True
    for rows, claim, name, expected, digits in parts:
        estimates = [r for r in rows if r["value_low"] is not None]
        if estimates:
            is_above = expected == "above"
            worst = min(estimates, key=lambda r: r["value_low"] if is_above else -r["value_high"])
            null = LEAST_FOUND if rows is counted else 0.0
            has_passed &= finding(worst, null=null).verdict == expected
            ends = " to ".join(shown(worst[end], digits) for end in ("value_low", "value_high"))
            results.append(f"{claim} ({name} {shown(worst['value'], digits)}, {ends})")
    sentence = "; ".join(results)
    return ClosedWorldVerdict(has_passed, sentence[0].upper() + sentence[1:]) if results else None
