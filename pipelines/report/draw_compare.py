"""The plot of a comparison, from plain rows to PNG bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plumbline.pipelines.report.model import Row
from plumbline.pipelines.report.plot import MALE, NEUTRAL, panels, short

MEASURES = {"gas": "GAS (share)", "gld": "GLD", "add_nats": "ADD (nats)"}


def before_after(rows: Sequence[Row]) -> bytes:
    """GAS, GLD and ADD of each set before and after, with their intervals; a panel a measure."""
    sets = sorted({r["probe_set"] for r in rows})
    present = [m for m in MEASURES if any(r["measure"] == m for r in rows)]
    height = 1.9 + 0.45 * len(sets)
    with panels("Before and after tuning", [MEASURES[m] for m in present], height) as (axes, png):
        for axis, measure in zip(axes, present, strict=True):
            for row in (r for r in rows if r["measure"] == measure):
                y = sets.index(row["probe_set"])
                _mark(axis, row, "before", y - 0.14, {"color": NEUTRAL, "markerfacecolor": "white"})
                _mark(axis, row, "after", y + 0.14, {"color": MALE})
            axis.set_xlim(left=0)
            axis.locator_params(axis="x", nbins=3)
            axis.set_ylim(max(len(sets), 2) - 0.4, -0.6)
            axis.grid(False, axis="y")
        tuned = {r["probe_set"] for r in rows if r["n_tuned_on"]}
        names = [short(name, 24) + (" (tuned on)" if name in tuned else "") for name in sets]
        axes[0].set_yticks(range(len(sets)), names)
        axes[0].plot([], [], "o-", color=NEUTRAL, markerfacecolor="white", label="before")
        axes[0].plot([], [], "o-", color=MALE, label="after")
        axes[0].figure.legend(loc="outside lower center", ncols=2, fontsize=9.5)
    return png[0]


def _mark(axis: Any, row: Row, side: str, y: float, look: dict[str, Any]) -> None:
    low, high = row[f"{side}_low"], row[f"{side}_high"]
    if low is not None:
        axis.plot([low, high], [y, y], linewidth=1.6, color=look["color"])
    axis.plot([row[f"{side}_mean"]], [y], "o", markersize=5.5, **look)
