"""Plots as SVG text: panels with axes, lines, points, bars and labels; colours; shortened names.

Text and axes have the text colour of the reader's theme, light or dark. Widths of text are
estimates, because the reader's browser chooses the font. Sizes are in pixels of a plot that is 640
wide. Colours are distinct for colour-blind readers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from html import escape
from itertools import accumulate
from typing import Any

from plumbline.pipelines.report.rows import Row

WIDTH, HEIGHT = 640, 420
#: Black on white, light on dark.
INK = "currentColor"
FEMALE, MALE, NEUTRAL = "#D55E00", "#0072B2", "#808080"
# Okabe and Ito's palette without its yellow, which is faint on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", INK)
_FONT = 13
_STYLE = (
    "svg{color:#222;font-family:system-ui,'DejaVu Sans',sans-serif}.paper{fill:#fff}"
    "@media screen and (prefers-color-scheme:dark){svg{color:#e6e9ed}.paper{fill:#15181c}}"
)
_DASHES = {"-": "", "--": "6 3", ":": "1.5 2.5", "-.": "7 3 1.5 3"}
#: Layers in which the points of a cloud are drawn: overlaps make crowded places darker.
_LAYERS = 4
_NARROW, _WIDE = frozenset("iljtfrI.,:;'|!()[] "), frozenset("mwMW%@…")

#: Least width of panels side by side. If they would be narrower, fewer share a row.
_NARROWEST = 130
#: Share of its room that an axis label may fill by ``_width``, which measures in the ticks' font.
_SMALLER = 0.88
#: Largest share of a plot's width for the names at its left.
_MOST_NAMES = 0.45


@dataclass(frozen=True)
class Sheet:
    """The sheet on which plots are drawn. ``width`` is in pixels; by default each plot has its own.

    Text keeps its size on a narrow sheet: it is wrapped or cut, and panels go below each other.
    """

    width: float | None = None
    has_titles: bool = True


_ITS_OWN = Sheet()
_SHEET: ContextVar[Sheet] = ContextVar("sheet", default=_ITS_OWN)


@contextmanager
def drawn_on(sheet: Sheet) -> Iterator[None]:
    """Draw all plots inside this context on ``sheet``."""
    before = _SHEET.set(sheet)
    try:
        yield
    finally:
        _SHEET.reset(before)


def sheet_width() -> float:
    """The width of the current sheet in pixels; ``WIDTH`` if the sheet sets none."""
    return _SHEET.get().width or WIDTH


#: Function from data (x, y) to pixels.
Place = Callable[[float, float], tuple[float, float]]


@dataclass
class Axis:
    """One axis. By default it spans the data (``seen``) plus a margin, with round numbers as ticks.

    A ``low`` above ``high`` turns the axis around.
    """

    label: str = ""
    low: float | None = None
    high: float | None = None
    is_log: bool = False
    ticks: Sequence[tuple[float, str]] | None = None
    has_grid: bool = True
    seen: list[float] = field(default_factory=list)

    def ends(self) -> tuple[float, float]:
        """The start and end of the axis in data units; without data or limits, about 0 to 1."""
        seen = self.seen or [v for v in (self.low, self.high) if v is not None] or [0.0, 1.0]
        low, high = self._on(min(seen)), self._on(max(seen))
        margin = 0.05 * (high - low) or 0.5
        low, high = self._off(low - margin), self._off(high + margin)
        return low if self.low is None else self.low, high if self.high is None else self.high

    def scale(self, start: float, end: float) -> Callable[[float], float]:
        """The function from data to pixels, for an axis from pixel ``start`` to pixel ``end``."""
        low, high = map(self._on, self.ends())
        pixels_per_unit = (end - start) / ((high - low) or 1.0)
        return lambda value: start + (self._on(value) - low) * pixels_per_unit

    def marked(self, n: int) -> list[tuple[float, str]]:
        """Ticks between the ends, with their labels; about ``n`` unless ``ticks`` is set."""
        low, high = sorted(self.ends())
        if self.ticks is None:
            return log_ticks(low, high) if self.is_log else round_ticks(low, high, n)
        return [(at, label) for at, label in self.ticks if low <= at <= high]

    def _on(self, value: float) -> float:
        return math.log10(value) if self.is_log else value

    def _off(self, value: float) -> float:
        return 10.0**value if self.is_log else value


def round_ticks(low: float, high: float, n: int) -> list[tuple[float, str]]:
    """At most about ``n`` multiples of 1, 2 or 5 times a power of ten, with their labels.

    >>> [label for _, label in round_ticks(-1.2, 1.3, 6)]
    ['−1.0', '−0.5', '0.0', '0.5', '1.0']
    """
    distance = ((high - low) or 1.0) / max(n, 1)
    power = 10.0 ** math.floor(math.log10(distance))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= distance * (1 - 1e-9))
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(k * step, f"{k * step:,.{digits}f}".replace("-", "−")) for k in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """1, 2, 5 times powers of ten within the ends; only powers of ten if these are over 10.

    >>> [label for _, label in log_ticks(0.3, 11)]
    ['0.5', '1', '2', '5', '10']
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    within = [m * 10.0**p for p in powers for m in (1, 2, 5) if low <= m * 10.0**p <= high]
    if len(within) > 10:
        within = [10.0**p for p in powers if low <= 10.0**p <= high]
    return [(at, f"{at:g}") for at in within]


