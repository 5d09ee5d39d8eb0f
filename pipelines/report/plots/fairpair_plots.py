"""The plots of FairPair: functions from rows to SVG."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from plumbline.pipelines.report.findings.estimates import of_groups
from plumbline.pipelines.report.model import shown
from plumbline.pipelines.report.plots.svg import (
    FEMALE,
    INK,
    MALE,
    NEUTRAL,
    WIDTH,
    Panel,
    looks,
    sheet_width,
    short,
    svg,
)
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.warehouse.finding import ALPHA

#: Prompts drawn with the largest and with the smallest F, if there are more than both.
TOP, BOTTOM = 20, 10
#: The axis of F is logarithmic if its largest value is above this many times its smallest.
_WIDE = 3.0
#: Upper 97.5% point of the normal distribution.
_Z975 = NormalDist().inv_cdf(0.975)
QUANTITIES = {
    "bias_b": "B, between the groups",
    "variability_pg": "V_pg, perturbed",
    "variability_gp": "V_gp, prompted",
}


def chosen(prompts: Sequence[Row]) -> list[Row | None]:
    """Prompts with an F, largest first; one ``None`` for all that are left out in between."""
    ranked = [r for r in prompts if r["fairpair_f"] is not None]
    ranked.sort(key=lambda r: (-r["fairpair_f"], r["prompt_id"]))
    if len(ranked) <= TOP + BOTTOM:
        return list(ranked)
    return [*ranked[:TOP], None, *ranked[-BOTTOM:]]


def by_prompt(prompts: Sequence[Row], title: str) -> str:
    """F of each prompt with its interval, sorted. Colour: the groups differ after correction."""
    rows = chosen(prompts)
    left_out = sum(r["fairpair_f"] is not None for r in prompts) - TOP - BOTTOM
    drawn = [(y, row) for y, row in enumerate(rows) if row is not None]
    panel = Panel("F (1: no more than sampling noise)")
    panel.rule(x=1, linestyle=":")
    differs = (True, FEMALE, "o", f"differs (corrected p ≤ {ALPHA:g})")
    other = (False, NEUTRAL, "s", "not shown to differ")
    for is_different, colour, shape, label in (differs, other):
        marked = [
            (y, r)
            for y, r in drawn
            if (of_groups(r, "q_permutation").verdict == "above") == is_different
        ]
        panel.estimates(marked, "fairpair_f", colour, shape, 6, label)
    least, most = min(panel.x.seen, default=1.0), max(panel.x.seen, default=1.0)
    panel.x.is_log = least > 0 and most / least > _WIDE
    names = (f"… {left_out} more …" if row is None else short(row["prompt"], 30) for row in rows)
    panel.list_down(names, max(len(rows), 3) - 0.4, -0.6)
    return svg(short(title, 66), [panel], 130 + 19 * max(len(rows), 3))


def measured_prompts(prompts: Rows) -> Rows:
    """Prompts whose B and both V are defined."""
    return prompts.only(lambda r: all(r[name] is not None for name in QUANTITIES))


def distributions(prompts: Rows, title: str) -> str:
    """Outlines of the histograms of B, V_pg and V_gp (percent) over prompts, in the same bins."""
    by_name = {name: 100 * np.array([r[name] for r in prompts]) for name in QUANTITIES}
    pooled = np.concatenate(list(by_name.values()))
    edges = np.histogram_bin_edges(pooled, bins=max(4, round(2 * len(prompts) ** 0.5)))
    panel = Panel("mean distance of a prompt's texts, %", "prompts")
    for (name, values), look in zip(by_name.items(), looks(len(by_name)), strict=True):
        counts = np.histogram(values, edges)[0]
        xs, heights = np.repeat(edges, 2), np.array([0, *np.repeat(counts, 2), 0])
        panel.band(xs, np.zeros(len(xs)), heights, look["color"], 0.1)
        panel.line(xs, heights, label=QUANTITIES[name], **look)
    panel.y.low = 0
    return svg(short(title, 66), [panel])


def convergence(rows: Rows, title: str, by: str) -> str:
    """Means of B, V_pg and V_gp in percent, with bands of one standard deviation to either side.

    ``by`` is the column of the horizontal axis, `n_samples` or `n_folds`. The axis is logarithmic.
    """
    x_label = "samples drawn of each group" if by == "n_samples" else "folds of each group"
    panel = Panel(x_label, "mean distance, %")
    groups = rows.only(lambda r: r["quantity"] in QUANTITIES).groups("quantity")
    for quantity_rows, look in zip(groups, looks(len(groups)), strict=True):
        x = np.array([r[by] for r in quantity_rows])
        y = 100 * np.array([r["mean"] for r in quantity_rows])
        spread = 100 * np.array([r["sd"] or 0.0 for r in quantity_rows])
        panel.band(x, y - spread, y + spread, look["color"])
        panel.line(x, y, label=QUANTITIES[quantity_rows[0]["quantity"]], **look)
        panel.marks(x, y, look["color"], size=5)
    panel.x.is_log = True
    panel.x.ticks = [(tick, f"{tick:,}") for tick in sorted({r[by] for r in rows})]
    return svg(short(title, 66), [panel])


def ngrams(rows: Sequence[Row], of_perturbed: str, of_other: str, title: str) -> str:
    """Log-odds of n-grams with 95% intervals and z. Bars of perturbed texts go to the right."""
    panel = Panel("log-odds in nats, with 95% interval")
    for is_perturbed, name, colour in ((True, of_perturbed, MALE), (False, of_other, FEMALE)):
        bars = [(y, r["log_odds_nats"]) for y, r in enumerate(rows) if (r["z"] > 0) == is_perturbed]
        label = f"more often of {short(name, 24)}"
        panel.bars([y for y, _ in bars], [odds for _, odds in bars], colour, label)
    odds = np.array([r["log_odds_nats"] for r in rows])
    error = _Z975 * odds / np.array([r["z"] for r in rows])
    panel.spans(range(len(rows)), odds - error, odds + error, INK, 1.1)
    room = 1 + 0.35 * (WIDTH / sheet_width()) ** 2  # z as text needs more on a narrow plot
    reach = room * float(np.max(np.abs(odds) + error, initial=0.0))
    for y, r in enumerate(rows):
        side = 1 if r["z"] > 0 else -1
        end = odds[y] + side * (error[y] + 0.01 * reach)
        words, align = f"z {shown(r['z'], 1, signed=True)}", "start" if side > 0 else "end"
        panel.note(float(end), y + 0.2, words, align)
    panel.rule(x=0)
    panel.x.low, panel.x.high = -reach, reach
    panel.list_down((short(r["ngram"], 30) for r in rows), max(len(rows), 3) - 0.4, -0.6)
    return svg(short(title, 66), [panel], 130 + 21 * max(len(rows), 3))
