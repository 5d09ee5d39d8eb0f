"""The page of `plumbline disclosure compare`: what tuning changed, and its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.report import draw_compare
from pipelines.report.compare_words import leads
from pipelines.report.model import (
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
from pipelines.report.write import publish
from warehouse.connect import connect, sql
from warehouse.runs import package_versions

if TYPE_CHECKING:
    from pipelines.compare_order import Order

#: The views and macros that the page's figures come from.
_SQL = (
    "93_disclosure_difference",
    "93_preference_pairwise",
    "94_preference_difference",
    "95_perplexity_difference",
    "96_fairpair_difference",
)
MEASURES = {
    "gas": "GAS",
    "gas_f": "GAS, female",
    "gas_m": "GAS, male",
    "gld": "GLD",
    "add_nats": "ADD, nats",
    "p_gendered": "P(gendered word)",
}
_UNITS = {"us": "US, %", "pd": "PD, points"}


@dataclass(frozen=True)
class Found:
    """Rows of the comparison's macros, of the ``tuning`` if there is one, and the queries."""

    disclosure: list[Row]
    preference: list[Row]
    perplexity: list[Row]
    fairpair: list[Row]
    tuning: Row | None
    queries: list[str]

    def sql(self, macro: str) -> str:
        """The query that asks a macro of both sides."""
        return next(f"{query};" for query in self.queries if f"FROM {macro}(" in query)

    @property
    def headline(self) -> list[Row]:
        """Whole sets that the adapter was not tuned on, as far as is known."""
        return [r for r in self.disclosure if r["topic"] is None and not r["n_tuned_on"]]


def read_found(order: Order) -> Found:
    """Ask the warehouse all that the page needs: only what is asked of both sides."""
    keys = f"('{order.before.key}', '{order.after.key}')"
    queries = [
        f"FROM disclosure_difference{keys}",
        f"FROM preference_difference{keys}",
        f"FROM perplexity_difference{keys}",
        f"FROM fairpair_difference{keys}",
    ]
    sampled = order.sampling.key
    with connect(order.warehouse) as connection:
        rows: list[list[Any]] = [
            connection.sql(f"{query} ORDER BY ALL").to_arrow_table().to_pylist()
            for query in queries
        ]
        how = {"adapter": order.after.adapter}
        tunings = connection.sql("FROM tuning WHERE adapter = $adapter", params=how)
        tuned = tunings.to_arrow_table().to_pylist()
    disclosure, preference, perplexity, fairpair = rows
    places = {name: i for i, name in enumerate(MEASURES)}
    own = [
        r
        for r in disclosure
        if r["word_list"] == order.word_list_name and r["sampling_key"] in (None, sampled)
    ]
    own.sort(key=lambda r: (r["probe_set"], r["topic"] or "", places[r["measure"]]))
    measured = order.fairpair.sampling().key
    sets = [
        r
        for r in fairpair
        if r["probe_set"] == order.asked.fairpair and r["sampling_key"] == measured
    ]
    name = order.held_out.name if order.held_out else None
    texts = [r for r in perplexity if r["text_set"] == name]
    pairs = [r for r in preference if r["benchmark"] in order.benchmarks]
    return Found(own, pairs, texts, sets, tuned[0] if tuned else None, queries)


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
            f"{precision(order)}."
        ),
    )
    parts = (_disclosure(found), _perplexity(found), _preference(found), _fairpair(found))
    page.sections = [part for part in parts if part is not None]
    page.sections.append(_methods(order, found))
    return page


def precision(order: Order) -> str:
    """Dtype and quantisation, the same of both sides."""
    return f"{order.before.dtype}, {order.before.quantisation or 'not quantised'}"


def not_measured(order: Order, found: Found) -> list[Missing]:
    """What was not asked for, with the command that adds it."""
    rows: Sequence[tuple[object, str, tuple[str, ...]]] = (
        (found.disclosure, "Disclosure", ("--sets", "topics")),
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
    if not found.disclosure:
        return None
    whole = [r for r in found.disclosure if r["topic"] is None]
    parts = [r for r in found.disclosure if r["topic"] is not None]
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
    tables = [_disclosure_table("Whole sets", whole, folded=False)]
    if parts:
        tables.append(_disclosure_table("By topic", parts, folded=True))
    query = found.sql("disclosure_difference")
    tables = [replace(table, sql=query) for table in tables]
    rows = [r for r in whole if r["measure"] in draw_compare.MEASURES]
    figures = []
    if rows:
        alt = "GAS, GLD and ADD of each set before and after tuning, as in the table of whole sets."
        caption = "Before (hollow) and after tuning (filled), with 95% intervals."
        png = draw_compare.before_after(rows)
        figures.append(Figure("before-after", alt, caption, png, rows, query))
    return Section("disclosure", "Disclosure", intro, alerts, figures, tables)


def _disclosure_table(caption: str, rows: Sequence[Row], *, folded: bool) -> Table:
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
    return Table(caption, headings, cells, folded)


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
    table = Table("Held-out text", headings, rows, sql=found.sql("perplexity_difference"))
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
    table = Table("Benchmarks", headings, rows, sql=found.sql("preference_difference"))
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
    table = Table("F of each side", headings, rows, sql=found.sql("fairpair_difference"))
    return Section("fairpair", "FairPair", intro, tables=[table])


def _methods(order: Order, found: Found) -> Section:
    versions = ", ".join(f"{name} {version}" for name, version in package_versions().items())
    before, after, tuning = order.before, order.after, found.tuning
    intro = [
        f"Precision: both sides in {precision(order)}; one command loads both, so that they can't "
        "differ in it.",
        f"Base {before.model}, revision {before.revision}, key {before.key}; with the adapter "
        f"{after.adapter}, key {after.key}. Computed by {after.backend_version}.",
        f"Versions: {versions}.",
    ]
    tables, alerts = [], []
    if tuning is None:
        intro.append(
            "The adapter was not tuned in this warehouse: what it was tuned on is not known, and "
            "any set may be among it."
        )
    else:
        was = f"{tuning['base_dtype']}, {tuning['base_quantisation'] or 'not quantised'}"
        if was != precision(order):
            alerts.append(
                f"The adapter was tuned on the base in {was}, and is measured in another."
            )
        rows = [[text(name), text(value)] for name, value in tuning.items() if name != "path"]
        tables.append(Table("The adapter", ["column of tuning", "value"], rows))
    code = [*found.queries, *(sql(f"view_{name}") for name in _SQL)]
    return Section("methods", "How it was measured", intro, alerts, tables=tables, code=code)