class Panel:
    """A pair of axes and the elements between them, drawn in the order of the calls.

    A ``label`` adds an entry to the legend. ``linestyle`` is one of ``- -- : -.``; ``looks`` gives
    distinct colours and line styles.
    """

    def __init__(self, x: str = "", y: str = "") -> None:
        self.x, self.y = Axis(x), Axis(y)
        self.legend: list[tuple[str, str]] = []
        self._drawn: list[Callable[[Place], str]] = []

    def line(
        self,
        xs: Iterable[float],
        ys: Iterable[float],
        color: str,
        linestyle: str = "-",
        width: float = 1.8,
        opacity: float = 1,
        label: str = "",
    ) -> None:
        """A line through points."""
        points = self._see(xs, ys)
        pen = _pen(color, linestyle, width, opacity)
        self._drawn.append(lambda place: f'<path fill="none" {pen} d="{_path(points, place)}"/>')
        self._name(label, f'<path {pen} d="M1 0H23"/>')

    def spans(
        self,
        ys: Iterable[float],
        lows: Iterable[float],
        highs: Iterable[float],
        color: str,
        width: float = 1.7,
    ) -> None:
        """Horizontal lines, such as intervals."""
        ys = list(ys)
        ends = list(zip(self._see(lows, ys), self._see(highs, ys), strict=True))
        pen = _pen(color, "-", width, 1)
        self._drawn.append(
            lambda place: f'<path {pen} d="{"".join(_path(two, place) for two in ends)}"/>'
        )

    def marks(
        self,
        xs: Iterable[float],
        ys: Iterable[float],
        color: str,
        shape: str = "o",
        size: float = 7,
        label: str = "",
    ) -> None:
        """A mark per point: disc ``o``, ring ``O``, square ``s``, diamond ``D``, ``^`` or ``v``."""
        points = self._see(xs, ys)
        self._drawn.append(
            lambda place: "".join(_mark(*place(x, y), color, shape, size) for x, y in points)
        )
        self._name(label, _mark(12, 0, color, shape, size))

    def estimates(
        self,
        at: Iterable[tuple[float, Row]],
        of: str,
        color: str,
        shape: str = "o",
        size: float = 7,
        label: str = "",
        scale: float = 1,
    ) -> None:
        """A mark with its interval for each (y, row) in ``at``.

        ``of`` is the value's column. NULL values aren't drawn, and neither are intervals with an
        end that is NULL.
        """
        value, low, high = of, f"{of}_low", f"{of}_high"
        drawn = [(y, row) for y, row in at if row[value] is not None]
        ends = [(y, row) for y, row in drawn if None not in (row[low], row[high])]
        lows, highs = ([scale * row[end] for _, row in ends] for end in (low, high))
        self.spans([y for y, _ in ends], lows, highs, color)
        values = [scale * row[value] for _, row in drawn]
        self.marks(values, [y for y, _ in drawn], color, shape, size, label)

    def named(
        self,
        xs: Iterable[float],
        ys: Iterable[float],
        color: str,
        names: Iterable[str],
    ) -> None:
        """A disc for each point, with its name as a tooltip."""
        points = list(zip(self._see(xs, ys), names, strict=True))
        look = f'r="3.5" fill="{color}" opacity="0.75"'

        def disc(x: float, y: float, name: str) -> str:
            title = f"<title>{_clean(name)}</title>"
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" {look}>{title}</circle>'

        self._drawn.append(
            lambda place: "".join(disc(*place(x, y), name) for (x, y), name in points)
        )

    def labels(self, points: Sequence[tuple[float, float, str]], n: int) -> None:
        """Names beside the first ``n`` points with room. No name covers a point or a name."""

        def drawn(place: Place) -> str:
            corners = zip(self.x.ends(), self.y.ends(), strict=True)
            (left, bottom), (right, top) = (place(x, y) for x, y in corners)
            discs = [place(x, y) for x, y, _ in points]
            taken = [(x - 3, y - 3, x + 3, y + 3) for x, y in discs]
            parts: list[str] = []
            for (x, y), (_, _, words) in zip(discs, points, strict=True):
                wide, over, under = _width(words), y - 8, y + 8
                for at, align, start in ((x + 7, "start", x + 7), (x - 7, "end", x - 7 - wide)):
                    end = start + wide
                    is_within = left < start and end < right and top < over and under < bottom
                    if is_within and all(
                        end < a or c < start or under < b or d < over for a, b, c, d in taken
                    ):
                        taken.append((start, over, end, under))
                        parts.append(_text(at, y + 4, words, align, _FONT - 1, "note"))
                        break
                if len(parts) == n:
                    break
            return "".join(parts)

        self._drawn.append(drawn)

    def cloud(
        self, xs: Iterable[float], ys: Iterable[float], color: str, size: float, opacity: float
    ) -> None:
        """Many points, which may overlap. Points on one pixel of a layer are stored once."""
        points = self._see(xs, ys)

        def drawn(place: Place) -> str:
            at = [place(x, y) for x, y in points]
            layers = (
                dict.fromkeys(f"M{x:.0f} {y:.0f}h0" for x, y in at[i::_LAYERS])
                for i in range(_LAYERS)
            )
            pen = f'{_pen(color, "-", size, opacity)} stroke-linecap="round"'
            return "".join(f'<path {pen} d="{"".join(layer)}"/>' for layer in layers if layer)

        self._drawn.append(drawn)

    def band(
        self,
        xs: Iterable[float],
        lows: Iterable[float],
        highs: Iterable[float],
        color: str,
        opacity: float = 0.16,
    ) -> None:
        """The area between two lines."""
        xs = list(xs)
        edge = self._see(xs, lows) + self._see(xs, highs)[::-1]
        self._drawn.append(
            lambda place: f'<path fill="{color}" opacity="{opacity}" d="{_path(edge, place)}Z"/>'
        )

    def bars(
        self, ys: Iterable[float], values: Iterable[float], color: str, label: str = ""
    ) -> None:
        """Horizontal bars from 0, with a thickness of 0.7 in the unit of y."""
        ends = self._see(values, ys)
        self._see([0.0] * len(ends), [y for _, y in ends])

        def drawn(place: Place) -> str:
            boxes = [(*place(0, y - 0.35), *place(value, y + 0.35)) for value, y in ends]
            return (
                f'<path fill="{color}" d="'
                + "".join(f"M{a:.1f} {b:.1f}H{c:.1f}V{d:.1f}H{a:.1f}Z" for a, b, c, d in boxes)
                + '"/>'
            )

        self._drawn.append(drawn)
        self._name(label, f'<path fill="{color}" d="M1 -5h22v10h-22Z"/>')

    def rule(
        self,
        x: float | None = None,
        y: float | None = None,
        linestyle: str = "-",
        color: str = INK,
        width: float = 1,
        label: str = "",
    ) -> None:
        """A line across the whole panel, at an ``x`` or at a ``y``."""
        pen = _pen(color, linestyle, width, 1)

        def drawn(place: Place) -> str:
            (left, right), (bottom, top) = self.x.ends(), self.y.ends()
            ends = [(left, y), (right, y)] if x is None else [(x, bottom), (x, top)]
            return f'<path {pen} d="{_path([(a or 0.0, b or 0.0) for a, b in ends], place)}"/>'

        self._drawn.append(drawn)
        self._name(label, f'<path {pen} d="M1 0H23"/>')

    def note(self, x: float, y: float, words: str, align: str = "start") -> None:
        """Words whose ``align`` (``start``, ``middle`` or ``end``) is at the point."""
        self._drawn.append(lambda place: _text(*place(x, y), words, align, _FONT - 2))

    def corner(self, words: str, align: str) -> None:
        """Words at the foot of the panel, to the left (``start``) or right (``end``)."""

        def drawn(place: Place) -> str:
            x, y = place(self.x.ends()[align == "end"], self.y.ends()[0])
            y -= 10 + 0.55 * _FONT * words.count("\n")
            return _text(x + (-6 if align == "end" else 6), y, words, align, _FONT, "note")

        self._drawn.append(drawn)

    def foot(self, x: float, words: str) -> None:
        """Words under the ticks of the horizontal axis, centred at ``x``."""

        def drawn(place: Place) -> str:
            left, bottom = place(x, self.y.ends()[0])
            return _text(left, bottom + 36, words, "middle", _FONT)

        self._drawn.append(drawn)

    def list_down(self, labels: Iterable[str], low: float, high: float) -> None:
        """Labels at 0, 1, ... on the vertical axis, without grid, from ``low`` to ``high``.

        A ``low`` above ``high`` puts the first label at the top.
        """
        self.y.ticks, self.y.has_grid = list(enumerate(labels)), False
        self.y.low, self.y.high = low, high

    def render(
        self, box: tuple[float, float, float, float], has_names: bool, left_of_names: float = 0
    ) -> Iterator[str]:
        """The panel's elements within ``box``: left, top, right and bottom in pixels.

        With ``has_names`` the ticks of y have labels, between ``left_of_names`` and the axis. Too
        long labels are wrapped if there is height for two lines, and cut if they still don't fit.
        """
        left, top, right, bottom = box
        x, y = self.x.scale(left, right), self.y.scale(bottom, top)
        faint = f'stroke="{INK}" stroke-opacity="0.13"'
        free_from = -math.inf
        for at, label in self.x.marked(int((right - left) / _gap(75))):
            if self.x.has_grid:
                yield f'<path {faint} d="M{x(at):.1f} {bottom}V{top}"/>'
            if x(at) - _width(label) / 2 >= free_from or _SHEET.get().width is None:
                yield _text(x(at), bottom + 16, label, "middle", _FONT - 1)
                free_from = x(at) + _width(label) / 2 + 6
        names = self.y.marked(int((bottom - top) / _gap(45)))
        room, label_height = left - 7 - left_of_names, (bottom - top) / max(len(names), 1)
        for at, label in names:
            if self.y.has_grid:
                yield f'<path {faint} d="M{left} {y(at):.1f}H{right}"/>'
            if has_names:
                lines = _fitted(label, room, 2 if label_height >= 2.2 * _FONT else 1)
                yield _text(left - 7, y(at) + 4, lines, "end", _FONT - 1)
        yield f'<path fill="none" stroke="{INK}" d="M{left} {top}V{bottom}H{right}"/>'
        yield from (drawn(lambda a, b: (x(a), y(b))) for drawn in self._drawn)
        down = bottom + 36 + 0.55 * _FONT * self.x.label.count("\n")
        yield _text((left + right) / 2, down, self.x.label, "middle", _FONT)
        if self.y.label:
            beside = _beside(self, bottom - top)
            middle = f"{14 + 0.55 * _FONT * beside.count(chr(10)):.0f} {(top + bottom) / 2:.0f}"
            turned = _text(0, 0, beside, "middle", _FONT)
            yield f'<g transform="translate({middle}) rotate(-90)">{turned}</g>'

    def _see(self, xs: Iterable[float], ys: Iterable[float]) -> list[tuple[float, float]]:
        points = [(float(x), float(y)) for x, y in zip(xs, ys, strict=True)]
        self.x.seen += [x for x, _ in points]
        self.y.seen += [y for _, y in points]
        return points

    def _name(self, label: str, swatch: str) -> None:
        if label:
            self.legend.append((label, swatch))


