"""What all plots share: colours, type, one plot to PNG bytes, names that fit, legends."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from plumbline.pipelines.report.model import Row

FEMALE, MALE, NEUTRAL, LINE = "#D55E00", "#0072B2", "#666666", "#222222"
# Okabe and Ito's palette without its yellow, which is faint on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_DASHES = ("-", "--", ":", "-.")
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "text.parse_math": False,  # a name may hold dollar signs
}
_WIDTH, HEIGHT, _DPI = 6.4, 4.2, 150


@contextmanager
def one_plot(
    title: str, x: str, y: str, height: float = HEIGHT
) -> Iterator[tuple[Axes, list[bytes]]]:
    """One plot; the list holds its PNG bytes once the block has ended."""
    png: list[bytes] = []
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        axes = figure.subplots()
        axes.set(xlabel=x, ylabel=y)
        figure.suptitle(short(title, 66), x=0.01, ha="left", fontsize=12)
        yield axes, png
        png.append(_png(figure))


@contextmanager
def panels(
    title: str, labels: Sequence[str], height: float = HEIGHT
) -> Iterator[tuple[list[Axes], list[bytes]]]:
    """Plots side by side that share their vertical axis, as ``one_plot``; ``labels`` are below."""
    png: list[bytes] = []
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(1.5 * _WIDTH, height), layout="constrained")
        found = figure.subplots(1, len(labels), sharey=True, squeeze=False)[0]
        for axes, label in zip(found, labels, strict=True):
            axes.set_xlabel(label)
        figure.suptitle(short(title, 99), x=0.01, ha="left", fontsize=12)
        yield list(found), png
        png.append(_png(figure))


def _png(figure: Figure) -> bytes:
    """The figure in 256 colours, which a plot hardly needs: a third of the bytes.

    Laid out and drawn once: saving by matplotlib's own function does both twice.
    """
    figure.set_dpi(_DPI)
    canvas: Any = FigureCanvasAgg(figure)  # without types
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)
    figure.set_layout_engine("none")
    canvas.draw()
    out = io.BytesIO()
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    few = image.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(out, "PNG", dpi=(_DPI, _DPI))
    return out.getvalue()


def short(name: str, length: int = 34) -> str:
    """A name cut in its middle, so that it fits, on one line.

    >>> short("a" * 10 + "b" * 10, 9)
    'aaaa…bbbb'
    """
    name = " ".join(name.split())
    half = (length - 1) // 2
    return name if len(name) <= length else f"{name[:half]}…{name[-half:]}"


def model_label(name: str) -> str:
    """A model's name for a plot; what sets it apart goes to a second line where one is too long.

    >>> model_label("pythia-70m (nf4)"), model_label("EleutherAI/pythia-70m (released text form)")
    ('pythia-70m (nf4)', 'EleutherAI/pythia-70m\\n(released text form)')
    """
    if len(name) <= 34 or " (" not in name:
        return short(name)
    head, note = name.split(" (", 1)
    return f"{short(head)}\n{short(f'({note}')}"


def looks(n: int) -> list[dict[str, Any]]:
    """Colour and dash of ``n`` lines, all different up to 28."""
    return [
        {"color": _COLOURS[i % len(_COLOURS)], "linestyle": _DASHES[i // len(_COLOURS) % 4]}
        for i in range(n)
    ]


def grouped(rows: Iterable[Row], *columns: str) -> list[tuple[tuple[Any, ...], list[Row]]]:
    """Rows grouped by columns they are sorted by."""

    def key(row: Row) -> tuple[Any, ...]:
        return tuple(row[c] for c in columns)

    return [(k, list(g)) for k, g in groupby(rows, key)]


def legend(axes: Axes, n: int) -> None:
    """The legend inside the plot for a few lines, under it for many."""
    if n <= 4:
        axes.legend()
    else:
        axes.figure.legend(loc="outside lower center", ncols=2, fontsize=8.5)
