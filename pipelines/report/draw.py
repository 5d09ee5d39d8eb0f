"""The plots, each from plain rows to SVG. Colours are told apart by colour-blind readers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plumbline.pipelines.report.model import Row, shown
from plumbline.pipelines.report.plot import (
    FEMALE,
    MALE,
    NEUTRAL,
    grouped,
    looks,
    model_label,
    short,
)
from plumbline.pipelines.report.svg import HEIGHT, INK, Panel, svg


def delta_distribution(rows: Sequence[Row], contrast: str) -> str:
    """Share of a corpus's words in each bin of 0.1 nats of delta, one line per corpus."""
    panel = Panel("delta in nats (male < 0 < female)", "% of words in 0.1 nats")
    groups = grouped(rows, "corpus")
    for ((corpus,), of), look in zip(groups, looks(len(groups)), strict=True):
        bins = range(min(r["bin"] for r in of), max(r["bin"] for r in of) + 1)
        n = sum(r["n_words"] for r in of)
        share = dict.fromkeys(bins, 0.0) | {r["bin"]: 100 * r["n_words"] / n for r in of}
        xs = [0.1 * edge for b in bins for edge in (b, b + 1)]
        ys = [share[b] for b in bins for _ in "ab"]
        label = f"{short(corpus)} (n = {n:,} words)"
        panel.line([xs[0], *xs, xs[-1]], [0, *ys, 0], label=label, **look)
    panel.rule(x=0, color=NEUTRAL)
    panel.y.low = 0
    return svg(f"How words lean: delta ({short(contrast)})", [panel])


def kept_against_eta(rows: Sequence[Row], title: str) -> str:
    """Share of natural pairs with \\|MaxPMI\\| <= eta against eta, one line per benchmark."""
    panel = Panel("eta: limit on |MaxPMI| in nats", "% of pairs kept")
    groups = grouped(rows, "benchmark")
    for ((benchmark,), of), look in zip(groups, looks(len(groups)), strict=True):
        y = [100 * r["n_kept"] / r["n"] for r in of]
        label = f"{short(benchmark)} (n = {of[0]['n']:,})"
        panel.line([r["eta_nats"] for r in of], y, label=label, **look)
    panel.x.low, panel.x.high, panel.y.low, panel.y.high = 0, 2, 0, 101
    return svg(short(title, 66), [panel])


def us_against_epsilon(rows: Sequence[Row], benchmark: str, epsilon: float) -> str:
    """US against epsilon for each model of a benchmark; the dotted line is the epsilon used."""
    groups = grouped(rows, "model", "model_key")
    names, same_n = _names(groups), _same_n([of[0] for _, of in groups])
    panel = Panel("epsilon: largest |log ratio| that is no preference, in nats", "US: % of pairs")
    for (key, of), look in zip(groups, looks(len(groups)), strict=True):
        label = short(names[key], 44) + ("" if same_n else f" (n = {of[0]['n']:,})")
        y = [100 * r["us"] for r in of]
        panel.line([r["epsilon_nats"] for r in of], y, label=label, **look)
    panel.rule(x=epsilon, linestyle=":")
    panel.note(epsilon + 0.05, 2, shown(epsilon))
    panel.x.low, panel.x.high, panel.y.low, panel.y.high = 0, 6, 0, 101
    title = f"{short(benchmark, 28)}: pairs without a preference{same_n}"
    return svg(title, [panel], HEIGHT + 10 * len(groups))


def _names(groups: Sequence[tuple[tuple[Any, ...], list[Row]]]) -> dict[tuple[Any, ...], str]:
    """Model names, told apart by their key where one name has several."""
    keys = [key for key, _ in groups]
    return {
        key: key[0] if sum(k[0] == key[0] for k in keys) == 1 else f"{key[0]} [{key[1][:8]}]"
        for key in keys
    }


def _same_n(rows: Sequence[Row]) -> str:
    """The number of pairs for a title, when all models were scored on as many; else empty."""
    numbers = {r["n"] for r in rows}
    return f" (n = {numbers.pop():,} pairs)" if len(numbers) == 1 else ""


def pd_bars(rows: Sequence[Row], benchmark: str) -> str:
    """PD of each model of a benchmark with its interval, sorted."""
    rows = sorted(rows, key=lambda r: (r["value"], r["model"], r["model_key"]))
    names = _names([((r["model"], r["model_key"]), [r]) for r in rows])
    same_n = _same_n(rows)
    labels = [
        model_label(names[r["model"], r["model_key"]]) + ("" if same_n else f" (n = {r['n']:,})")
        for r in rows
    ]
    panel = Panel("PD, percentage points (male < 0 < female)")
    for colour, is_female in ((FEMALE, True), (MALE, False)):
        side = [(y, r["value"]) for y, r in enumerate(rows) if (r["value"] > 0) == is_female]
        panel.bars([y for y, _ in side], [value for _, value in side], colour)
    panel.spans(
        range(len(rows)), [r["ci_low"] for r in rows], [r["ci_high"] for r in rows], INK, 1.2
    )
    panel.rule(x=0)
    reach = 1.08 * max(10.0, *(abs(r[c]) for r in rows for c in ("value", "ci_low", "ci_high")))
    panel.x.low, panel.x.high = -min(reach, 104), min(reach, 104)
    panel.y.low, panel.y.high = -0.7, len(rows) - 0.3
    panel.y.ticks, panel.y.has_grid = list(enumerate(labels)), False
    title = f"{short(benchmark, 28)}: which sentence is preferred{same_n}"
    return svg(title, [panel], 105 + 34 * len(rows))


def fitted(points: Sequence[Row], fit: Row, labels: Mapping[str, str]) -> str:
    """Points with the least-squares line and its 95% band, and the identity where ``labels`` asks.

    ``labels``: ``title``, ``x``, ``y``, ``note`` (in a corner), ``identity`` (its legend, or
    empty for none).
    """
    x = np.array([p["x_nats"] for p in points])
    y = np.array([p["y_nats"] for p in points])
    panel = Panel(labels["x"], labels["y"])
    panel.rule(x=0, color=NEUTRAL, width=0.7)
    panel.rule(y=0, color=NEUTRAL, width=0.7)
    size, opacity = (6, 0.5) if len(x) < 1500 else (3, 0.3)
    for colour, side in ((NEUTRAL, x == 0), (FEMALE, x > 0), (MALE, x < 0)):
        panel.cloud(x[side], y[side], colour, size, opacity)
    ends = np.linspace(x.min(), x.max(), 40)
    line = fit["intercept_nats"] + fit["slope"] * ends
    if labels["identity"]:
        panel.line(ends, ends, NEUTRAL, ":", label=labels["identity"])
    if fit["slope_se"] is not None and fit["t"] is not None:
        spread = (ends - fit["mean_x_nats"]) ** 2 + fit["sxx"] / fit["n"]
        band = fit["t"] * fit["slope_se"] * np.sqrt(spread)
        panel.band(ends, line - band, line + band, INK)
    panel.line(ends[[0, -1]], line[[0, -1]], INK, label="fitted line, 95% band")
    # In the lower corner that the line leaves empty.
    panel.corner(labels["note"], "end" if fit["slope"] >= 0 else "start")
    return svg(short(labels["title"], 66), [panel], 480)


def is_drawable(points: Sequence[Row]) -> bool:
    """Whether points can be drawn: two or more, all finite."""
    return len(points) > 1 and all(
        math.isfinite(p["x_nats"]) and math.isfinite(p["y_nats"]) for p in points
    )
