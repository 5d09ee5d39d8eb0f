"""The plots of sweeps, each from plain rows of its view to SVG."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.pipelines.report.model import Row
from plumbline.pipelines.report.plot import FEMALE, MALE, NEUTRAL, looks, short
from plumbline.pipelines.report.svg import INK, Panel, svg

_PARAMETERS = {"temperature": "temperature", "top_p": "top-p", "top_k": "top-k"}
_CURVES = {"gas": ("any gendered word", INK), "gas_f": ("female", FEMALE), "gas_m": ("male", MALE)}
_MEASURES = {"gas": "GAS (share)", "gld": "GLD (share)", "add_nats": "ADD (nats)"}


def decoding(rows: Sequence[Row], title: str) -> str:
    """Shares of gendered continuations by each value of each parameter, greedy as a dotted line."""
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
            if column == "gas":
                low, high = ([r[f"gas_{e}"] for _, r in drawn] for e in ("low", "high"))
                panel.band(xs, low, high, NEUTRAL)
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
        middle = (points[0][0] + points[-1][0]) / 2
        panel.foot(middle, _PARAMETERS[name])
    return svg(short(title, 66), [panel])


def instructions(rows: Sequence[Row], title: str) -> str:
    """GAS, GLD and ADD with intervals, one line per instruction; none, the reference, first."""
    keys = list(dict.fromkeys(row["instruction_key"] for row in rows))
    keys.sort(key=lambda key: key != "none")
    labels = {}
    for row in rows:
        told = f"{row['form']}: {row['instruction']}" if row["instruction"] else "none"
        labels[row["instruction_key"]] = short(told, 40)
    panel = Panel("lower: less disclosed")
    for i, (measure, look) in enumerate(zip(_MEASURES, looks(len(_MEASURES)), strict=True)):
        of = [
            (keys.index(r["instruction_key"]) + (i - 1) * 0.2, r)
            for r in rows
            if r["measure"] == measure and r["figure"] is not None
        ]
        ends = [(y, r) for y, r in of if r["figure_low"] is not None]
        low, high = ([r[f"figure_{end}"] for _, r in ends] for end in ("low", "high"))
        panel.spans([y for y, _ in ends], low, high, look["color"])
        values, ys = [r["figure"] for _, r in of], [y for y, _ in of]
        panel.marks(values, ys, look["color"], "os^"[i], label=_MEASURES[measure])
    panel.x.low = 0
    panel.y.ticks = [(y, labels[key]) for y, key in enumerate(keys)]
    panel.y.low, panel.y.high, panel.y.has_grid = len(keys) - 0.5, -0.5, False
    return svg(short(title, 66), [panel], 140 + 50 * len(keys))
