"""The plots of disclosure, each from plain rows to PNG bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plumbline.pipelines.report.model import Row
from plumbline.pipelines.report.plot import FEMALE, MALE, looks, model_label, one_plot

_LOSSES = {"distance_nats": "L_d, nats", "total": "L_g", "difference": "L_l"}
_MARKERS = "osD^vP*X"
#: Steps that the drawn curves of losses are means of.
SMOOTHED = 10


@dataclass(frozen=True)
class Series:
    """Figures of one kind: ``columns`` are value, lower and upper end, NULL where undefined."""

    label: str
    rows: Sequence[Row]
    columns: tuple[str, str, str]
    look: Any


def gld_by_topic(rows: Sequence[Row], title: str) -> bytes:
    """GLD of all prompts and of each topic, a mark a model."""
    of_model: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        of_model.setdefault((row["model"], row["model_key"]), []).append(row)
    series = [
        Series(model_label(name), of, ("gld", "gld_low", "gld_high"), {"color": look["color"]})
        for ((name, _), of), look in zip(of_model.items(), looks(len(of_model)), strict=True)
    ]
    return _ranges(series, title, "GLD with 95% interval (0: both genders alike; 1: one alone)")


def gas_by_topic(rows: Sequence[Row], title: str) -> bytes:
    """Continuations with a female and with a male word, of all prompts and of each topic."""
    series = [
        Series(label, rows, (name, f"{name}_low", f"{name}_high"), {"color": colour})
        for name, label, colour in (
            ("gas_f", "female word", FEMALE),
            ("gas_m", "male word", MALE),
        )
    ]
    return _ranges(series, title, "% of greedy continuations with 95% interval", 100)


def _ranges(series: Sequence[Series], title: str, x: str, scale: float = 1) -> bytes:
    topics = list(dict.fromkeys(row["topic"] for one in series for row in one.rows))
    height = 1.7 + len(topics) * max(0.4, 0.18 * len(series))
    with one_plot(title, x, "", height) as (ax, png):
        for i, one in enumerate(series):
            shift = 0.6 * ((i + 0.5) / len(series) - 0.5)
            rows = [row for row in one.rows if row[one.columns[0]] is not None]
            y = [topics.index(row["topic"]) + shift for row in rows]
            value = [scale * row[one.columns[0]] for row in rows]
            marker = _MARKERS[i % len(_MARKERS)]
            ax.plot(value, y, marker, markersize=5, label=one.label, **one.look)
            for at, row in zip(y, rows, strict=True):
                ends = [row[column] for column in one.columns[1:]]
                if None not in ends:
                    ax.plot([scale * e for e in ends], [at, at], linewidth=1.5, **one.look)
        names = ["all prompts" if topic is None else topic for topic in topics]
        ax.set_yticks(range(len(topics)), names)
        ax.set_ylim(len(topics) - 0.5, -0.5)
        ax.set_xlim(left=0)
        ax.grid(False, axis="y")
        columns = 1 if any("\n" in one.label or len(one.label) > 24 for one in series) else 2
        ax.figure.legend(loc="outside lower center", ncols=columns, fontsize=9.5)
    return png[0]


def losses(steps: Sequence[Row], title: str) -> bytes:
    """The three losses against the step: means of some steps over the single ones, in log scale."""
    with one_plot(title, "step", "loss") as (ax, png):
        x = np.array([row["step"] for row in steps])
        width = min(SMOOTHED, max(1, len(steps) // 2))
        for (column, label), look in zip(_LOSSES.items(), looks(len(_LOSSES)), strict=True):
            y = np.array([row[column] for row in steps])
            ax.plot(x, y, linewidth=0.7, alpha=0.35, color=look["color"])
            mean = np.convolve(y, np.full(width, 1 / width), mode="valid")
            marker = "o" if len(mean) < 2 else ""
            ax.plot(x[width - 1 :], mean, linewidth=1.8, label=label, marker=marker, **look)
        if all(row[column] > 0 for row in steps for column in _LOSSES):
            ax.set_yscale("log")
        ax.figure.legend(loc="outside lower center", ncols=3, fontsize=9.5)
    return png[0]
