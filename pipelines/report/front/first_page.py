"""The first page of a report."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.front import matrix
from plumbline.pipelines.report.front.headline import headline, headline_pd
from plumbline.pipelines.report.model import Figure, Page, Section, count, first_of, shown
from plumbline.pipelines.report.rows import Rows, with_ends
from plumbline.pipelines.report.section_templates import sections_from
from plumbline.warehouse.finding import Verdict

#: Most benchmarks, models and corpora that are named above the title; the others are counted.
_NAMED = 3
#: Sections of the appendix that the page has said all about, or that answer no question.
_OWN = ("methods", "limits", "preference", "follow", "swapped", "planted", "text", "models", "runs")
#: What a closed world must show of the planted leans: metric, its subset, the claim, the side of
#: an interval from a value, that value, and the digits to show.
_CHECKS: tuple[tuple[str, str, str, Verdict, float, int], ...] = (
    ("rank correlation", "words, measured on planted", "counting finds them", "above", 0.9, 3),
    ("slope", "words, planted delta", "a model trained on them follows them", "above", 0, 2),
    ("correlation", "words, swapped on straight", "swapped leans turn it round", "below", 0, 2),
)


@dataclass(frozen=True)
class ClosedWorldVerdict:
    """The result of the closed-world check, and a sentence with its estimates."""

    has_passed: bool
    sentence: str


@dataclass(frozen=True)
class Front:
    """The first page.

    Attributes:
        about: labels and texts of the line above the title.
        answer: the question, as title; the answer, how sure it is, what it doesn't show; its chart.
        parts: what is known about the models, the text, and other benchmarks and texts.
        check: result of the closed-world check; ``None`` if there is none.
        others: sections that only the appendix has.
        alerts: warnings to read before the figures.
        questions: the warehouse's other benchmarks, each with the command that reports on it.
        searches: addresses of the pages that search ``words`` and ``pairs``; empty without a page.
    """

    about: Sequence[tuple[str, str]]
    answer: Section
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
        return [figure for part in (self.answer, *self.parts) for figure in part.figures]


def front(facts: Facts, appendix: Page) -> Front:
    """The first page of a warehouse. Alerts and other sections come from ``appendix``."""
    others = [s for s in appendix.sections if s.intro and s.anchor not in _OWN]
    answer, *parts = answered(facts, others)
    return Front(
        _about(facts),
        answer,
        matrix.matrix(facts),
        parts,
        closed_world(facts),
        others,
        [alert for section in appendix.sections for alert in section.alerts],
        _questions(facts),
    )


def answered(facts: Facts, others: Sequence[Section]) -> list[Section]:
    """The answer, and the parts on the models, the text, and other benchmarks and texts."""
    questions = [section for section in others if "?" in section.title]
    values = {"head": headline(facts), "others": questions, "pd": headline_pd(facts)}
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
            made_up = {r["corpus"] for r in facts.metrics("slope", subset="words, planted delta")}
            names = [
                f"{'made-up text' if r['corpus'] in made_up else r['corpus']} "
                f"({count(r['n_tokens'] or r['n_kept_tokens']).text} tokens)"
                for r in facts.rows(query)
            ]
        about.append((label, first_of(names, _NAMED)))
    return [(name, words) for name, words in about if words]


def _questions(facts: Facts) -> list[tuple[str, str]]:
    """The warehouse's other benchmarks, with the commands that report on them."""
    about = {row["benchmark"] for row in headline_pd(facts)}
    measured = facts.whole.metrics("pd", subset="all").only(lambda r: r["n"])
    names = sorted({row["benchmark"] for row in measured} - about)
    command = "plumbline report --benchmark"
    return [(name, f"{command} {shlex.quote(glob.escape(name))}") for name in names]


def closed_world(facts: Facts) -> ClosedWorldVerdict | None:
    """The check on planted leans; ``None`` without such leans, or if nothing has an interval.

    It passes if all intervals of ``_CHECKS`` are on the expected side. Only models trained on the
    planted leans must follow them; correlations between straight and swapped leans may be missing.
    """
    trained_on = {(r["model"], r["trained_on"]) for r in facts.rows("model")}
    results, has_passed = [], True
    for metric, subset, claim, expected, null, digits in _CHECKS:
        estimates: Rows = facts.metrics(metric, subset=subset).but(value_low=None)
        if metric == "slope":
            estimates = estimates.only(lambda r: (r["model"], r["corpus"]) in trained_on)
        if metric == "rank correlation" and not facts.metrics(metric, subset=subset):
            return None
        if estimates:
            end, sign = ("value_low", 1) if expected == "above" else ("value_high", -1)
            worst = min(estimates, key=lambda r: sign * r[end])
            value, low, high = (shown(worst[c], digits) for c in with_ends("value"))
            is_met = finding(worst, null=null).verdict == expected
            has_passed &= is_met
            said = claim if is_met else f"not shown: {claim}"
            results.append(f"{said} ({metric} {value}, {low} to {high})")
    sentence = "; ".join(results)
    return ClosedWorldVerdict(has_passed, sentence[0].upper() + sentence[1:]) if results else None
