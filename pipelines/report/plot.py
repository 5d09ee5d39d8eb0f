"""What all plots share: colours, names that fit, rows by group."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from plumbline.pipelines.report.model import Row
from plumbline.pipelines.report.svg import INK

FEMALE, MALE, NEUTRAL = "#D55E00", "#0072B2", "#808080"
# Okabe and Ito's palette without its yellow, which is faint on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", INK)
_DASHES = ("-", "--", ":", "-.")


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
