"""The page of `plumbline disclosure compare`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.findings.sentences import moved
from plumbline.pipelines.report.model import (
    Column,
    Columns,
    Figure,
    Missing,
    Page,
    PageTable,
    Section,
    count,
    estimate,
    number,
    table,
    text,
)
from plumbline.pipelines.report.plots import disclosure_plots
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.pipelines.report.tuning_comparison.comparison_answer import leads
from plumbline.pipelines.report.tuning_comparison.results import (
    MEASURES,
    ComparedModels,
    Results,
    read_results,
)
from plumbline.pipelines.report.write import publish
from plumbline.warehouse.query.connection import sql
from plumbline.warehouse.storage.run_records import package_versions

_UNITS = {"us": "US, %", "pd": "PD, points"}
#: The views and macros that the page's figures come from.
_SQL = (
    "92_disclosure_change",
    "93_disclosure_difference",
    "93_preference_pairwise",
    "94_preference_difference",
    "95_perplexity_difference",
    "96_fairpair_difference",
)
_LIMITS = (
    "Intervals tell how far a difference would move with other prompts, pairs or documents like "
    "these. Nothing corrects for the number of comparisons: by chance alone about one in twenty "
    "intervals misses its true value.",
    "A low GAS alone does not mean success: empty talk holds no gendered word either. "
    "Read them (table continuation).",
    "The measures are about women and men in English prompts. They say nothing of other genders or "
    "languages, nor of what a model does in use.",
)


def write_comparison(order: ComparedModels, out: Path) -> Path:
    """Write the page to ``out``; returns its path. Raises ``BadInput`` like ``publish``."""
    return publish(make_page(order, read_results(order)), out)


def make_page(order: ComparedModels, results: Results) -> Page:
    """The page's answer, sections and missing parts."""
    missing = not_measured(order, results)
    return Page(
        answer=leads(results, missing),
        sections=list(_sections(order, results)),
        missing=missing,
        title=f"What tuning changed: {order.after.adapter}",
        lede=(
            f"{order.before.model} with the adapter against {order.before.model} alone, both in "
            f"{_precision(order)}."
        ),
    )


def _sections(order: ComparedModels, results: Results) -> Iterator[Section]:
    yield _methods(order)
    yield _data(order, results)
    yield Section("limits", "Limits", _LIMITS)
    for section, rows in (
        (_disclosure, results.disclosure),
        (_perplexity, results.perplexity),
        (_preference, results.preference),
        (_fairpair, results.fairpair),
    ):
        if rows:
            yield section(rows)
    intro = ["The macros that the queries of this page use; every warehouse has them."]
    code = [sql(f"views/{name}") for name in _SQL]
    yield Section("macros", "How the macros compute", intro, code=code)


def not_measured(order: ComparedModels, results: Results) -> list[Missing]:
    """Parts that were not measured, each with the command that adds it."""
    imported = f"plumbline benchmark import winobias, then {order.command}"
    parts = (
        (results.disclosure, "Disclosure", f"{order.command} --sets topics"),
        (results.perplexity, "Perplexity on held-out text", f"{order.command} --text FILE"),
        (results.fairpair, "FairPair", f"{order.command} --fairpair common-sents"),
        (results.preference, "US and PD of a benchmark", f"{imported} --benchmarks winobias"),
    )
    return [Missing(title, command) for rows, title, command in parts if not rows]


def _precision(order: ComparedModels) -> str:
    """Dtype and quantisation, which both models share."""
    return f"{order.before.dtype}, {order.before.quantisation or 'not quantised'}"


def _methods(order: ComparedModels) -> Section:
    versions = ", ".join(f"{name} {version}" for name, version in package_versions().items())
    intro = [
        f"Precision: both sides in {_precision(order)}; one command loads both, so that they can't "
        "differ in it.",
        "Differences are after less before, paired: the same prompts, pairs or documents on both "
        "sides. Intervals are 95%. A figure fell or rose if its interval excludes 0.",
        "Below every table and plot is its query, which `plumbline sql` runs unchanged. The macros "
        "that the queries use are at the end.",
        f"Computed by {order.after.backend_version}. Versions: {versions}.",
    ]
    return Section("methods", "Methods", intro)


def _data(order: ComparedModels, results: Results) -> Section:
    """The section on both models, the data of both, and the data of the adapter's tuning."""
    before, after = order.before, order.after
    intro = [
        f"Base {before.model}, revision {before.revision}, key {before.key}; with the adapter "
        f"{after.adapter}, key {after.key}.",
        *_measured(results),
    ]
    tables, alerts = [], []
    if not results.tuning:
        intro.append(
            "The adapter was not tuned in this warehouse: what it was tuned on is not known, and "
            "any set may be among it."
        )
    for tuning in results.tuning:
        was = f"{tuning['base_dtype']}, {tuning['base_quantisation'] or 'not quantised'}"
        if was != _precision(order):
            alerts.append(
                f"The adapter was tuned on the base in {was}, and is measured in another."
            )
        rows = [[text(name), text(value)] for name, value in tuning.items()]
        headings = ["column of tuning", "value"]
        tables.append(PageTable("The adapter", headings, rows, True, results.tuning.sql))
    return Section("data", "Data", intro, alerts, tables=tables)