def svg(title: str, panels: Sequence[Panel], height: float = HEIGHT, width: float = WIDTH) -> str:
    """Panels side by side on one vertical axis under a title, their legend below, as one SVG.

    ``height`` and ``width`` are for the report. On a ``Sheet`` with a width, the plot is as wide as
    the sheet and as high as it needs to be.
    """
    wide = _SHEET.get().width or width
    entries = {label: swatch for p in panels for label, swatch in p.legend}
    under = 48.0 if panels[0].x.label else 30.0
    high = height - 40 - under - 20 * len(list(_rows_of(entries, width)))
    if wide < width and panels[0].y.has_grid:  # labels listed down the axis keep their height
        high = max(150.0, high * wide / width)
    names = [label for _, label in panels[0].y.marked(int(high / _gap(45)))]
    turned = panels[0].y.label and 20 + 1.1 * _FONT * _beside(panels[0], high).count("\n")
    start = turned or 0.0
    left = start + min(max(map(_width, names), default=0), _MOST_NAMES * wide) + 14
    n_beside = max(1, min(len(panels), int((wide - left - 14) / _NARROWEST)))
    panel_width = (wide - left - 14) / n_beside
    heading, top = _heading(title, wide)
    parts = [heading]
    for first in range(0, len(panels), n_beside):
        for i, panel in enumerate(panels[first : first + n_beside]):
            begin = left + i * panel_width
            end = round(begin + panel_width - (18 if i < n_beside - 1 else 0))
            box = round(begin), top, end, top + high
            centre = (box[0] + box[2]) / 2
            room = panel_width - 14 if n_beside > 1 else 2 * min(centre, wide - centre)
            panel.x.label = _fitted(panel.x.label, _SMALLER * room, 3)
            parts += panel.render(box, i == 0, start)
        n_lines = [p.x.label.count("\n") for p in panels[first : first + n_beside]]
        top += high + under + 1.1 * _FONT * max(n_lines)
    return _document(parts, wide, top, entries)


