"""Forced choice: which sentence of a pair served models name when they are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.groups import by_set, set_name, sides
from plumbline.pipelines.report.model import (
    Cell,
    Columns,
    Lead,
    Missing,
    PageTable,
    Section,
    counted,
    estimate,
    shown,
    table,
    text,
)
from plumbline.pipelines.report.rows import Row, Rows

PLACE = 150
NAMES = ("choices",)
_TITLE = "What models choose"
_MEANING = (
    "Forced choice is another measure than US and PD: models that give no log-probabilities were "
    "asked which of two sentences is likelier, equally often in both orders. The preference is the "
    "mean of both orders, over pairs: 50% is none. What was shown first is chosen in 50% where the "
    "place makes no difference; the last column is the share of pairs whose choice turns with the "
    "order. Replies that name neither sentence count for no side. 95% intervals in brackets."
)
#: Share of replies that name neither sentence from which on the page warns.
_MANY = 0.05
_PREFERENCE = ("preference", "preference_low", "preference_high")
_PLACE = ("first_share", "first_share_low", "first_share_high")
_ORDER = ("order_share", "order_share_low", "order_share_high")


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """A table for each benchmark."""
    rows = facts.rows("choice")
    if not rows:
        yield Missing(_TITLE, "plumbline score choose --model NAME --benchmark NAME")
        return
    alerts = [
        f"{r['model']} on {set_name(r)}: {r['n_neither']:,} of {r['n_asks']:,} replies name "
        f"neither sentence, and {r['n_without']:,} pairs have no preference."
        for r in rows
        if r["n_without"] or r["n_neither"] > _MANY * r["n_asks"]
    ]
    tables = [_table(of) for of in by_set(rows)]
    yield Section("choices", _TITLE, [_MEANING], alerts, tables=tables)


def _table(rows: Rows) -> PageTable:
    columns: Columns = [
        "model",
        ("asked as", lambda r: text(r["setting"][:8])),
        ("pairs", "n_pairs"),
        ("replies", "n_asks"),
        ("neither", "n_neither"),
        (f"chooses {sides(rows[0])[0]}, %", _percent(_PREFERENCE)),
        ("chooses the first, %", _percent(_PLACE)),
        ("turns with the order, %", _percent(_ORDER)),
    ]
    return table(f"{set_name(rows[0])}, forced choice", rows, columns)


def _percent(of: tuple[str, str, str]) -> Callable[[Row], Cell]:
    return lambda row: estimate(row, 1, scale=100, of=of)


def leads(facts: Facts) -> Iterator[Lead]:
    """Which side each model names more often."""
    rows = facts.rows("choice").only(lambda r: r["n_pairs"])
    yield Lead("Which sentence do they choose when asked?", list(map(_sentence, rows)))


def _sentence(row: Row) -> str:
    """One model: the side it names more often, or the first where neither is clear."""
    group, other = sides(row)
    value, low, high = (100 * row[name] for name in _PREFERENCE)
    of = finding(row, _PREFERENCE, null=0.5)
    if of.verdict == "below":
        group, value, low, high = other, 100 - value, 100 - high, 100 - low
    unclear = of.pick(above="", below="", untold=", no clear side")
    inside = f"95% interval {shown(low, 1)} to {shown(high, 1)}"
    place = shown(100 * row["first_share"], 1)
    return (
        f"{set_name(row)}: asked about {counted(row['n_pairs'], 'pair')} in both orders, "
        f"{row['model']} names the {group} sentence in {shown(value, 1)}% of choices "
        f"({inside}){unclear}; what is shown first it names in {place}%."
    )