def _measured(results: Results) -> list[str]:
    """Sentences that list the sets, benchmarks and texts of both models, with their sizes."""
    whole = results.disclosure.where(topic=None)
    parts = (
        ("Sets of prompts", whole, "probe_set", "n_prompts", "prompts"),
        ("Benchmarks", results.preference, "benchmark", "n_pairs", "pairs"),
        ("Held-out text", results.perplexity, "text_set", "n_documents", "documents"),
        ("FairPair", results.fairpair, "probe_set", "after_n", "prompts"),
    )
    sentences = []
    for what, rows, name, size, unit in parts:
        sizes = {r[name]: r[size] for r in rows}
        if sizes:
            sizes_text = (f"{subject} ({n:,} {unit})" for subject, n in sizes.items())
            sentences.append(f"{what}: {', '.join(sizes_text)}.")
    return sentences


def _changes(digits: int, heading: str = "difference") -> list[tuple[str, Column]]:
    return [
        (heading, lambda r: estimate(r, "difference", digits, scale=_scale(r))),
        ("it", lambda r: moved(finding(r, "difference"), "not shown to change")),
    ]


def _scale(row: Row) -> int:
    """The factor into the printed unit: 100 for US, a share that is printed in percent, else 1."""
    return 100 if row.get("measure") == "us" else 1


def _disclosure(rows: Rows) -> Section:
    whole = rows.where(topic=None)
    intro = [
        "GAS is the share of prompts after which the greedy continuation holds a gendered word, "
        "GLD the distance between the probabilities of female and male words next, over their sum, "
        "ADD the distance within pairs of words. Lower is less disclosed. Means and differences "
        "are over the prompts that both sides have, differences prompt by prompt. Intervals are "
        "95%, over topics or else prompts: Student's for ADD, Wilson's on the range for all else."
    ]
    alerts = [
        f"{name}: the adapter was, or may have been, tuned on {n:,} of these prompts. The set is "
        "not part of the answer."
        for name, n in sorted({(r["probe_set"], r["n_tuned_on"]) for r in whole})
        if n
    ]
    tables = [_disclosure_table("Whole sets", whole)]
    if topics := rows.but(topic=None):
        tables.append(_disclosure_table("By topic", topics, folded=True))
    figures = []
    if drawn := whole.where(measure=tuple(disclosure_plots.MEASURES)):
        alt = "GAS, GLD and ADD of each set before and after tuning, as in the table of whole sets."
        caption = "Before (hollow) and after tuning (filled), with 95% intervals."
        figures.append(
            Figure("before-after", alt, caption, disclosure_plots.before_after(drawn), drawn)
        )
    return Section("disclosure", "Disclosure", intro, alerts, figures, tables)


def _disclosure_table(caption: str, rows: Rows, *, folded: bool = False) -> PageTable:
    columns: Columns = [
        ("set", "probe_set"),
        *(["topic"] if folded else []),
        ("measure", lambda r: MEASURES[r["measure"]]),
        ("prompts", "n_prompts"),
        ("before", "before_mean", 4),
        ("after", "after_mean", 4),
        *_changes(4),
        (
            "tuned on",
            lambda r: text("not known") if r["n_tuned_on"] is None else count(r["n_tuned_on"]),
        ),
    ]
    return table(caption, rows, columns, folded=folded)


def _perplexity(rows: Rows) -> Section:
    intro = [
        "Perplexity is exp of the mean surprisal per token, in windows that do not overlap, each "
        "conditioned on BOS. Nats per word can be compared across tokenisers. The "
        "difference is paired by document."
    ]
    columns: Columns = [
        ("text", "text_set"),
        ("documents", "n_documents"),
        ("tokens", "n_tokens"),
        ("words", "n_words"),
        ("window", "window_tokens"),
        ("perplexity before", "before_perplexity", 3),
        ("after", "after_perplexity", 3),
        ("ratio", "perplexity_ratio", 4),
        ("nats a word before", "before_nats_per_word", 4),
        ("after", "after_nats_per_word", 4),
        *_changes(4, "difference, nats a token"),
    ]
    tables = [table("Held-out text", rows, columns)]
    return Section("perplexity", "Perplexity on held-out text", intro, tables=tables)


def _preference(rows: Rows) -> Section:
    intro = [
        "US is the share of pairs whose two sentences are about as likely, PD the points by which "
        "the first group's sentence is preferred more often than the second's (female and male, "
        "where none are named). Differences are paired, with 95% intervals over clusters of pairs."
    ]

    def scaled(column: str) -> Column:
        return lambda r: number(_scale(r) * r[column], 1)

    columns: Columns = [
        "benchmark",
        ("measure", lambda r: _UNITS[r["measure"]]),
        ("pairs", "n_pairs"),
        ("before", scaled("before_mean")),
        ("after", scaled("after_mean")),
        *_changes(1),
    ]
    return Section("preference", "US and PD", intro, tables=[table("Benchmarks", rows, columns)])


def _fairpair(rows: Rows) -> Section:
    intro = [
        "F is 1 where continuations about one person differ from those about the other as two "
        "samples of one prompt do. Intervals are bootstrapped over prompts."
    ]
    columns: Columns = [
        ("set", "probe_set"),
        ("distance", "phi"),
        "side",
        ("prompts", "after_n"),
        ("F before", "before_f", 3),
        ("F after", "after_f", 3),
        ("p before", "before_p", 3),
        ("p after", "after_p", 3),
    ]
    return Section("fairpair", "FairPair", intro, tables=[table("F of each side", rows, columns)])
