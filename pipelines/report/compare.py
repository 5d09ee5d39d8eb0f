"""The page of `plumbline disclosure compare`: what tuning changed, and its cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.pipelines.report import compare_methods as methods
from plumbline.pipelines.report import draw_compare
from plumbline.pipelines.report.compare_found import MEASURES, Found, read_found
from plumbline.pipelines.report.compare_words import leads
from plumbline.pipelines.report.model import (
    Cell,
    Figure,
    Missing,
    Page,
    Row,
    Section,
    Table,
    count,
    estimate,
    number,
    shown,
    text,
)
from plumbline.pipelines.report.queries import narrowed
from plumbline.pipelines.report.write import publish

if TYPE_CHECKING:
    from plumbline.pipelines.compare_order import Order

_UNITS = {"us": "US, %", "pd": "PD, points"}


def write_comparison(order: Order) -> Path:
    """Write the page to ``order.out``; returns its path. Raises ``BadInput`` as ``publish``."""
    return publish(make_page(order, read_found(order)), order.out)


def make_page(order: Order, found: Found) -> Page:
    """Decide what is on the page."""
    missing = not_measured(order, found)
    page = Page(
        answer=leads(order, found, missing),
        missing=missing,
        title=f"What tuning changed: {order.after.adapter}",
        lede=(
            f"{order.before.model} with the adapter against {order.before.model} alone, both in "
            f"{methods.precision(order)}."
        ),
    )
    opening = [methods.methods(order), methods.data(order, found), methods.limits()]
    parts = (_disclosure(found), _perplexity(found), _preference(found), _fairpair(found))
    page.sections = [*opening, *(part for part in parts if part is not None), methods.macros()]
    return page


def not_measured(order: Order, found: Found) -> list[Missing]:
    """What was not asked for, with the command that adds it."""
    rows: Sequence[tuple[object, str, tuple[str, ...]]] = (
        (found.whole, "Disclosure", ("--sets", "topics")),
        (found.perplexity, "Perplexity on held-out text", ("--text", "FILE")),
        (found.fairpair, "FairPair", ("--fairpair", "common-sents")),
    )
    missing = [Missing(name, order.command(*more)) for it, name, more in rows if not it]
    if not found.preference:
        command = "plumbline benchmark import winobias, then " + order.command(
            "--benchmarks", "winobias"
        )
        missing.append(Missing("US and PD of a benchmark", command))
    return missing


def _span(middle: float | None, low: float | None, high: float | None, digits: int = 3) -> Cell:
    """A figure with its interval, where it has one."""
    if middle is None:
        return text(None)
    ends = f" ({shown(low, digits)} to {shown(high, digits)})" if low is not None else ""
    return Cell(shown(middle, digits) + ends, middle, True, low, high)


def _change(row: Row, scale: float = 1, digits: int = 3) -> list[Cell]:
    """Difference, with its sign and interval, and which way it goes."""
    change = {"value": row["difference"]}
    change |= {"ci_low": row["difference_low"], "ci_high": row["difference_high"]}
    cell = estimate(change, digits, scale=scale, signed=True)
    return [cell, text(row["direction"] or "one alone: unknown")]


def _disclosure(found: Found) -> Section | None:
    whole, parts = found.whole, found.topics
    if not whole:
        return None
    intro = [
        "GAS is the share of prompts after which the greedy continuation holds a gendered word, "
        "GLD the distance between the probabilities of female and male words next, over their sum, "
        "ADD the distance within pairs of words. Lower is less disclosed. Means and differences "
        "are over the prompts that both sides have; intervals are 95%, Wilson's for GAS, Student's "
        "for all else, and those of differences are paired by prompt."
    ]
    alerts = [
        f"{name}: the adapter was, or may have been, tuned on {n:,} of these prompts. The set is "
        "not part of the answer."
        for name, n in sorted({(r["probe_set"], r["n_tuned_on"]) for r in whole})
        if n
    ]
    tables = [_disclosure_table("Whole sets", whole, found.queries["whole"])]
    if parts:
        tables.append(_disclosure_table("By topic", parts, found.queries["topics"], folded=True))
    rows = [r for r in whole if r["measure"] in draw_compare.MEASURES]
    figures = []
    if rows:
        alt = "GAS, GLD and ADD of each set before and after tuning, as in the table of whole sets."
        caption = "Before (hollow) and after tuning (filled), with 95% intervals."
        plot = draw_compare.before_after(rows)
        drawn = {"measure": tuple(draw_compare.MEASURES)}
        query = narrowed(found.queries["whole"], drawn, {})
        figures.append(Figure("before-after", alt, caption, plot, rows, query))
    return Section("disclosure", "Disclosure", intro, alerts, figures, tables)


def _disclosure_table(
    caption: str, rows: Sequence[Row], query: str, *, folded: bool = False
) -> Table:
    headings = ["set", *(["topic"] if folded else []), "measure", "prompts", "before", "after"]
    headings += ["difference", "it", "tuned on"]
    cells = [
        [
            text(r["probe_set"]),
            *([text(r["topic"])] if folded else []),
            text(MEASURES[r["measure"]]),
            count(r["n_prompts"]),
            _span(r["before_mean"], r["before_low"], r["before_high"], 4),
            _span(r["after_mean"], r["after_low"], r["after_high"], 4),
            *_change(r, digits=4),
            text("not known") if r["n_tuned_on"] is None else count(r["n_tuned_on"]),
        ]
        for r in rows
    ]
    return Table(caption, headings, cells, folded, query)


def _perplexity(found: Found) -> Section | None:
    if not found.perplexity:
        return None
    intro = [
        "Perplexity is exp of the mean surprise of a token, in windows that do not overlap, each "
        "behind a token that begins a text. Nats a word can be held against other tokenisers. The "
        "difference is paired by document."
    ]
    headings = ["text", "documents", "tokens", "words", "window", "perplexity before", "after"]
    headings += ["ratio", "nats a word before", "after", "difference, nats a token", "it"]
    rows = [
        [
            text(r["text_set"]),
            count(r["n_documents"]),
            count(r["n_tokens"]),
            count(r["n_words"]),
            count(r["window_tokens"]),
            number(r["before_perplexity"], 3),
            number(r["after_perplexity"], 3),
            _span(r["perplexity_ratio"], r["ratio_low"], r["ratio_high"], 4),
            number(r["before_nats_per_word"], 4),
            number(r["after_nats_per_word"], 4),
            *_change(r, 1, 4),
        ]
        for r in found.perplexity
    ]
    table = Table("Held-out text", headings, rows, sql=found.queries["perplexity"])
    return Section("perplexity", "Perplexity on held-out text", intro, tables=[table])


def _preference(found: Found) -> Section | None:
    if not found.preference:
        return None
    intro = [
        "US is the share of pairs whose two sentences are about as likely, PD the points by which "
        "the female sentence is preferred more often than the male one. Differences are paired, "
        "with Student's 95% interval over pairs."
    ]
    rows = []
    for r in found.preference:
        scale, digits = (100, 1) if r["measure"] == "us" else (1, 1)
        before, after = (number(scale * r[c], digits) for c in ("before_mean", "after_mean"))
        rows.append(
            [
                text(r["benchmark"]),
                text(_UNITS[r["measure"]]),
                count(r["n_pairs"]),
                before,
                after,
                *_change(r, scale, digits),
            ]
        )
    headings = ["benchmark", "measure", "pairs", "before", "after", "difference", "it"]
    table = Table("Benchmarks", headings, rows, sql=found.queries["preference"])
    return Section("preference", "US and PD", intro, tables=[table])


def _fairpair(found: Found) -> Section | None:
    if not found.fairpair:
        return None
    intro = [
        "F is 1 where continuations about one person differ from those about the other as two "
        "samples of one prompt do. Intervals are bootstrapped over prompts."
    ]
    headings = ["set", "distance", "side", "prompts", "F before", "F after", "p before", "p after"]
    rows = [
        [
            text(r["probe_set"]),
            text(r["phi"]),
            text(r["side"]),
            count(r["after_n"]),
            _span(r["before_f"], r["before_low"], r["before_high"]),
            _span(r["after_f"], r["after_low"], r["after_high"]),
            number(r["before_p"], 3),
            number(r["after_p"], 3),
        ]
        for r in found.fairpair
    ]
    table = Table("F of each side", headings, rows, sql=found.queries["fairpair"])
    return Section("fairpair", "FairPair", intro, tables=[table])
