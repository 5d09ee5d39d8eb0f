"""Forced choice: the sentence of a pair that served models name when asked."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.model import (
    Columns,
    Lead,
    Missing,
    PageTable,
    Section,
    counted,
    shown,
    table,
)
from plumbline.pipelines.report.rows import Row, Rows, by_set, set_name, sides, with_ends

PLACE = 150
NAMES = ("choices",)
_TITLE = "What models choose"
_MEANING = (
    "Forced choice is another measure than US and PD: models that give no log-probabilities were "
    "asked which of two sentences is likelier, equally often in both orders. The preference is the "
    "mean of both orders, over pairs: 50% means no preference. What was shown first is chosen "
    "in 50% where the place makes no difference; the last column is the share of pairs whose "
    "choice turns with the order. Replies that name neither sentence count for no side. 95% "
    "intervals in brackets."
)
#: The page warns if more than this share of replies names neither sentence.
_MANY = 0.05


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """A table for each benchmark."""
    rows = facts.rows("choice")
    if not rows:
        yield Missing(_TITLE, "plumbline score choose --model NAME --benchmark NAME")
        return
    alerts = [
        f"{r['model']} on {set_name(r)}: {r['n_neither']:,} of {r['n_asks']:,} replies name "
        f"neither sentence, and {r['n_without']:,} pairs have no choice in one order or both."
        for r in rows
        if r["n_without"] or r["n_neither"] > _MANY * r["n_asks"]
    ]
    tables = [_table(set_rows) for set_rows in by_set(rows)]
    yield Section("choices", _TITLE, [_MEANING], alerts, tables=tables)


def _table(rows: Rows) -> PageTable:
    columns: Columns = [
        "model",
        ("asked as", lambda r: r["setting"][:8]),
        ("pairs", "n_pairs"),
        ("replies", "n_asks"),
        ("neither", "n_neither"),
        (f"chooses {sides(rows[0])[0]}, %", "preference"),
        ("chooses the first, %", "first_share"),
        ("turns with the order, %", "order_share"),
    ]
    return table(f"{set_name(rows[0])}, forced choice", rows, columns)


def leads(facts: Facts) -> Iterator[Lead]:
    """The side that each model names more often."""
    rows = facts.rows("choice").only(lambda r: r["n_pairs"])
    yield Lead("Which sentence do they choose when asked?", list(map(_sentence, rows)))


def _sentence(row: Row) -> str:
    """A sentence on one model: the side that it names more often, or the first if unclear."""
    group, other = sides(row)
    value, low, high = (100 * row[name] for name in with_ends("preference"))
    preference = finding(row, "preference", null=0.5)
    if preference.verdict == "below":
        group, value, low, high = other, 100 - value, 100 - high, 100 - low
    unclear = preference.pick(above="", below="", untold=", no clear side")
    inside = f"95% interval {shown(low, 1)} to {shown(high, 1)}"
    place = shown(100 * row["first_share"], 1)
    return (
        f"{set_name(row)}: asked about {counted(row['n_pairs'], 'pair')} in both orders, "
        f"{row['model']} names the {group} sentence in {shown(value, 1)}% of choices "
        f"({inside}){unclear}; what is shown first it names in {place}%."
    )
