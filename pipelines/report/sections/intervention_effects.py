"""Effects of interventions: models trained on texts with a share of the documents changed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import fmean

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.findings.sentences import moved
from plumbline.pipelines.report.model import (
    Columns,
    Figure,
    Lead,
    Missing,
    PageTable,
    Section,
    interval,
    shown,
    stem,
    table,
)
from plumbline.pipelines.report.plots.svg import NEUTRAL, Panel, looks, svg
from plumbline.pipelines.report.rows import Row, Rows, set_name

PLACE = 205
NAMES = ("intervention",)
#: A response below this share of the response to exchanging she and he is small.
MARGIN = 0.5
_TITLE = "Does the text make the lean?"
_MEANING = (
    "Models were trained on a text in which she and he change places in a share of the documents, "
    "the dose; in a placebo, two words that should not matter do. The outcome slope is the slope "
    "of a model's log ratios of words on their lean in the unchanged text: if a text's leans are "
    "turned round, its sign changes. The response is the slope of an outcome on the dose, a mean "
    "over trainings with different seeds. Its 95% interval is over these trainings: it covers "
    "models trained on this text with these documents changed, not on another text. Two one-sided "
    f"tests at 5% (TOST) bound the size of a response; less than {MARGIN:.0%} of the response to "
    "exchanging she and he is called small."
)
_SUBJECT = ("study", "benchmark", "groups", "corpus", "contrast")


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """Plots of both outcomes, and one or two tables, for each study, benchmark and text."""
    responses = facts.query("FROM dose_response ORDER BY ALL")
    if not responses:
        if facts.rows("score"):
            yield Missing(_TITLE, "plumbline intervene run SHARDS --name NAME --corpus NAME")
        return
    leans = facts.query("FROM intervention_lean ORDER BY ALL")
    windows = facts.query("FROM window_response ORDER BY ALL")
    figures = [
        _figure(group)
        for group in leans.where(words="all", window_start=0.0, window_end=1.0).groups(
            *_SUBJECT, "outcome"
        )
    ]
    tables = [_responses(group) for group in responses.groups(*_SUBJECT)]
    tables += [_windows(group) for group in windows.groups(*_SUBJECT)]
    yield Section("interventions", _TITLE, [_MEANING], figures=figures, tables=tables)


def _name(row: Row) -> str:
    return f"{row['study']}, {set_name(row)}, text: {row['corpus']}"


def _figure(rows: Rows) -> Figure:
    """A plot of every training's outcome by dose, with a line through each kind's means."""
    outcome = rows[0]["outcome"]
    panel = Panel("dose: share of the documents changed", f"{outcome} of the models")
    panel.rule(y=0, linestyle=":")
    kinds = rows.groups("kind")
    for kind_rows, look in zip(kinds, looks(len(kinds)), strict=True):
        for seed_rows in kind_rows.groups("seed"):
            doses = [r["dose"] for r in seed_rows]
            panel.line(doses, _leans(seed_rows), NEUTRAL, width=0.7, opacity=0.6)
        panel.marks([r["dose"] for r in kind_rows], _leans(kind_rows), look["color"], size=4)
        by_dose = {rows[0]["dose"]: fmean(_leans(rows)) for rows in kind_rows.groups("dose")}
        panel.line(by_dose, by_dose.values(), label=kind_rows[0]["kind"], **look)
    return Figure(
        stem("intervention", rows[0]["study"], set_name(rows[0]), rows[0]["corpus"], outcome),
        f"{outcome} by dose: {_name(rows[0])}",
        f"Each mark is a training, thin lines join those of one seed, thick ones the means: "
        f"{_name(rows[0])}.",
        svg(f"{outcome} by dose", [panel]),
        rows,
    )


def _leans(rows: Rows) -> list[float]:
    return [row["lean"] for row in rows]


def _responses(rows: Rows) -> PageTable:
    columns: Columns = [
        ("what was exchanged", "kind"),
        "words",
        "outcome",
        ("without a dose", lambda r: shown(r["lean_at_0"], 3)),
        ("response to the whole dose", "response"),
        "unit",
        ("its size is at most", lambda r: _upwards(r["size_bound"], 3)),
        ("of the exchange's, at most", lambda r: _percent(r["share_bound"])),
        ("trainings of a dose", "n_seeds"),
    ]
    return table(f"Response to the dose: {_name(rows[0])}", rows, columns)


def _windows(rows: Rows) -> PageTable:
    columns: Columns = [
        (
            "changed text read",
            lambda r: f"from {r['window_start']:.0%} to {r['window_end']:.0%} of the steps",
        ),
        "words",
        "outcome",
        ("response", "response"),
        ("less the lean of all steps", "short_of_whole"),
        ("trainings", "n_seeds"),
    ]
    caption = f"The changed text in a part of the training only: {_name(rows[0])}"
    return table(caption, rows, columns)


def leads(facts: Facts) -> Iterator[Lead]:
    """The response of the models' lean to the dose of each kind of exchange."""
    rows = facts.query("FROM dose_response ORDER BY ALL").where(words="all", outcome="slope")
    yield Lead(_TITLE, [_sentence(row) for row in rows if row["response_low"] is not None])


def _sentence(row: Row) -> str:
    what = {
        "gender": "she and he were exchanged in more of the text",
        "aimed": "she and he were exchanged near some words",
        "placebo": "two other words were exchanged (placebo)",
    }[row["kind"]]
    return (
        f"{_name(row)}: when {what}, how far the models follow the text "
        f"{moved(finding(row, 'response'))}: slope "
        f"{shown(row['lean_at_0'], 3)} without, response {shown(row['response'], 3, signed=True)} "
        f"({interval(row, 'response')}, {row['n_seeds']} seeds)"
        f"{'' if row['kind'] == 'gender' else bounded(row)}."
    )


def bounded(row: Row) -> str:
    """The bound of a response (a row of view ``dose_response``), rounded upwards, as a clause.

    Empty if the row has no ``size_bound``.

    >>> row = {"size_bound": 0.0531, "unit": "nats per nat", "share_bound": 0.381}
    >>> bounded(row)
    "; its size is at most 0.054 nats per nat and 39% of the exchange's (TOST, 5%), which is small"
    >>> bounded({**row, "share_bound": None})
    '; its size is at most 0.054 nats per nat (TOST, 5%)'
    """
    if row["size_bound"] is None:
        return ""
    bound = f"; its size is at most {_upwards(row['size_bound'], 3)} {row['unit']}"
    if (share := row["share_bound"]) is None:
        return f"{bound} (TOST, 5%)"
    small = "which is small" if share < MARGIN else "not shown to be small"
    return f"{bound} and {_percent(share)} of the exchange's (TOST, 5%), {small}"


def _upwards(bound: float | None, digits: int) -> str:
    return shown(None if bound is None else math.ceil(bound * 10**digits) / 10**digits, digits)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{_upwards(100 * share, 0)}%"
