"""The plot of models against one of them, from plain rows to SVG."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.pipelines.report.model import Row
from plumbline.pipelines.report.plot import FEMALE, MALE, NEUTRAL, model_label, short
from plumbline.pipelines.report.svg import Panel, svg

_COLOURS = {"rose": MALE, "fell": FEMALE}


def against_reference(rows: Sequence[Row], title: str) -> str:
    """The difference in US of each model, with its interval; grey where it is not clear."""
    rows = sorted(rows, key=lambda r: (r["us_difference"], r["model"], r["model_key"]))
    panel = Panel("US, points of difference (less even < 0 < more)")
    for y, row in enumerate(rows):
        colour = _COLOURS.get(row["us_direction"], NEUTRAL)
        if row["us_low"] is not None:
            panel.spans([y], [100 * row["us_low"]], [100 * row["us_high"]], colour)
        panel.marks([100 * row["us_difference"]], [y], colour)
    panel.rule(x=0)
    panel.y.low, panel.y.high, panel.y.has_grid = -0.7, len(rows) - 0.3, False
    panel.y.ticks = [(y, model_label(r["model"])) for y, r in enumerate(rows)]
    return svg(short(title, 66), [panel], 120 + 30 * len(rows))
