"""The plot of a comparison, from plain rows to SVG."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.pipelines.report.model import Row
from plumbline.pipelines.report.plot import MALE, NEUTRAL, short
from plumbline.pipelines.report.svg import WIDTH, Panel, svg

MEASURES = {"gas": "GAS (share)", "gld": "GLD", "add_nats": "ADD (nats)"}
_SIDES = (("before", -0.14, NEUTRAL, "O"), ("after", 0.14, MALE, "o"))


def before_after(rows: Sequence[Row]) -> str:
    """GAS, GLD and ADD of each set before and after, with their intervals; a panel per measure."""
    sets = sorted({r["probe_set"] for r in rows})
    tuned = {r["probe_set"] for r in rows if r["n_tuned_on"]}
    names = [short(name, 24) + (" (tuned on)" if name in tuned else "") for name in sets]
    present = [m for m in MEASURES if any(r["measure"] == m for r in rows)]
    panels = []
    for measure in present:
        panel = Panel(MEASURES[measure])
        for side, shift, colour, shape in _SIDES:
            of = [(sets.index(r["probe_set"]) + shift, r) for r in rows if r["measure"] == measure]
            ends = [(y, r) for y, r in of if r[f"{side}_low"] is not None]
            low, high = ([r[f"{side}_{end}"] for _, r in ends] for end in ("low", "high"))
            panel.spans([y for y, _ in ends], low, high, colour)
            means = [r[f"{side}_mean"] for _, r in of]
            panel.marks(means, [y for y, _ in of], colour, shape, label=side)
        panel.x.low = 0
        panel.y.low, panel.y.high = max(len(sets), 2) - 0.4, -0.6
        panel.y.ticks, panel.y.has_grid = list(enumerate(names)), False
        panels.append(panel)
    return svg("Before and after tuning", panels, 150 + 45 * len(sets), 1.5 * WIDTH)
