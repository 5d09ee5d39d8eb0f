"""What all charts share: common chart types, colours, theme, and files for papers.

A chart is an Altair object made from rows. ``specification`` turns it into Vega-Lite JSON. The page
draws this JSON, and ``report figure`` makes a file from it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import quote

import altair as alt
import numpy as np

from plumbline.pipelines.report.model import estimate
from plumbline.pipelines.report.rows import Row
from plumbline.warehouse.text.escape import terminal

#: Any Altair chart. Altair's common base class lacks methods that all charts have.
Chart: TypeAlias = Any
#: The text colour of the page: black on white, or light on dark.
INK = "currentColor"
FEMALE, MALE, NEUTRAL, GREEN = "#D55E00", "#0072B2", "#808080", "#009E73"
#: Font size in pixels, and the height of charts whose vertical axis is a number.
FONT_PX, HEIGHT = 12, 300
_TEXT = {
    "labelColor": INK,
    "titleColor": INK,
    "labelFontSize": FONT_PX,
    "titleFontSize": FONT_PX,
    "aria": False,
}
_THEME: dict[str, Any] = {
    "background": "transparent",
    "padding": {"left": 5, "top": 5, "right": 12, "bottom": 5},  # room for the last label
    "font": "system-ui, 'DejaVu Sans', sans-serif",
    "mark": {"aria": False},
    "view": {"stroke": None},
    "axis": {
        **_TEXT,
        "titleFontWeight": "normal",
        **{"labelLimit": 220, "labelFlush": False, "labelSeparation": 6},
        **{"domainColor": INK, "tickColor": INK, "gridColor": INK, "gridOpacity": 0.13},
    },
    "axisY": {"minExtent": 30},
    "legend": {**_TEXT, "orient": "bottom", "title": None, "columns": 2, "labelLimit": 280},
    "header": {**_TEXT, "title": None},
    "text": {"color": INK, "fontSize": FONT_PX},
}
#: Separates two lines of a name on the vertical axis.
LINE_END = " · "
#: Legend text for estimates that aren't clearly above or below 0.
UNTOLD = "not clear"
# Okabe and Ito's colours, without yellow. Colour-blind readers can tell them apart.
_PALETTE = (MALE, FEMALE, GREEN, "#CC79A7", "#56B4E9", "#E69F00", INK)


def data(points: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return rows as a chart's data. NaN and infinity become null; control characters are escaped.

    The rows are a tuple in a dict, because Altair would copy a list and validate each value.
    """
    return {"values": tuple({k: _plain(v) for k, v in point.items()} for point in points)}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return terminal(value)
    if isinstance(value, float | np.floating):
        return float(f"{value:.8g}") if math.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


def point(row: Row, column: str, name: str, kind: str = "", scale: float = 1) -> dict[str, Any]:
    """Make a point for ``estimates``: a row's ``column`` and interval, times ``scale``."""
    ends = (row[column], row.get(f"{column}_low"), row.get(f"{column}_high"))
    value, low, high = (None if end is None else scale * end for end in ends)
    label = estimate(row, column, scale=scale).text
    return {"name": name, "value": value, "low": low, "high": high, "kind": kind, "label": label}


def estimates(
    points: Sequence[Mapping[str, Any]],
    title: str,
    colours: Mapping[str, str],
    *,
    rule: float = 0.0,
    is_log: bool = False,
) -> Chart:
    """Draw a list of estimates, each as a dot with its interval.

    Args:
        points: the estimates from top to bottom, each made by the function ``point``.
        title: title of the axis: the quantity with its unit.
        colours: the colour of each kind of point; the legend shows only kinds that occur.
        rule: value at which to draw a dotted vertical line.
        is_log: True for a logarithmic axis.
    """
    colours = {k: v for k, v in colours.items() if any(p["kind"] == k for p in points)}
    n_names = len({p["name"] for p in points})
    has_kinds = len(points) > n_names
    scale = alt.Scale(type="log") if is_log else alt.Scale(zero=False, nice=True)
    n_lines = max(len(p["name"].split(LINE_END)) for p in points)
    names = alt.Axis(labelExpr=f"split(datum.label, '{LINE_END}')", labelOffset=-7 * (n_lines - 1))
    base = alt.Chart(data(points)).encode(
        y=alt.Y("name:N", sort=None, title=None, axis=names),
        x=alt.X("value:Q", title=title, scale=scale),
        color=kinds(colours),
        tooltip=[alt.Tooltip("name:N"), alt.Tooltip("label:N", title=title)],
    )
    if has_kinds:
        base = base.encode(yOffset=alt.YOffset("kind:N", sort=[*colours]))
    ends = base.mark_rule(strokeWidth=1.7).encode(alt.X("low:Q"), alt.X2("high:Q"))
    dots = base.mark_point(filled=True, opacity=1, size=60)
    line = alt.Chart(data([{}])).mark_rule(color=NEUTRAL, strokeDash=[2, 2])
    layers = [line.encode(x=alt.datum(rule)), dots]
    if any(p["low"] is not None for p in points):
        layers.insert(-1, ends)
    return alt.layer(*layers).properties(
        height=list_height(n_names, max(n_lines, len(colours) * has_kinds))
    )


