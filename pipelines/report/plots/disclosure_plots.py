"""The plots of disclosure: by topic, during tuning, before and after tuning, and of sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from plumbline.pipelines.report.plots.svg import (
    FEMALE,
    INK,
    MALE,
    NEUTRAL,
    WIDTH,
    Panel,
    looks,
    short,
    svg,
)
from plumbline.pipelines.report.rows import Row, Rows

_LOSSES = {"distance_nats": "L_d, nats", "total": "L_g", "difference": "L_l"}
_MARKERS = "osD^v"
#: Measures that a plot shows, with their units.
MEASURES = {"gas": "GAS (share)", "gld": "GLD", "add_nats": "ADD (nats)"}
_PARAMETERS = {"temperature": "temperature", "top_p": "top-p", "top_k": "top-k"}
_CURVES = {
    "gas": ("any gendered word", INK),
    "gas_f_of_all": ("female", FEMALE),
    "gas_m_of_all": ("male", MALE),
}
#: Most steps in a moving mean of the losses.
SMOOTHED = 10


def measures(rows: Rows, by: str, title: str) -> str:
    """A panel each for GAS, GLD and ADD, with a mark per model and value of column ``by``."""
    groups = rows.groups("model", "model_key")
    panels = []
    for measure, x in MEASURES.items():
        series = [
            (short(model_rows[0]["model"], 44), model_rows, measure, look["color"])
            for model_rows, look in zip(groups, looks(len(groups)), strict=True)
        ]
        if any(row[measure] is not None for row in rows):
            panels.append(_ranges(series, by, x))
    return svg(short(title, 66), panels, _height(rows, by, len(series)), 1.5 * WIDTH)


def gas(rows: Rows, by: str, title: str) -> str:
    """Shares of continuations with a female and with a male word, for each value of ``by``."""
    words = (("female word", "gas_f_of_all", FEMALE), ("male word", "gas_m_of_all", MALE))
    series = [(label, rows, column, colour) for label, column, colour in words]
    panel = _ranges(series, by, "% of greedy continuations with 95% interval", 100)
    return svg(short(title, 66), [panel], _height(rows, by, len(series)))


def _ranges(
    series: Sequence[tuple[str, Rows, str, str]], by: str, x: str, scale: float = 1
) -> Panel:
    """Estimates by the values of ``by``. A series is a label, rows, a column and a colour."""
    topics = list(dict.fromkeys(row[by] for _, rows, *_ in series for row in rows))
    panel = Panel(x)
    for i, (label, rows, name, colour) in enumerate(series):
        shift = 0.6 * ((i + 0.5) / len(series) - 0.5)
        at = [(topics.index(row[by]) + shift, row) for row in rows]
        panel.estimates(at, name, colour, _MARKERS[i % len(_MARKERS)], 7, label, scale)
    panel.x.low = 0
    names = ("all prompts" if topic is None else short(topic) for topic in topics)
    panel.list_down(names, len(topics) - 0.5, -0.5)
    return panel


def _height(rows: Rows, by: str, n_series: int) -> int:
    return 120 + 12 * n_series + len({row[by] for row in rows}) * max(36, 16 * n_series)


def losses(steps: Sequence[Row], title: str, chosen: int | None = None) -> str:
    """The three losses of each step and their moving means, on a log axis if all are above 0.

    Marks are the losses on dev prompts. A dotted line is at ``chosen``, the step that they select.
    """
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
        dev = [(row["step"], row[f"dev_{column}"]) for row in steps if row["dev_loss"] is not None]
        if dev:
            panel.marks([n for n, _ in dev], [y for _, y in dev], look["color"], size=6)
    if chosen is not None:
        panel.rule(x=chosen, linestyle=":", color=INK, label="chosen step")
    panel.y.is_log = all(row[column] > 0 for row in steps for column in _LOSSES)
    return svg(short(title, 66), [panel])


def decoding(rows: Sequence[Row], title: str) -> str:
    """Shares of gendered continuations by each parameter's values; a dotted line for greedy."""
    groups: list[tuple[str, list[tuple[float, Row]]]] = []
    x = 0.0
    for name in _PARAMETERS:
        here = sorted((r for r in rows if r["parameter"] == name), key=lambda r: r["setting"])
        if here:
            groups.append((name, [(x + i, row) for i, row in enumerate(here)]))
            x += len(here) + 0.6
    at = [point for _, points in groups for point in points]
    greedy = next((r for r in rows if r["parameter"] == "greedy"), None)
    panel = Panel(" ", "share of continuations")
    for column, (label, colour) in _CURVES.items():
        for i, (_, points) in enumerate(groups):
            drawn = [(x, row) for x, row in points if row[column] is not None]
            xs, ys = [x for x, _ in drawn], [r[column] for _, r in drawn]
            bands = groupby(drawn, lambda at: at[1]["gas_low"] is not None)
            for part in (list(run) for has_ends, run in bands if has_ends and column == "gas"):
                low, high = ([r[f"gas_{end}"] for _, r in part] for end in ("low", "high"))
                panel.band([x for x, _ in part], low, high, NEUTRAL)
            panel.line(xs, ys, colour, label=label if i == 0 else "")
            panel.marks(xs, ys, colour, size=6)
        if greedy is not None and greedy[column] is not None:
            panel.rule(y=greedy[column], linestyle=":", color=colour)
            panel.y.seen.append(greedy[column])
    best = [(x, row["gas"]) for x, row in at if row["is_best"]]
    if best:
        panel.marks([x for x, _ in best], [y for _, y in best], INK, "O", 11, "lowest GAS")
    panel.rule(y=-1, linestyle=":", color=NEUTRAL, label="greedy")
    panel.y.low = 0
    panel.x.ticks = [(x, f"{row['setting']:g}") for x, row in at]
    panel.x.has_grid = False
    for name, points in groups:
        panel.foot((points[0][0] + points[-1][0]) / 2, _PARAMETERS[name])
    return svg(short(title, 66), [panel])


def instructions(rows: Sequence[Row], title: str) -> str:
    """GAS, GLD and ADD with intervals, by instruction; the reference `none` comes first."""
    keys = list(dict.fromkeys(row["instruction_key"] for row in rows))
    keys.sort(key=lambda key: key != "none")
    labels = {}
    for row in rows:
        label = f"{row['form']}: {row['instruction']}" if row["instruction"] else "none"
        labels[row["instruction_key"]] = short(label, 40)
    panel = Panel("lower: less disclosed")
    for i, (measure, look) in enumerate(zip(MEASURES, looks(len(MEASURES)), strict=True)):
        shift = (i - 1) * 0.2
        measure_rows = [r for r in rows if r["measure"] == measure]
        at = [(keys.index(r["instruction_key"]) + shift, r) for r in measure_rows]
        panel.estimates(at, "figure", look["color"], "os^"[i], label=MEASURES[measure])
    panel.x.low = 0
    panel.list_down((labels[key] for key in keys), len(keys) - 0.5, -0.5)
    return svg(short(title, 66), [panel], 140 + 50 * len(keys))
