"""The plots of FairPair, each from plain rows to PNG bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from plumbline.pipelines.report.model import Row, shown
from plumbline.pipelines.report.plot import (
    FEMALE,
    LINE,
    MALE,
    NEUTRAL,
    grouped,
    looks,
    one_plot,
    short,
)

#: Prompts drawn: all up to the sum, else so many from the top and from the bottom.
TOP, BOTTOM = 20, 10
#: F that ranges over more than this is drawn on a logarithmic axis.
_WIDE = 3.0
#: Upper 97.5% point of the normal distribution.
_Z975 = 1.96
_WHISKER: Any = {"ecolor": LINE, "elinewidth": 0.9, "capsize": 1.5}
QUANTITIES = {
    "bias_b": "B, between the groups",
    "variability_pg": "V_pg, perturbed",
    "variability_gp": "V_gp, prompted",
}


def chosen(prompts: Sequence[Row]) -> list[Row | None]:
    """Prompts with an F, largest first; ``None`` stands for those left out between the ends."""
    ranked = [r for r in prompts if r["fairpair_f"] is not None]
    ranked.sort(key=lambda r: (-r["fairpair_f"], r["prompt_id"]))
    if len(ranked) <= TOP + BOTTOM:
        return list(ranked)
    return [*ranked[:TOP], None, *ranked[-BOTTOM:]]


def by_prompt(prompts: Sequence[Row], alpha: float, title: str) -> bytes:
    """F of each prompt with its interval, sorted; those that differ after correction in colour."""
    rows = chosen(prompts)
    n_ranked = sum(r["fairpair_f"] is not None for r in prompts)
    with one_plot(title, "F (1: no more than sampling noise)", "", 1.9 + 0.2 * len(rows)) as (
        ax,
        png,
    ):
        labels = []
        for y, row in enumerate(rows):
            if row is None:
                left_out = n_ranked - TOP - BOTTOM
                labels.append(f"… {left_out} more …")
                continue
            labels.append(short(row["prompt"], 30))
            clear = row["p_adjusted"] is not None and row["p_adjusted"] <= alpha
            look: dict[str, Any] = {"color": FEMALE if clear else NEUTRAL}
            ax.plot([row["fairpair_f"]], [y], "o" if clear else "s", markersize=4.5, **look)
            if row["ci_low"] is not None:
                ax.plot([row["ci_low"], row["ci_high"]], [y, y], linewidth=1.6, **look)
        # Entries of the legend, off the plot's range.
        ax.plot([], [], "o-", color=FEMALE, label=f"differs (corrected p ≤ {alpha:g})")
        ax.plot([], [], "s-", color=NEUTRAL, label="not shown to differ")
        ax.axvline(1, color=LINE, linewidth=1, linestyle=":")
        _scale(ax, [r for r in rows if r is not None])
        ax.set_yticks(range(len(rows)), labels, fontsize=9)
        ax.set_ylim(max(len(rows), 3) - 0.4, -0.6)
        ax.grid(False, axis="y")
        ax.figure.legend(loc="outside lower center", ncols=2, fontsize=9.5)
    return png[0]


def _scale(axes: Axes, rows: Sequence[Row]) -> None:
    """A logarithmic axis where F, a ratio, ranges over more than ``_WIDE`` times."""
    columns = ("fairpair_f", "ci_low", "ci_high")
    values = [r[c] for r in rows for c in columns if r[c] is not None]
    low, high = min(values, default=1.0), max(values, default=1.0)
    if low > 0 and high / low > _WIDE:
        axes.set_xscale("log")
        within = [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if low / 2 < t < high * 2]
        axes.set_xticks(within, [f"{tick:g}" for tick in within])
        axes.minorticks_off()


def convergence(rows: Sequence[Row], title: str, by: str) -> bytes:
    """Means of B, V_pg and V_gp in percent with one standard deviation to either side.

    ``by`` is `n_samples` or `n_folds`, the horizontal axis, on a logarithmic scale.
    """
    x_label = "samples drawn of each group" if by == "n_samples" else "folds of each group"
    with one_plot(title, x_label, "mean distance, %") as (ax, png):
        groups = grouped([r for r in rows if r["quantity"] in QUANTITIES], "quantity")
        for ((quantity,), of), look in zip(groups, looks(len(groups)), strict=True):
            x = np.array([r[by] for r in of])
            y = 100 * np.array([r["mean"] for r in of])
            spread = 100 * np.array([r["sd"] or 0.0 for r in of])
            ax.plot(x, y, marker="o", markersize=3.5, label=QUANTITIES[quantity], **look)
            ax.fill_between(x, y - spread, y + spread, alpha=0.15, linewidth=0, color=look["color"])
        ticks = sorted({r[by] for r in rows})
        ax.set_xscale("log")
        ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        ax.minorticks_off()
        ax.legend()
    return png[0]


def ngrams(rows: Sequence[Row], of_perturbed: str, of_other: str, title: str) -> bytes:
    """Log-odds of n-grams with 95% intervals and z, those of the perturbed texts to the right."""
    with one_plot(title, "log-odds in nats, with 95% interval", "", 1.9 + 0.22 * len(rows)) as (
        ax,
        png,
    ):
        sides = ((True, of_perturbed, MALE), (False, of_other, FEMALE))
        reach = 0.0
        for is_perturbed, name, colour in sides:
            of = [(y, r) for y, r in enumerate(rows) if (r["z"] > 0) == is_perturbed]
            odds = [r["log_odds_nats"] for _, r in of]
            error = [_Z975 * r["log_odds_nats"] / r["z"] for _, r in of]
            label = f"more often of {short(name, 24)}"
            ax.barh([y for y, _ in of], odds, height=0.7, color=colour, label=label)
            ax.errorbar(odds, [y for y, _ in of], xerr=error, fmt="none", **_WHISKER)
            reach = max([reach, *(abs(o) + e for o, e in zip(odds, error, strict=True))])
        for y, r in enumerate(rows):
            end = r["log_odds_nats"] + _Z975 * abs(r["log_odds_nats"] / r["z"]) * np.sign(r["z"])
            align = "left" if r["z"] > 0 else "right"
            words = f" z {shown(r['z'], 1, signed=True)} "
            ax.text(end, y, words, va="center", ha=align, fontsize=8, color=LINE)
        ax.set_yticks(range(len(rows)), [short(r["ngram"], 30) for r in rows], fontsize=9)
        ax.axvline(0, color=LINE, linewidth=0.8)
        ax.set(xlim=(-1.3 * reach, 1.3 * reach), ylim=(max(len(rows), 3) - 0.4, -0.6))
        ax.grid(False, axis="y")
        ax.figure.legend(loc="outside lower center", ncols=2, fontsize=9.5)
    return png[0]