def list_height(n_names: int, n_kinds: int = 0) -> int:
    """Return the height in pixels of a list of names. Each name has ``n_kinds`` lines or dots."""
    return 8 + n_names * max(22, 13 * n_kinds + 8)


def kinds(colours: Mapping[str, str]) -> alt.Color:
    """Return Altair's colour scale for kinds of points. If the only kind is "", hide the legend."""
    scale = alt.Scale(domain=[*colours], range=[*colours.values()])
    legend = None if [*colours] == [""] else alt.Undefined
    return alt.Color("kind:N", scale=scale, legend=legend)


def palette(names: Sequence[str]) -> dict[str, str]:
    return {name: _PALETTE[i % len(_PALETTE)] for i, name in enumerate(names)}


def fitted(points: Sequence[Row], fit: Row, x: str, y: str, *, page: str = "") -> Chart:
    """Draw the points of a fit with its least-squares line and 95% band.

    A point's colour says whether its x is above or below 0.

    Args:
        fit: a row of view ``fit``.
        x, y: the titles of the axes.
        page: the page to which each point links; the anchor is the point's name.
    """
    colours = alt.Scale(domain=["above", "below", "0"], range=[FEMALE, MALE, NEUTRAL])
    dots = (
        alt.Chart(data(_with_sides(points, page)), height=HEIGHT)
        .mark_circle(size=40 if len(points) < 1500 else 12, opacity=0.6)
        .encode(
            alt.X("x_nats:Q", title=x, scale=alt.Scale(zero=False)),
            alt.Y("y_nats:Q", title=y, scale=alt.Scale(zero=True)),
            alt.Color("side:N", scale=colours, legend=None),
            tooltip=["point:N", "x_nats:Q", "y_nats:Q"],
        )
    )
    if page:
        dots = dots.encode(href="href:N")
    at = np.linspace(min(p["x_nats"] for p in points), max(p["x_nats"] for p in points), 40)
    line = alt.Chart(data(_line(at, fit))).encode(alt.X("x_nats:Q"))
    band = line.mark_area(opacity=0.16, color=INK).encode(alt.Y("low:Q"), alt.Y2("high:Q"))
    return alt.layer(dots, band, line.mark_line(color=INK).encode(alt.Y("y_nats:Q")))


def _with_sides(points: Sequence[Row], page: str) -> Iterable[dict[str, Any]]:
    for p in points:
        side = "above" if p["x_nats"] > 0 else "below" if p["x_nats"] < 0 else "0"
        link = {"href": f"{page}#{quote(str(p['point']))}"} if page else {}
        yield {**{c: p[c] for c in ("point", "x_nats", "y_nats")}, "side": side, **link}


def _line(at: np.ndarray, fit: Row) -> Iterable[dict[str, float]]:
    y = fit["intercept_nats"] + fit["slope"] * at
    half = np.zeros_like(at)
    if fit["slope_se"] is not None and fit["t"] is not None:
        off = at - fit["mean_x_nats"]
        variance = fit["mean_y_nats_se"] ** 2 + (off * fit["slope_se"]) ** 2
        half = fit["t"] * np.sqrt(variance + 2 * off * fit["level_slope_covariance"])
    columns = (at, y, y - half, y + half)
    for values in zip(*columns, strict=True):
        yield dict(zip(("x_nats", "y_nats", "low", "high"), values, strict=True))


def specification(chart: Chart) -> dict[str, Any]:
    """Return a chart as a Vega-Lite specification, with Plumbline's theme.

    A chart of several panels has a fixed width. Other charts are as wide as their container.
    """
    spec: dict[str, Any] = {**chart.to_dict(validate=False), "config": _THEME}
    if "hconcat" not in spec and "facet" not in spec:
        spec |= {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
    return spec


def on_paper(chart: Mapping[str, Any], form: str, width_in: float) -> bytes:
    """Draw a chart's ``specification`` and return the bytes of a ``pdf``, ``svg`` or ``png`` file.

    The font size is 8 points. In a chart of several panels, the text is scaled with the chart.
    Raises ``ModuleNotFoundError`` if vl-convert isn't installed.
    """
    import vl_convert

    width_pt = 72 * width_in
    spec = {**chart, "background": "white"}
    if "width" in spec:
        spec["width"] = round(width_pt * FONT_PX / 8)
    svg = vl_convert.vegalite_to_svg(json.dumps(spec).replace(INK, "#222222"))
    size = re.search(r'width="([0-9.]+)" height="([0-9.]+)"', svg)
    assert size is not None, "the root element of an SVG has a size"
    height_pt = width_pt * float(size[2]) / float(size[1])
    svg = svg.replace(size[0], f'width="{width_pt:.6g}" height="{height_pt:.6g}"', 1)
    if form == "png":
        return vl_convert.svg_to_png(svg, ppi=600)
    return svg.encode() if form == "svg" else vl_convert.svg_to_pdf(svg)
