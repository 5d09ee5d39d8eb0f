"""The plots, each from plain rows to PNG bytes. Colours are told apart by colour-blind readers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plumbline.pipelines.report.model import Row, shown
from plumbline.pipelines.report.plot import (
    FEMALE,
    HEIGHT,
    LINE,
    MALE,
    NEUTRAL,
    grouped,
    legend,
    looks,
    model_label,
    one_plot,
    short,
)


def delta_distribution(rows: Sequence[Row], contrast: str) -> bytes:
    """Share of a corpus's words in each bin of 0.1 nats of delta, a line a corpus."""
    title = f"How words lean: delta ({contrast})"
    with one_plot(title, "delta in nats (male < 0 < female)", "% of words in 0.1 nats") as (
        ax,
        png,
    ):
        groups = grouped(rows, "corpus")
        for ((corpus,), of), look in zip(groups, looks(len(groups)), strict=True):
            bins = np.arange(min(r["bin"] for r in of), max(r["bin"] for r in of) + 1)
            n = sum(r["n_words"] for r in of)
            share = dict.fromkeys(bins.tolist(), 0.0) | {
                r["bin"]: 100 * r["n_words"] / n for r in of
            }
            edges = np.append(bins, bins[-1] + 1) * 0.1
            label = f"{short(corpus)} (n = {n:,} words)"
            ax.stairs([share[b] for b in bins.tolist()], edges, label=label, linewidth=1.6, **look)
        ax.axvline(0, color=NEUTRAL, linewidth=0.8)
        ax.set_ylim(bottom=0)
        ax.figure.legend(loc="outside lower center", ncols=min(2, len(groups)), fontsize=9)
    return png[0]


def kept_against_eta(rows: Sequence[Row], title: str) -> bytes:
    """Share of natural pairs with \\|MaxPMI\\| <= eta against eta, a line a benchmark."""
    with one_plot(title, "eta: limit on |MaxPMI| in nats", "% of pairs kept") as (ax, png):
        groups = grouped(rows, "benchmark")
        for ((benchmark,), of), look in zip(groups, looks(len(groups)), strict=True):
            y = [100 * r["n_kept"] / r["n"] for r in of]
            label = f"{short(benchmark)} (n = {of[0]['n']:,})"
            ax.plot([r["eta_nats"] for r in of], y, label=label, linewidth=1.8, **look)
        ax.set(xlim=(0, 2), ylim=(0, 101))
        legend(ax, len(groups))
    return png[0]


def us_against_epsilon(rows: Sequence[Row], benchmark: str, epsilon: float) -> bytes:
    """US against epsilon for each model of a benchmark; the dotted line is the epsilon used."""
    groups = grouped(rows, "model", "model_key")
    height = HEIGHT + (0.11 * len(groups) if len(groups) > 4 else 0)
    names, same_n = _names(groups), _same_n([of[0] for _, of in groups])
    title = f"{short(benchmark, 28)}: pairs without a preference{same_n}"
    x = "epsilon: largest |log ratio| that is no preference, in nats"
    with one_plot(title, x, "US: % of pairs", height) as (ax, png):
        for (key, of), look in zip(groups, looks(len(groups)), strict=True):
            label = model_label(names[key]) + ("" if same_n else f" (n = {of[0]['n']:,})")
            y = [100 * r["us"] for r in of]
            ax.plot([r["epsilon_nats"] for r in of], y, label=label, linewidth=1.6, **look)
        ax.axvline(epsilon, color=LINE, linestyle=":", linewidth=1.2)
        ax.annotate(
            f"{shown(epsilon)}", (epsilon, 1), xytext=(3, 3), textcoords="offset points", fontsize=9
        )
        ax.set(xlim=(0, 6), ylim=(0, 101))
        legend(ax, len(groups))
    return png[0]


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


