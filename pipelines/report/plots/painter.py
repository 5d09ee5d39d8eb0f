"""A report's plot as PDF, SVG or PNG for a paper, of any width, with text of 8 points.

The plot is the report's SVG, drawn on a sheet of that width (``svg.drawn_on``). matplotlib paints
its few kinds of elements. Fonts are embedded; in an SVG, letters are outlines.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.patches import Circle, PathPatch
from matplotlib.path import Path as Outline
from matplotlib.transforms import Affine2D, Transform

FORMATS = ("pdf", "svg", "png")
#: Points per pixel of a plot: the labels of ticks, 12 pixels high, get 8 points.
POINTS = 8 / 12
_DPI = 600
_INK, _PAPER = "#222222", "#ffffff"
_UNDER_NOTES = {"facecolor": _PAPER, "edgecolor": "none", "alpha": 0.8, "pad": 1}
_STEP = re.compile(r"([MLHVZhv])([^MLHVZhv]*)")
_ALIGN = {"start": "left", "middle": "center", "end": "right"}
_SETTINGS: dict[Any, Any] = {
    "pdf.fonttype": 42,  # TrueType, which publishers ask for
    "svg.fonttype": "path",
    "svg.hashsalt": "plumbline",
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "path.simplify": False,
}
_UNDATED: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
    "png": {},
}


def pixels(width_in: float) -> float:
    """The width in pixels of a plot that is ``width_in`` inches wide on paper.

    >>> round(pixels(3.3), 1)
    356.4
    """
    return width_in * 72 / POINTS


def painted(svg: str, form: str, width_in: float) -> bytes:
    """A plot of ``plots.svg`` as a file of one of ``FORMATS``, ``width_in`` inches wide.

    The same plot gives the same bytes. PNG has 600 dots per inch.
    """
    root = ElementTree.fromstring(svg)
    width, height = (float(n) for n in root.attrib["viewBox"].split()[2:])
    with rc_context(_SETTINGS):
        figure = Figure((width_in, width_in * height / width), facecolor=_PAPER)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.axis("off")
        for place, element in _elements(root, Affine2D()):
            _paint(axes, element, place, 72 * width_in / width)
        file = io.BytesIO()
        figure.savefig(file, format=form, dpi=_DPI, metadata=_UNDATED[form])
    return file.getvalue()


def _elements(
    parent: ElementTree.Element, place: Transform
) -> Iterator[tuple[Transform, ElementTree.Element]]:
    """Each path, circle and text, after the transform from its pixels to those of the sheet."""
    for element in parent:
        kind = element.tag.rpartition("}")[2]
        if kind == "g":
            yield from _elements(element, _moved(element.attrib["transform"]) + place)
        elif kind in ("circle", "text") or re.search(r"\d", element.attrib.get("d", "")):
            yield place, element


def _moved(transform: str) -> Affine2D:
    """A group's transform: ``translate(x y)``, after ``rotate(degrees)`` if there is one."""
    numbers = {k: v for k, v in re.findall(r"(\w+)\(([^)]*)\)", transform)}
    x, y = map(float, numbers["translate"].split())
    return Affine2D().rotate_deg(float(numbers.get("rotate", 0))).translate(x, y)


def _paint(axes: Any, element: ElementTree.Element, place: Transform, points: float) -> None:
    """Paint one element; ``points`` is the number of points per pixel."""
    kind, attrib = element.tag.rpartition("}")[2], element.attrib
    if kind == "text":
        x, y = place.transform((float(attrib["x"]), float(attrib["y"])))
        axes.text(
            *(x, y, element.text or ""),
            color=_color(attrib["fill"]),
            fontsize=float(attrib["font-size"]) * points,
            ha=_ALIGN[attrib["text-anchor"]],
            va="baseline",
            rotation=90 if place.get_matrix()[0, 1] else 0,
            rotation_mode="anchor",
            parse_math=False,
            bbox=_UNDER_NOTES if attrib.get("class") == "note" else None,
        )
        return
    dashes = [float(n) * points for n in attrib.get("stroke-dasharray", "").split()]
    fill = _PAPER if attrib.get("class") == "paper" else attrib.get("fill", "none")
    look: dict[str, Any] = {
        "facecolor": _color(fill),
        "edgecolor": _color(attrib.get("stroke", "none")),
        "linewidth": float(attrib.get("stroke-width", 1)) * points if "stroke" in attrib else 0,
        "linestyle": (0, dashes) if dashes else "-",
        "alpha": float(attrib.get("opacity", attrib.get("stroke-opacity", 1))),
        "capstyle": attrib.get("stroke-linecap", "butt"),
        "joinstyle": "miter",
        "snap": False,
        "transform": place + axes.transData,
    }
    if kind == "circle":
        centre = float(attrib["cx"]), float(attrib["cy"])
        axes.add_patch(Circle(centre, float(attrib["r"]), **look))
    else:
        axes.add_patch(PathPatch(_outline(attrib["d"]), **look))


def _color(name: str) -> str:
    return _INK if name == "currentColor" else name


def _outline(steps: str) -> Outline:
    """A matplotlib path from the ``d`` of an SVG path with the steps M, L, H, V, h, v and Z."""
    points: list[tuple[float, float]] = []
    codes: list[int] = []
    for step, rest in _STEP.findall(steps):
        numbers = [float(n) for n in rest.split()]
        x, y = points[-1] if points else (0.0, 0.0)
        if step in "ML":
            x, y = numbers
        elif step in "Hh":
            # A dot is a line of length 0 with round ends. Not every format draws it: lengthen it.
            x = numbers[0] if step == "H" else x + (numbers[0] or 0.02)
        elif step in "Vv":
            y = numbers[0] if step == "V" else y + numbers[0]
        points.append((x, y))
        codes.append(int({"M": Outline.MOVETO, "Z": Outline.CLOSEPOLY}.get(step, Outline.LINETO)))
    return Outline(points, codes)
