"""The first page of a report."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.front import matrix
from plumbline.pipelines.report.front.headline import (
    Headline,
    headline,
    headline_figure,
    headline_pd,
    per_nat,
)
from plumbline.pipelines.report.model import Figure, Page, Section, count, first_of, shown
from plumbline.pipelines.report.rows import Rows, set_name, sets
from plumbline.pipelines.report.section_templates import sections_from
from plumbline.warehouse.finding import Verdict

#: Most benchmarks, models and corpora that are named above the title; the others are counted.
_NAMED = 3
#: Sections of the appendix that the page has said all about, or that answer no question.
_OWN = ("methods", "limits", "preference", "follow", "swapped", "planted", "text", "models", "runs")
#: Least rank correlation of counted with planted leans, at the low end of its interval.
LEAST_FOUND = 0.9


@dataclass(frozen=True)
class ClosedWorldVerdict:
    """The result of the closed-world check; ``more`` is the anchor of its appendix section."""

    has_passed: bool
    sentence: str
    more: str = "planted"


@dataclass(frozen=True)
class Front:
    """The first page.

    Attributes:
        about: labels and texts of the line above the title.
        answer: the question, as title; the answer, and how sure it is and what it doesn't show.
        parts: what is known about the models, the text, and other benchmarks and texts.
        check: result of the closed-world check; ``None`` if there is none.
        others: sections that only the appendix has.
        alerts: warnings to read before the figures.
        questions: the warehouse's other benchmarks, each with the command that reports on it.
        searches: addresses of the pages that search ``words`` and ``pairs``; empty without a page.
    """

    about: Sequence[tuple[str, str]]
    answer: Section
    figure: Figure | None
    matrix: matrix.Matrix | None
    parts: Sequence[Section] = ()
    check: ClosedWorldVerdict | None = None
    others: Sequence[Section] = ()
    alerts: Sequence[str] = ()
    questions: Sequence[tuple[str, str]] = ()
    searches: Mapping[str, str] = field(default_factory=lambda: {"words": "", "pairs": ""})

    @property
    def figures(self) -> list[Figure]:
        """The charts of the page."""
        of_parts = [figure for part in self.parts for figure in part.figures]
        return [*([self.figure] if self.figure else []), *of_parts]


def front(facts: Facts, appendix: Page) -> Front:
    """The first page of a warehouse. Alerts and other sections come from ``appendix``."""
    head = headline(facts)
    others = [s for s in appendix.sections if s.intro and s.anchor not in _OWN]
    answer, *parts = answered(facts, head, others)
    return Front(
        _about(facts),
        answer,
        headline_figure(facts, head) if head else None,
        matrix.matrix(facts),
        parts,
        closed_world(facts),
        others,
        [alert for section in appendix.sections for alert in section.alerts],
        _questions(facts),
    )


def answered(facts: Facts, head: Headline | None, others: Sequence[Section]) -> list[Section]:
    """The answer, and the parts on the models, the text, and other benchmarks and texts."""
    questions = [section for section in others if "?" in section.title]
    values = {"head": head, "others": questions, "headline_pd": headline_pd, "per_nat": per_nat}
    made = sections_from('{% include "_front" %}', facts, **values)
    return [part for part in made if isinstance(part, Section)]


def _about(facts: Facts) -> list[tuple[str, str]]:
    """Date of the last run, benchmarks, models and corpora; totals too if the facts are limited."""
    dates = [str(row["started"])[:10] for row in facts.rows("run")]
    about = [("Date", max(dates, default=""))]
    for noun, plural, query in (
        ("benchmark", "benchmarks", "score"),
        ("model", "models", "score"),
        ("corpus", "corpora", "ledger"),
    ):
        names, all_names = (
            list(dict.fromkeys(str(row[noun]) for row in scope.rows(query)))
            for scope in (facts, facts.whole)
        )
        if len(names) < len(all_names):
            label = f"{len(names):,} of {len(all_names):,} {plural}"
        else:
            label = noun.capitalize() if len(names) == 1 else f"{len(names):,} {plural}"
        if noun == "corpus":
            names = [
                f"{r['corpus']} ({count(r['n_tokens'] or r['n_kept_tokens']).text} tokens)"
                for r in facts.rows(query)
            ]
        about.append((label, first_of(names, _NAMED)))
    return [(name, words) for name, words in about if words]


def _questions(facts: Facts) -> list[tuple[str, str]]:
    """The warehouse's other benchmarks, with the commands that report on them."""
    shown = {str(row["benchmark"]) for row in headline_pd(facts)}
    labels: dict[str, list[str]] = {}
    for columns in sets(facts.whole.metrics("pd", subset="all").only(lambda r: r["n"])):
        labels.setdefault(columns["benchmark"], []).append(set_name(columns))
    command = "plumbline report --benchmark"
    return [
        (names[0] if len(names) == 1 else name, f"{command} {shlex.quote(glob.escape(name))}")
        for name, names in labels.items()
        if name not in shown
    ]


def closed_world(facts: Facts) -> ClosedWorldVerdict | None:
    """The check on planted leans; ``None`` without such leans, or if nothing has an interval.

    It passes if all intervals are on the expected side. The rank correlation of counted with
    planted leans must be above ``LEAST_FOUND``, and a model's slope on its text's planted leans
    above 0. The correlation between models of straight and swapped leans, if any, must be below 0.
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
            ends = " to ".join(shown(worst[end], digits) for end in ("value_low", "value_high"))
            is_met = finding(worst, null=null).verdict == expected
            has_passed &= is_met
            how = f"{name} {shown(worst['value'], digits)}, {ends}"
            results.append(f"{'' if is_met else 'not shown: '}{claim} ({how})")
    sentence = "; ".join(results)
    return ClosedWorldVerdict(has_passed, sentence[0].upper() + sentence[1:]) if results else None
