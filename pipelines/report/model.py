"""What a page is made of: cells, tables, figures and sections. Plain data, no HTML and no SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, log10
from typing import Any, TypeAlias

#: A row of a query or of a table of the warehouse.
Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """A table cell: its text and, for a figure, the unrounded value behind it, in its unit.

    ``low`` and ``high`` are the unrounded ends of an interval that the text shows.
    """

    text: str
    value: float | int | None = None
    is_number: bool = False
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Table:
    """A table; ``folded`` ones show their caption only until they are opened.

    ``sql`` is the query that its figures come from. The rows of a ``searchable`` one can be
    filtered by what is typed.
    """

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    folded: bool = False
    sql: str = ""
    searchable: bool = False


@dataclass(frozen=True)
class Figure:
    """A plot as SVG: file name stem, what it shows in words, and its caption.

    ``rows`` are what it was drawn from and ``sql`` the query that gives them.
    """

    stem: str
    alt: str
    caption: str
    svg: str
    rows: Sequence[Row] = ()
    sql: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the page. ``alerts`` are shown prominently, before everything else in it.

    ``more`` and ``code`` are folded, the latter shown as it is, at the end.
    """

    anchor: str
    title: str
    intro: Sequence[str] = ()
    alerts: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    code: Sequence[str] = ()
    more: Sequence[str] = ()


@dataclass(frozen=True)
class Missing:
    """A section left out for want of data, and the command that would fill it."""

    title: str
    command: str


@dataclass(frozen=True)
class Lead:
    """A question of the opening and the sentences that answer it."""

    question: str
    sentences: Sequence[str]


@dataclass
class Page:
    """Everything on the page, in order."""

    answer: list[Lead] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    title: str = "Plumbline report"
    lede: str = (
        "Which way do language models lean between she and he, how far, how sure is that, and does "
        "the lean come from the text?"
    )


def text(value: object) -> Cell:
    """A cell of plain text; ``None`` is a dash."""
    return Cell("–" if value is None else str(value))


def count(value: int | None) -> Cell:
    """A cell of a whole number with thousands separated.

    >>> count(1234567).text
    '1,234,567'
    """
    return Cell("–" if value is None else f"{value:,}", value, True)


def number(value: float | None, digits: int = 2, *, signed: bool = False) -> Cell:
    """A cell of a figure rounded to ``digits``; ``None`` is a dash.

    >>> number(-0.126, signed=True).text, number(None).text
    ('−0.13', '–')
    """
    return Cell(shown(value, digits, signed=signed), value, True)


def shown(value: float | None, digits: int = 2, *, signed: bool = False) -> str:
    """A figure as text, with a true minus sign; what rounds to zero has no sign.

    >>> shown(-0.001), shown(2.5, 1, signed=True)
    ('0.00', '+2.5')
    """
    if value is None:
        return "–"
    rounded = round(value, digits) + 0.0
    return f"{rounded:{'+' if signed and rounded else ''}.{digits}f}".replace("-", "−")


def estimate(row: Row | None, digits: int, *, scale: float = 1, signed: bool = False) -> Cell:
    """A cell of a row of ``metric_value`` with its interval; ``None`` is a dash.

    >>> estimate({"value": 0.5, "ci_low": 0.4, "ci_high": 0.6}, 1, scale=100).text
    '50.0 (40.0 to 60.0)'
    """
    if row is None or row["value"] is None:
        return Cell("–", None, True)
    words = shown(row["value"] * scale, digits, signed=signed)
    if row["ci_low"] is not None and row["ci_high"] is not None:
        ends = row["ci_low"] * scale, row["ci_high"] * scale
        low, high = (shown(end, digits, signed=signed) for end in ends)
        return Cell(f"{words} ({low} to {high})", row["value"] * scale, True, *ends)
    return Cell(words, row["value"] * scale, True)


def digits_of(value: float) -> int:
    """Digits after the point that show three that count of a small figure.

    >>> digits_of(0.5), digits_of(0.0123), digits_of(0.00045), digits_of(0.0)
    (3, 4, 6, 3)
    """
    if value <= 0:
        return 3
    return min(12, max(3, 2 - floor(log10(value))))
