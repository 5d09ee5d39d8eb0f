"""Charts of FairPair's F by prompt, and of the disclosure measures GAS, GLD and ADD."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from plumbline.pipelines.report.charts.chart_forms import (
    FEMALE,
    NEUTRAL,
    Chart,
    data,
    estimates,
    palette,
    point,
)
from plumbline.pipelines.report.estimates import differs
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.warehouse.finding import ALPHA

#: Maximum number of prompts in a chart.
_MOST_PROMPTS = 30


def by_prompt(prompts: Sequence[Row]) -> Chart:
    """Draw F and its interval for the prompts with the largest F. Colours show the test results."""
    colours = {f"differs (corrected p ≤ {ALPHA:g})": FEMALE, "not shown to differ": NEUTRAL}
    clear, other = colours
    ranked = sorted(prompts, key=lambda r: (-r["fairpair_f"], r["prompt_id"]))
    points = [
        point(row, "fairpair_f", row["prompt"], clear if differs(row) else other)
        for row in ranked[:_MOST_PROMPTS]
    ]
    ends = [p[end] for p in points for end in ("value", "low") if p[end] is not None]
    title, is_log = "F (1: only sampling noise)", min(ends, default=0) > 0
    return estimates(points, title, colours, rule=1, is_log=is_log)


#: Measures that a chart shows, with their units.
MEASURES = {"gas": "GAS (share)", "gld": "GLD", "add_nats": "ADD (nats)"}
_CURVES = {"gas": "any gendered word", "gas_f_of_all": "female", "gas_m_of_all": "male"}
_PANELS = {"gas": ("GAS, %", 100), "gld": ("GLD", 1), "add_nats": ("ADD, nats", 1)}


def measures(rows: Rows, by: str) -> Chart:
    """Draw a panel for each of GAS, GLD and ADD. A dot is one model at one value of ``by``.

    If there are several lengths of continuations, a dot shows the longest with a defined GAS.
    """
    continued = rows.but(gas=None)
    rows = Rows({(r["model_key"], r[by]): r for r in (*rows, *continued)}.values())
    colours = palette(list(dict.fromkeys(r["model"] for r in rows)))
    panels = [
        estimates([point(r, of, _name(r, by), r["model"], scale) for r in rows], title, colours)
        for of, (title, scale) in _PANELS.items()
        if any(r[of] is not None for r in rows)
    ]
    return alt.hconcat(*(panel.properties(width=100) for panel in panels))


def _name(row: Row, by: str) -> str:
    return "all prompts" if row[by] is None else str(row[by])


def decoding(rows: Sequence[Row]) -> Chart:
    """Draw shares of gendered continuations, with one panel per decoding parameter.

    The dotted line shows greedy decoding. The band is the 95% interval.
    """
    greedy = next((r for r in rows if r["parameter"] == "greedy"), {})
    points = [
        {**point(row, column, row["parameter"], label), "x": row["setting"]}
        | {"greedy": greedy.get(column)}
        for row in rows
        if row["parameter"] != "greedy"
        for column, label in _CURVES.items()
        if row[column] is not None
    ]
    base = alt.Chart().encode(alt.Color("kind:N"))
    at = base.encode(alt.X("x:Q", title=None, scale=alt.Scale(zero=False)))
    layers = [
        at.mark_area(opacity=0.16).encode(y="low:Q", y2="high:Q"),
        base.mark_rule(strokeDash=[2, 2]).encode(alt.Y("greedy:Q")),
        at.mark_line(point=True).encode(alt.Y("value:Q", title="share of continuations")),
    ]
    panels = alt.layer(*layers, data=data(points)).properties(width=170)
    panel = alt.Facet("name:N", title=None)
    return panels.facet(facet=panel, columns=3).resolve_scale(x="independent")


def instructions(rows: Sequence[Row]) -> Chart:
    """Draw GAS, GLD and ADD for each instruction; the row without an instruction comes first."""
    ordered = sorted(rows, key=lambda r: r["instruction_key"] != "none")
    points = [
        point(row, "figure", _instruction(row), MEASURES[row["measure"]])
        for row in ordered
        if row["measure"] in MEASURES
    ]
    return estimates(points, "lower: less disclosed", palette([*MEASURES.values()]))


def _instruction(row: Row) -> str:
    return f"{row['form']}: {row['instruction']}" if row["instruction"] else "none"
