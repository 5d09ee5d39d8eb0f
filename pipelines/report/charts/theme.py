"""The look of all charts: colours, one theme, and the files for paper."""

from __future__ import annotations

import json
import re
from typing import Any, Literal, TypeAlias

#: An Altair chart of any form: their common class lacks the methods that all of them have.
Chart: TypeAlias = Any
#: Black on white, light on dark.
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
    "font": "system-ui, 'DejaVu Sans', sans-serif",
    "mark": {"aria": False},
    "view": {"stroke": None},
    "axis": {
        **_TEXT,
        "titleFontWeight": "normal",
        **{"labelLimit": 220, "labelFlush": False},
        **{"domainColor": INK, "tickColor": INK, "gridColor": INK, "gridOpacity": 0.13},
    },
    "axisY": {"minExtent": 30},
    "legend": {**_TEXT, "orient": "bottom", "title": None, "columns": 2, "labelLimit": 280},
    "header": {**_TEXT, "title": None},
    "text": {"color": INK, "fontSize": FONT_PX},
}


def specification(
    chart: Chart, width_px: int | Literal["container"] = "container"
) -> dict[str, Any]:
    """A chart's Vega-Lite specification in the theme.

    ``width_px`` is the width with axes; by default the chart is as wide as its container. Charts of
    several panels keep their own width.
    """
    spec: dict[str, Any] = {**chart.to_dict(validate=False), "config": _THEME}
    if "hconcat" not in spec and "facet" not in spec:
        spec |= {"width": width_px, "autosize": {"type": "fit-x", "contains": "padding"}}
    return spec


def on_paper(chart: Chart, form: str, width_in: float) -> bytes:
    """A chart as the bytes of a ``pdf``, ``svg`` or ``png`` file, with type of 8 points.

    Charts of several panels keep the proportion of type to panels and are scaled to the width.
    Raises ``ModuleNotFoundError`` without vl-convert.
    """
    import vl_convert

    width_pt = 72 * width_in
    spec = {**specification(chart, round(width_pt * FONT_PX / 8)), "background": "white"}
    svg = vl_convert.vegalite_to_svg(json.dumps(spec).replace(INK, "#222222"))
    size = re.search(r'width="([0-9.]+)" height="([0-9.]+)"', svg)
    assert size is not None, "the root element of an SVG has a size"
    height_pt = width_pt * float(size[2]) / float(size[1])
    svg = svg.replace(size[0], f'width="{width_pt:.6g}" height="{height_pt:.6g}"', 1)
    if form == "png":
        return vl_convert.svg_to_png(svg, ppi=600)
    return svg.encode() if form == "svg" else vl_convert.svg_to_pdf(svg)
