"""The first page of a report."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.front import closed_world_check, matrix, opening_answer, scatter
from plumbline.pipelines.report.front.headline import headline, headline_pd
from plumbline.pipelines.report.front.parts import Part, models, robustness, text
from plumbline.pipelines.report.groups import set_name, sets
from plumbline.pipelines.report.model import Figure, Lead, Link, Page, count, first_of

#: Most names of benchmarks, models and corpora above the title; the rest is only counted.
_NAMED = 3
#: Questions that the page answers itself; the others link to their answers in the appendix.
_OWN = ("Which way, how far, how sure?", "Does the model follow the text?")
#: Questions about the closed world, whose verdict stands apart.
_VALIDATION = ("Does it turn round when the text does?", "Does counting find the lean of the text?")


@dataclass(frozen=True)
class Front:
    """The first page.

    Attributes:
        about: pairs of a label and a text, for the line above the title.
        check: verdict on the closed world; ``None`` without one.
        others: questions that only the appendix answers.
        alerts: warnings to read before the figures.
        questions: the warehouse's other benchmarks, each with the command that reports on it.
        up: path to the directory of the appendix.
        searches: addresses of the pages that search ``words`` and ``pairs``; empty without one.
        links: name of a model or benchmark -> address of its page.
        doors: links to other pages of the site, each with a line on its content.
    """

    title: str
    about: Sequence[tuple[str, str]]
    answer: opening_answer.Opening
    figure: Figure | None
    matrix: matrix.Matrix | None
    parts: Sequence[Part] = ()
    check: closed_world_check.ClosedWorldVerdict | None = None
    others: Sequence[Lead] = ()
    alerts: Sequence[str] = ()
    questions: Sequence[tuple[str, str]] = ()
    up: str = ""
    searches: Mapping[str, str] = field(default_factory=lambda: {"words": "", "pairs": ""})
    links: Mapping[str, str] = field(default_factory=dict)
    doors: Sequence[Link] = ()


def front(facts: Facts, appendix: Page) -> Front:
    """The first page of a warehouse, with alerts and other answers from ``appendix``."""
    head = headline(facts)
    text_part = text(facts, head)
    parts = [models(facts, head), text_part, robustness(facts)]
    others = [lead for lead in appendix.answer if lead.question not in _OWN + _VALIDATION]
    return Front(
        opening_answer.title(facts, head, others),
        _about(facts),
        opening_answer.answer(facts, head, others, text_part.sentences if text_part else ()),
        scatter.figure(facts, head) if head else None,
        matrix.matrix(facts),
        [part for part in parts if part is not None],
        closed_world_check.closed_world(facts),
        others,
        [alert for section in appendix.sections for alert in section.alerts],
        _questions(facts),
    )


def _about(facts: Facts) -> list[tuple[str, str]]:
    """Date of the last run, benchmarks, models, corpora; with totals if the facts are limited."""
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


def figures_of(first: Front) -> list[Figure]:
    """The plots of the first page."""
    drawn = [first.figure, *(part.figure for part in first.parts)]
    return [figure for figure in drawn if figure is not None]


def named_after(first: Front, name: str) -> Front:
    """The page with ``name-`` put before the names of its plots."""

    def named(figure: Figure | None) -> Figure | None:
        return figure and replace(figure, stem=f"{name}-{figure.stem}")

    parts = [replace(part, figure=named(part.figure)) for part in first.parts]
    return replace(first, figure=named(first.figure), parts=parts)
