"""The plot of models against one of them, from plain rows to PNG bytes."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.pipelines.report.model import Row
from plumbline.pipelines.report.plot import FEMALE, LINE, MALE, NEUTRAL, model_label, one_plot

_COLOURS = {"rose": MALE, "fell": FEMALE}


def against_reference(rows: Sequence[Row], title: str) -> bytes:
    """The difference in US of each model, with its interval; grey where it is not clear."""
    rows = sorted(rows, key=lambda r: (r["us_difference"], r["model"], r["model_key"]))
    x = "US, points of difference (less even < 0 < more)"
    with one_plot(title, x, "", 1.5 + 0.3 * len(rows)) as (ax, png):
        for y, row in enumerate(rows):
            colour = _COLOURS.get(row["us_direction"], NEUTRAL)
            if row["us_low"] is not None:
                ends = [100 * row["us_low"], 100 * row["us_high"]]
                ax.plot(ends, [y, y], color=colour, linewidth=1.6)
            ax.plot([100 * row["us_difference"]], [y], "o", color=colour, markersize=5)
        ax.set_yticks(range(len(rows)), [model_label(r["model"]) for r in rows])
        ax.tick_params(axis="y", labelsize=9.5 if len(rows) < 12 else 8.5)
        ax.axvline(0, color=LINE, linewidth=0.8)
        ax.set_ylim(-0.7, len(rows) - 0.3)
        ax.grid(False, axis="y")
    return png[0]
