"""Charts of words: those that lean most, the distribution of leans, PMI with both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import altair as alt

from plumbline.pipelines.report.charts.chart_forms import (
    FEMALE,
    MALE,
    NEUTRAL,
    UNTOLD,
    Chart,
    data,
    estimates,
    fitted,
    line_at,
    lines,
    point,
)
from plumbline.pipelines.report.estimates import finding
from plumbline.pipelines.report.rows import Row, Rows

#: Most points that are named.
_NAMED = 10
#: Most words drawn for each side.
_WORDS = 10
_DELTA, _PMI = "% of words in 0.1 nats", "PMI in nats"


def leaning(rows: Sequence[Row], sides: tuple[str, str]) -> Chart:
    """The ten words a side that lean most; a word near one side only has a bound: a ring."""
    first, second = sides
    colours = {f"leans to {first}": FEMALE, f"leans to {second}": MALE, UNTOLD: NEUTRAL}
    points = []
    drawn = (row for row in rows if row["place"] <= _WORDS)
    for row in sorted(drawn, key=lambda r: -r["lean_bound_nats"]):
        bound = finding({**row, "delta_nats": row["lean_bound_nats"]}, "delta_nats")
        kind = bound.pick(above=f"leans to {first}", below=f"leans to {second}", untold=UNTOLD)
        points.append(
            {**point(row, "delta_nats", row["word"], kind), "bound": row["lean_bound_nats"]}
        )
    chart = estimates(points, f"lean ({rows[0]['contrast']}) in nats", colours)
    one_sided = [p for p in points if p["value"] is None]
    if not one_sided:
        return chart
    rings = alt.Chart(data(one_sided)).mark_point(size=60)
    return chart + rings.encode(alt.Y("name:N", sort=None), alt.X("bound:Q"), alt.Color("kind:N"))


def distribution(rows: Rows, sides: tuple[str, str]) -> Chart:
    """The share of words in each bin of 0.1 nats of delta, a line for each corpus."""
    points = list[dict[str, Any]]()
    for group in rows.groups("corpus"):
        points += _shares(Counter({r["bin"]: r["n_words"] for r in group}), group[0]["corpus"])
    first, second = sides
    x = alt.X("at:Q", title=f"delta in nats ({second} < 0 < {first})")
    chart = lines(points, x, alt.Y("share:Q", title=_DELTA), "step-after")
    return alt.layer(line_at(0), chart)


def _shares(counts: Counter[int], name: str) -> list[dict[str, Any]]:
    """A histogram in bins of 0.1 nats: the start of each bin, and its share in percent."""
    n = counts.total()
    bins = range(min(counts) - 1, max(counts) + 2)
    label = f"{name} (n = {n:,} words)"
    return [{"series": label, "at": b / 10, "share": 100 * counts[b] / n} for b in bins]


def following(points: Sequence[Row], fit: Row, titles: tuple[str, str], page: str) -> Chart:
    """The points of a fit with the outer words named. A point links to its word on ``page``."""
    chart = fitted(points, fit, *titles, page=page)
    middle = (min(p["x_nats"] for p in points) + max(p["x_nats"] for p in points)) / 2
    named = _outermost(points)
    left = alt.Chart(data(p for p in named if p["x_nats"] <= middle)).mark_text(align="left", dx=6)
    right = alt.Chart(data(p for p in named if p["x_nats"] > middle)).mark_text(
        align="right", dx=-6
    )
    at = {"x": "x_nats:Q", "y": "y_nats:Q", "text": "point:N"}
    return chart + left.encode(**at) + right.encode(**at)  # so that names stay within the chart


def _outermost(points: Sequence[Row]) -> list[Row]:
    """Points to name: in turns the highest, rightmost, lowest and leftmost that have room."""
    xs, ys = ([p[c] for p in points] for c in ("x_nats", "y_nats"))
    width, height = (max(xs) - min(xs)) or 1.0, (max(ys) - min(ys)) or 1.0
    by_x = sorted(points, key=lambda p: float(p["x_nats"]))
    by_y = sorted(points, key=lambda p: float(p["y_nats"]))
    ways = (by_y[::-1], by_x[::-1], by_y, by_x)
    named = list[Row]()
    for row in (row for turn in zip(*ways, strict=True) for row in turn):
        has_room = all(
            abs(row["y_nats"] - other["y_nats"]) > 0.06 * height
            or abs(row["x_nats"] - other["x_nats"]) > 0.2 * width
            for other in named
        )
        if has_room:
            named.append(row)
        if len(named) == _NAMED:
            break
    return named