def pd_bars(rows: Sequence[Row], benchmark: str) -> bytes:
    """PD of each model of a benchmark with its interval, sorted."""
    rows = sorted(rows, key=lambda r: (r["value"], r["model"], r["model_key"]))
    names = _names([((r["model"], r["model_key"]), [r]) for r in rows])
    same_n = _same_n(rows)
    labels = [
        model_label(names[r["model"], r["model_key"]]) + ("" if same_n else f" (n = {r['n']:,})")
        for r in rows
    ]
    title = f"{short(benchmark, 28)}: which sentence is preferred{same_n}"
    x = "PD, percentage points (male < 0 < female)"
    with one_plot(title, x, "", 1.5 + 0.3 * max(len(rows), 3)) as (ax, png):
        values = np.array([r["value"] for r in rows])
        low = values - [r["ci_low"] for r in rows]
        high = [r["ci_high"] for r in rows] - values
        colours = [FEMALE if v > 0 else MALE for v in values]
        y = np.arange(len(rows))
        # The adjusted interval is not centred and may start a hair beyond the value.
        error = np.clip([low, high], 0, None)
        ax.barh(y, values, color=colours, height=0.68, xerr=error, ecolor=LINE, capsize=2)
        ax.set_yticks(y, labels, fontsize=9.5 if len(rows) < 12 else 8.5)
        ax.axvline(0, color=LINE, linewidth=0.8)
        reach = max(10.0, *np.abs(values + high), *np.abs(values - low)) * 1.08
        ax.set(xlim=(-min(reach, 104), min(reach, 104)), ylim=(-0.7, max(len(rows), 3) - 0.3))
        ax.grid(False, axis="y")
    return png[0]


def fitted(points: Sequence[Row], fit: Row, labels: Mapping[str, str]) -> bytes:
    """Points with the least-squares line and its 95% band, and the identity where ``labels`` asks.

    ``labels``: ``title``, ``x``, ``y``, ``note`` (under the title), ``identity`` (its legend, or
    empty for none).
    """
    x = np.array([p["x_nats"] for p in points])
    y = np.array([p["y_nats"] for p in points])
    with one_plot(labels["title"], labels["x"], labels["y"], 4.8) as (ax, png):
        size, alpha = (18, 0.45) if len(x) < 1500 else (5, 0.25)
        ax.scatter(x, y, s=size, alpha=alpha, color=NEUTRAL, linewidths=0)
        for colour, side in ((FEMALE, x > 0), (MALE, x < 0)):
            ax.scatter(x[side], y[side], s=size, alpha=alpha, color=colour, linewidths=0)
        ends = np.linspace(x.min(), x.max(), 80)
        line = fit["intercept_nats"] + fit["slope"] * ends
        ax.plot(ends, line, color=LINE, linewidth=1.8, label="fitted line, 95% band")
        if fit["slope_se"] is not None and fit["t"] is not None:
            spread = (ends - fit["mean_x_nats"]) ** 2 + fit["sxx"] / fit["n"]
            band = fit["t"] * fit["slope_se"] * np.sqrt(spread)
            ax.fill_between(ends, line - band, line + band, color=LINE, alpha=0.18, linewidth=0)
        if labels["identity"]:
            ax.plot(ends, ends, color=NEUTRAL, linestyle=":", label=labels["identity"])
        ax.axhline(0, color=NEUTRAL, linewidth=0.6)
        ax.axvline(0, color=NEUTRAL, linewidth=0.6)
        top = max(y.max(), float(line.max()))
        ax.set_ylim(top=top + 0.16 * (top - min(y.min(), float(line.min()))) + 1e-6)
        ax.legend(loc="upper left", ncols=2)
        # In the lower corner that the line leaves empty.
        x_note, align = (0.99, "right") if fit["slope"] >= 0 else (0.01, "left")
        ax.text(
            *(x_note, 0.02, labels["note"]),
            transform=ax.transAxes,
            va="bottom",
            ha=align,
            fontsize=10,
        )
    return png[0]


def is_drawable(points: Sequence[Row]) -> bool:
    """Whether points can be drawn: two or more, all finite."""
    return len(points) > 1 and all(
        math.isfinite(p["x_nats"]) and math.isfinite(p["y_nats"]) for p in points
    )
