"""Charts of continuations: FairPair's F, B, V and n-grams; disclosure's GAS, GLD and ADD."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np

from plumbline.pipelines.report.charts.chart_forms import (
    FEMALE,
    HEIGHT,
    INK,
    MALE,
    NEUTRAL,
    Chart,
    data,
    estimates,
    kinds,
    lines,
    palette,
    point,
    side_by_side,
)
from plumbline.pipelines.report.estimates import differs
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.warehouse.finding import ALPHA

#: How many prompts to show with the largest F, and with the smallest, if there are more.
TOP, BOTTOM = 20, 10
#: The axis of F is logarithmic if its largest value is above this many times its smallest.
_WIDE = 3.0
QUANTITIES = {
    "bias_b": "B, between the groups",
    "variability_pg": "V_pg, perturbed",
    "variability_gp": "V_gp, prompted",
}
_DISTANCE = "mean distance of a prompt's texts, %"


def chosen(prompts: Sequence[Row]) -> list[Row]:
    """Return the prompts with an F, largest first; if there are many, only both ends."""
    ranked = [r for r in prompts if r["fairpair_f"] is not None]
    ranked.sort(key=lambda r: (-r["fairpair_f"], r["prompt_id"]))
    return ranked if len(ranked) <= TOP + BOTTOM else [*ranked[:TOP], *ranked[-BOTTOM:]]


def by_prompt(prompts: Sequence[Row]) -> Chart:
    """Draw F of each prompt with its interval, sorted; coloured if the groups differ."""
    colours = {f"differs (corrected p ≤ {ALPHA:g})": FEMALE, "not shown to differ": NEUTRAL}
    clear, other = colours
    points = [
        point(row, "fairpair_f", row["prompt"], clear if differs(row) else other)
        for row in chosen(prompts)
    ]
    ends = [p[end] for p in points for end in ("value", "low", "high") if p[end] is not None]
    is_log = min(ends, default=0) > 0 and max(ends) / min(ends) > _WIDE
    return estimates(points, "F (1: only sampling noise)", colours, rule=1, is_log=is_log)


def distributions(prompts: Rows) -> Chart:
    """Draw histograms of B, V_pg and V_gp in percent over prompts, in the same bins."""
    by_name = {label: [100 * r[name] for r in prompts] for name, label in QUANTITIES.items()}
    pooled = np.concatenate(list(by_name.values()))
    edges = np.histogram_bin_edges(pooled, bins=max(4, round(2 * len(prompts) ** 0.5)))
    points = [
        {"series": label, "x": x, "y": n}
        for label, values in by_name.items()
        for x, n in zip(edges, [*np.histogram(values, edges)[0], 0], strict=True)
    ]
    x = alt.X("x:Q", title=_DISTANCE, scale=alt.Scale(zero=False))
    return lines(points, x, alt.Y("y:Q", title="prompts"), "step-after")


def convergence(rows: Rows, by: str) -> Chart:
    """Draw means of B, V_pg and V_gp in percent, with bands of one standard deviation each way.

    ``by`` is the column of the horizontal axis, `n_samples` or `n_folds`. The axis is logarithmic.
    """
    points = [
        {"series": QUANTITIES[r["quantity"]], "x": r[by], "y": mean, "low": mean - sd}
        | {"high": mean + sd}
        for quantity in QUANTITIES
        for r in rows.where(quantity=quantity)
        for mean, sd in [(100 * r["mean"], 100 * (r["sd"] or 0.0))]
    ]
    label = "samples of each group" if by == "n_samples" else "folds of each group"
    x = alt.X("x:Q", title=label, scale=alt.Scale(type="log", nice=False)).axis(
        values=sorted({r[by] for r in rows})
    )
    chart = lines(points, x, alt.Y("y:Q", title=_DISTANCE, scale=alt.Scale(zero=False)))
    band = alt.Chart(data(points), height=HEIGHT).mark_area(opacity=0.16)
    colour = kinds(palette([*QUANTITIES.values()]), "series")
    return alt.layer(band.encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour), chart)


def ngrams(rows: Sequence[Row], of_perturbed: str, of_other: str) -> Chart:
    """Draw log-odds of n-grams with 95% intervals; above 0 are n-grams of perturbed texts."""
    colours = {f"more often of {of_perturbed}": MALE, f"more often of {of_other}": FEMALE}
    perturbed, other = colours
    points = [
        point(row, "log_odds_nats", row["ngram"], perturbed if row["z"] > 0 else other)
        for row in rows
    ]
    return estimates(points, "log-odds in nats", colours)


#: Measures that a chart shows, with their units.
MEASURES = {"gas": "GAS (share)", "gld": "GLD", "add_nats": "ADD (nats)"}
_CURVES = {"gas": "any gendered word", "gas_f_of_all": "female", "gas_m_of_all": "male"}
_PANELS = {"gas": ("GAS, %", 100), "gld": ("GLD", 1), "add_nats": ("ADD, nats", 1)}


def measures(rows: Rows, by: str) -> Chart:
    """Draw a panel each for GAS, GLD and ADD, with a mark per model and value of column ``by``.

    If continuations have several lengths, draws the last that has a GAS.
    """
    continued = rows.but(gas=None)
    rows = Rows({(r["model_key"], r[by]): r for r in (*rows, *continued)}.values())
    colours = palette(list(dict.fromkeys(r["model"] for r in rows)))
    panels = [
        estimates([point(r, of, _name(r, by), r["model"], scale) for r in rows], title, colours)
        for of, (title, scale) in _PANELS.items()
        if any(r[of] is not None for r in rows)
    ]
    return side_by_side(panels, 150)


def _name(row: Row, by: str) -> str:
    return "all prompts" if row[by] is None else str(row[by])


def decoding(rows: Sequence[Row]) -> Chart:
    """Draw shares of gendered continuations, a panel per parameter; greedy is a dotted line.

    A ring marks the setting with the lowest GAS.
    """
    greedy = next((r for r in rows if r["parameter"] == "greedy"), None)
    points = [
        {"series": label, "x": row["setting"], "y": row[column], "parameter": row["parameter"]}
        | {"greedy": greedy and greedy[column], "is_best": row["is_best"] and column == "gas"}
        | {"low": row[f"{column}_low"] if column == "gas" else None}
        | {"high": row[f"{column}_high"] if column == "gas" else None}
        for row in rows
        if row["parameter"] != "greedy"
        for column, label in _CURVES.items()
        if row[column] is not None
    ]
    base, series = alt.Chart(), alt.Color("series:N")
    at = base.encode(x=alt.X("x:Q", title=None, scale=alt.Scale(zero=False)))
    share = alt.Y("y:Q", title="share of continuations")
    layers = [
        at.mark_area(opacity=0.16, color=NEUTRAL).encode(y="low:Q", y2="high:Q"),
        base.mark_rule(strokeDash=[2, 2]).encode(alt.Y("greedy:Q"), series),
        at.mark_line(point=True).encode(share, series),
        at.mark_point(size=140, color=INK).encode(share).transform_filter("datum.is_best"),
    ]
    panels = alt.layer(*layers, data=data(points)).properties(width=170)
    panel = alt.Facet("parameter:N", title=None)
    return panels.facet(facet=panel, columns=3).resolve_scale(x="independent")


def instructions(rows: Sequence[Row]) -> Chart:
    """Draw GAS, GLD and ADD with intervals, by instruction; the reference `none` comes first."""
    ordered = sorted(rows, key=lambda r: r["instruction_key"] != "none")
    points = [
        point(row, "figure", _instruction(row), MEASURES[row["measure"]])
        for row in ordered
        if row["measure"] in MEASURES
    ]
    return estimates(points, "lower: less disclosed", palette([*MEASURES.values()]))


def _instruction(row: Row) -> str:
    return f"{row['form']}: {row['instruction']}" if row["instruction"] else "none"