def grid(title: str, panels: Sequence[tuple[str, Panel]], n_columns: int) -> str:
    """Small multiples: named panels in rows, each with its own axes, as one SVG."""
    wide = sheet_width()
    n_columns = max(1, min(n_columns, int(wide / 170)))
    heading, top = _heading(title, wide)
    parts = [heading]
    for i, (name, panel) in enumerate(panels):
        left, upper = wide / n_columns * (i % n_columns), top + 170 * (i // n_columns)
        right = left + wide / n_columns - 18
        panel.y.ticks = round_ticks(*panel.y.ends(), 4)
        label = _fitted(name, right - left, 1)
        parts.append(_text(left + 8, upper + 10, label, "start", _FONT - 1))
        box = round(left + 46), upper + 20, round(right), upper + 132
        parts += panel.render(box, True, left)
    entries = {label: swatch for _, p in panels for label, swatch in p.legend}
    return _document(parts, wide, top + 170.0 * -(-len(panels) // n_columns), entries)


def _heading(title: str, width: float) -> tuple[str, float]:
    """The title as SVG, and the y at which the panels begin."""
    sheet, lines = _SHEET.get(), title
    if not sheet.has_titles:
        return "", 12
    if sheet.width is not None:  # a report's titles fit
        lines = _fitted(title, (width - 16) * (_FONT - 1) / (_FONT + 2), 3)
    n_breaks, size = lines.count("\n"), _FONT + 2
    words = _text(8, 22 + 0.55 * size * n_breaks, lines, "start", size)
    return words, 40 + 1.1 * size * n_breaks if title else 12


def _document(parts: Sequence[str], width: float, top: float, entries: dict[str, str]) -> str:
    """The SVG of ``parts``, which end at ``top``, with a legend of ``entries`` below."""
    legend = list(_rows_of(entries, width))
    height = top + 20 * len(legend)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}"><style>{_STYLE}</style>'
        f'<rect class="paper" width="100%" height="100%"/>'
    )
    foot = []
    for row, line in enumerate(legend):
        y = height - 20 * (len(legend) - row) + 8
        for x, label, swatch in line:
            foot.append(f'<g transform="translate({x:.0f} {y - 4:.0f})">{swatch}</g>')
            foot.append(_text(x + 29, y, label, "start", _FONT - 1))
    return "".join([head, *parts, *foot, "</svg>\n"])


def _gap(pixels: float) -> float:
    """The least space between ticks; half of it on a sheet with a width, which may be narrow."""
    return pixels if _SHEET.get().width is None else pixels / 2


def _beside(panel: Panel, height: float) -> str:
    """The label of the vertical axis, wrapped if it is longer than the axis."""
    return _fitted(panel.y.label, _SMALLER * (height + 30), 2)


def _fitted(words: str, room: float, n_lines: int) -> str:
    """Words on at most ``n_lines`` lines, wrapped and if necessary cut to the width ``room``.

    Words that fit keep their own line breaks; a name without spaces breaks after punctuation.
    """
    if _width(words) <= room or room <= 0:
        return words
    lines = [""]
    for piece in re.findall(r"\S+?[/:_,-]+|\S+|\s+", words.replace("\n", " ")):
        if lines[-1] and len(lines) < n_lines and _width(lines[-1] + piece) > room:
            lines.append("")
        lines[-1] += piece
    return "\n".join(_cut(line.strip(), room) for line in lines)


def _cut(line: str, room: float) -> str:
    """One line, cut in its middle until it fits ``room``, but not below 3 characters."""
    lengths = range(len(line), 2, -1)
    return next((cut for n in lengths if _width(cut := short(line, n)) <= room), short(line, 3))


def _rows_of(entries: dict[str, str], width: float) -> Iterator[list[tuple[float, str, str]]]:
    """Rows of a legend. An entry is its x, label and swatch; rows are centred."""
    row: list[tuple[str, str]] = []
    for entry in [*((_fitted(k, width - 48, 1), v) for k, v in entries.items()), ("", "")]:
        sizes = [_width(label) + 48 for label, _ in [*row, entry]]
        if row and (sum(sizes) > width or not entry[0]):
            places = accumulate(sizes[:-1], initial=(width - sum(sizes[:-1]) + 18) / 2)
            yield [(x, *label_and_swatch) for x, label_and_swatch in zip(places, row, strict=False)]
            row = []
        row.append(entry)


def _width(text: str) -> float:
    """An estimate of the widest line's width in the font size of ticks."""
    sizes = [
        sum(0.33 if c in _NARROW else 0.9 if c in _WIDE or ord(c) > 0x2E80 else 0.6 for c in line)
        for line in text.split("\n")
    ]
    return (_FONT - 1) * max(sizes)


def _text(x: float, y: float, words: str, align: str, size: float, kind: str = "") -> str:
    """Words as SVG text, without unprintable characters; several lines are centred on ``y``.

    ``kind`` is a class for the text: ``note`` if it may lie over marks.
    """
    of_kind = f' class="{kind}"' if kind else ""
    lines = [_clean(line) for line in words.split("\n")]
    y -= 0.55 * size * (len(lines) - 1)
    return "".join(
        f'<text x="{x:.1f}" y="{y + 1.1 * size * i:.1f}" font-size="{size}" fill="{INK}"'
        f' text-anchor="{align}"{of_kind}>{line}</text>'
        for i, line in enumerate(lines)
        if line
    )


def _clean(line: str) -> str:
    """A line escaped for XML, without unprintable characters, some of which XML forbids."""
    return escape("".join(c for c in line if c.isprintable()))


def _pen(color: str, linestyle: str, width: float, opacity: float) -> str:
    dash = f' stroke-dasharray="{_DASHES[linestyle]}"' if _DASHES[linestyle] else ""
    faint = f' opacity="{opacity}"' if opacity < 1 else ""
    return f'stroke="{color}" stroke-width="{width}"{dash}{faint}'


def _path(points: Iterable[tuple[float, float]], place: Place) -> str:
    return "M" + "L".join("{:.1f} {:.1f}".format(*place(x, y)) for x, y in points)


def _mark(x: float, y: float, color: str, shape: str, size: float) -> str:
    r = size / 2
    if shape in "oO":
        ink = (
            f'fill="{color}"'
            if shape == "o"
            else f'class="paper" stroke="{color}" stroke-width="1.5"'
        )
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" {ink}/>'
    corners = {
        "s": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        "D": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
        "^": ((0, -1.2), (1.2, 1), (-1.2, 1)),
        "v": ((0, 1.2), (1.2, -1), (-1.2, -1)),
    }[shape]
    edge = "L".join(f"{x + r * a:.1f} {y + r * b:.1f}" for a, b in corners)
    return f'<path fill="{color}" d="M{edge}Z"/>'


def short(name: str, length: int = 34) -> str:
    """A name on one line, cut in its middle if longer than ``length`` characters.

    >>> short("a" * 10 + "b" * 10, 9)
    'aaaa…bbbb'
    """
    name = " ".join(name.split())
    half = (length - 1) // 2
    return name if len(name) <= length else f"{name[:half]}…{name[-half:]}"


def model_label(name: str) -> str:
    """A model's name for a plot. If it is too long, its note in brackets goes on a second line.

    >>> model_label("pythia-70m (nf4)"), model_label("EleutherAI/pythia-70m (released text form)")
    ('pythia-70m (nf4)', 'EleutherAI/pythia-70m\\n(released text form)')
    """
    if len(name) <= 34 or " (" not in name:
        return short(name)
    head, note = name.split(" (", 1)
    return f"{short(head)}\n{short(f'({note}')}"


def looks(n: int) -> list[dict[str, Any]]:
    """A colour and line style for each of ``n`` lines; up to 28 are all different."""
    return [
        {"color": _COLOURS[i % len(_COLOURS)], "linestyle": list(_DASHES)[i // len(_COLOURS) % 4]}
        for i in range(n)
    ]
