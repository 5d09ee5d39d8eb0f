"""Charts of FairPair: F of each prompt, B and V over prompts and over samples, n-grams."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np

from plumbline.pipelines.report.charts.chart_forms import (
    FEMALE,
    HEIGHT,
    MALE,
    NEUTRAL,
    Chart,
    data,
    estimates,
    kinds,
    lines,
    palette,
    point,
)
from plumbline.pipelines.report.estimates import differs
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.warehouse.finding import ALPHA

#: Prompts shown with the largest and with the smallest F, if there are more than both.
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
    """Prompts with an F, largest first. Of many, only those at both ends."""
    ranked = [r for r in prompts if r["fairpair_f"] is not None]
    ranked.sort(key=lambda r: (-r["fairpair_f"], r["prompt_id"]))
    return ranked if len(ranked) <= TOP + BOTTOM else [*ranked[:TOP], *ranked[-BOTTOM:]]


def by_prompt(prompts: Sequence[Row]) -> Chart:
    """F of each prompt with its interval, sorted; coloured if the groups differ."""
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
    """Histograms of B, V_pg and V_gp in percent over prompts, in the same bins."""
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
    """Means of B, V_pg and V_gp in percent, with bands of one standard deviation to either side.

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
    """Log-odds of n-grams with 95% intervals; those of perturbed texts are above 0."""
    colours = {f"more often of {of_perturbed}": MALE, f"more often of {of_other}": FEMALE}
    perturbed, other = colours
    points = [
        point(row, "log_odds_nats", row["ngram"], perturbed if row["z"] > 0 else other)
        for row in rows
    ]
    return estimates(points, "log-odds in nats", colours)
