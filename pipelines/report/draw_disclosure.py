"""The plots of disclosure, each from plain rows to SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumbline.pipelines.report.model import Row
from plumbline.pipelines.report.plot import FEMALE, MALE, looks, short
from plumbline.pipelines.report.svg import Panel, svg

_LOSSES = {"distance_nats": "L_d, nats", "total": "L_g", "difference": "L_l"}
_MARKERS = "osD^v"
#: Steps that the drawn curves of losses are means of.
SMOOTHED = 10


@dataclass(frozen=True)
class Series:
    """Figures of one kind: ``columns`` are value, lower and upper end, NULL where undefined."""

    label: str
    rows: Sequence[Row]
    columns: tuple[str, str, str]
    color: str


def gld_by_topic(rows: Sequence[Row], title: str) -> str:
    """GLD of all prompts and of each topic, one mark per model."""
    of_model: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        of_model.setdefault((row["model"], row["model_key"]), []).append(row)
    series = [
        Series(short(name, 44), of, ("gld", "gld_low", "gld_high"), look["color"])
        for ((name, _), of), look in zip(of_model.items(), looks(len(of_model)), strict=True)
    ]
    return _ranges(series, title, "GLD with 95% interval (0: both genders alike; 1: one alone)")


def gas_by_topic(rows: Sequence[Row], title: str) -> str:
    """Continuations with a female and with a male word, of all prompts and of each topic."""
    series = [
        Series(label, rows, (name, f"{name}_low", f"{name}_high"), colour)
        for name, label, colour in (
            ("gas_f", "female word", FEMALE),
            ("gas_m", "male word", MALE),
        )
    ]
    return _ranges(series, title, "% of greedy continuations with 95% interval", 100)


def _ranges(series: Sequence[Series], title: str, x: str, scale: float = 1) -> str:
    topics = list(dict.fromkeys(row["topic"] for one in series for row in one.rows))
    panel = Panel(x)
    for i, one in enumerate(series):
        shift = 0.6 * ((i + 0.5) / len(series) - 0.5)
        at = [(topics.index(row["topic"]) + shift, row) for row in one.rows]
        value, low, high = one.columns
        ends = [(y, row) for y, row in at if None not in (row[low], row[high])]
        lows, highs = ([scale * row[end] for _, row in ends] for end in (low, high))
        panel.spans([y for y, _ in ends], lows, highs, one.color)
        drawn = [(y, row) for y, row in at if row[value] is not None]
        shape, values = _MARKERS[i % len(_MARKERS)], [scale * row[value] for _, row in drawn]
        panel.marks(values, [y for y, _ in drawn], one.color, shape, label=one.label)
    names = ["all prompts" if topic is None else topic for topic in topics]
    panel.x.low = 0
    panel.y.low, panel.y.high = len(topics) - 0.5, -0.5
    panel.y.ticks, panel.y.has_grid = [(i, short(name)) for i, name in enumerate(names)], False
    height = 120 + 12 * len(series) + len(topics) * max(36, 16 * len(series))
    return svg(short(title, 66), [panel], height)


def losses(steps: Sequence[Row], title: str) -> str:
    """The three losses against the step: means of some steps over the single ones, in log scale."""
    panel = Panel("step", "loss")
    x = np.array([row["step"] for row in steps])
    width = min(SMOOTHED, max(1, len(steps) // 2))
    for (column, label), look in zip(_LOSSES.items(), looks(len(_LOSSES)), strict=True):
        y = np.array([row[column] for row in steps])
        panel.line(x, y, look["color"], width=0.8, opacity=0.4)
        mean = np.convolve(y, np.full(width, 1 / width), mode="valid")
        panel.line(x[width - 1 :], mean, label=label, **look)
        if len(mean) < 2:
            panel.marks(x[width - 1 :], mean, look["color"])
    panel.y.is_log = all(row[column] > 0 for row in steps for column in _LOSSES)
    return svg(short(title, 66), [panel])
