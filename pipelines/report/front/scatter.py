"""The first figure: preference of a model, word by word, against the lean of the text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.front.headline import Headline
from plumbline.pipelines.report.groups import set_name, sides
from plumbline.pipelines.report.model import Figure, shown, stem
from plumbline.pipelines.report.plots.svg import INK, NEUTRAL, Panel, svg
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.pipelines.report.sections.follow import (
    BY_MAX_PMI,
    LEANS,
    drawable_points,
    fitted_line,
)

#: Most words whose names are written; a name needs room.
_LABELLED = 10
#: If there are more points than this, they are drawn as a cloud, without names as tooltips.
_MOST_NAMED = 800


def figure(facts: Facts, head: Headline) -> Figure | None:
    """The points of the headline's fit with its line; ``None`` where they can't be drawn."""
    fit, points = head.fit, drawable_points(facts, head.fit)
    if not points:
        return None
    name, (first, _) = set_name(fit), sides(fit)
    which, pairs = f"of {name}", "sentences with it"
    if fit["subset"] == BY_MAX_PMI:
        which, pairs = f"that decides the MaxPMI of some pairs of {name}", "these pairs, often few"
    middle = f" (the middle one of {len(head.about)})" if len(head.about) > 1 else ""
    return Figure(
        stem("lean", fit["model"], name, fit["corpus"]),
        f"Each word's preference by {fit['model']} against its lean in {fit['corpus']}: slope "
        f"{shown(fit['slope'], 2, signed=True)} over {fit['n']:,} words.",
        f"Each dot is a word {which}. Across: its lean in the text {fit['corpus']} "
        f"(right: {first}). Up: the mean log ratio of the model {fit['model']}{middle} in "
        f"{pairs} (up: {first}). Outer words are named. Line: least squares, 95% band.",
        _drawn(points, fit),
        points,
    )


def _drawn(points: Rows, fit: Row) -> str:
    x, y = (np.array([p[column] for p in points]) for column in ("x_nats", "y_nats"))
    lean, _ = LEANS[fit["subset"]]
    panel = Panel(lean, f"log ratio in nats (up: {sides(fit)[0]})")
    panel.rule(x=0, color=NEUTRAL, width=0.7)
    panel.rule(y=0, color=NEUTRAL, width=0.7)
    fitted_line(panel, x, fit)
    if len(points) > _MOST_NAMED:
        panel.cloud(x, y, INK, 4, 0.4)
    else:
        titles = [
            f"{p['point']}: lean {shown(p['x_nats'], 2, signed=True)} nats in the text, "
            f"preference {shown(p['y_nats'], 2, signed=True)} nats"
            for p in points
        ]
        panel.named(x, y, INK, titles)
    named = [(float(x[i]), float(y[i]), str(points[i]["point"])) for i in _outermost(x, y)]
    panel.labels(named, _LABELLED)
    return svg("", [panel], 440, 600)


def _outermost(x: np.ndarray, y: np.ndarray) -> Sequence[int]:
    """Indices of the points, outermost first: in turn the highest, right, lowest and left one."""
    spread_x, spread_y = (float(v.std()) or 1.0 for v in (x, y))
    across, up = (x - x.mean()) / spread_x, (y - y.mean()) / spread_y
    ways = [np.argsort(-far, kind="stable") for far in (up, across, -up, -across)]
    return list(dict.fromkeys(int(i) for turn in zip(*ways, strict=True) for i in turn))
