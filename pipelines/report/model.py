"""Data classes for the report: pages, sections, tables, cells and charts. They hold no HTML."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from plumbline.pipelines.report.rows import Row, Rows, set_name, with_ends
from plumbline.warehouse.text.display import display


@dataclass(frozen=True)
class Cell:
    """A table cell.

    If the text shows a number, ``value`` is the unrounded number in the same unit. If it shows an
    interval, ``low`` and ``high`` are the unrounded ends. ``is_number`` right-aligns the cell.
    """

    text: str
    value: float | int | None = None
    is_number: bool = False
    low: float | None = None
    high: float | None = None


#: What a table's column shows: a column of the rows, formatted by ``text.display``, or the result
#: of a function from a row to a cell or text.
Column: TypeAlias = str | Callable[[Row], Cell | str | None]
#: A heading, its column and, optionally, the number of digits to show. A column's name alone
#: gets its heading from ``text.display``.
AColumn: TypeAlias = str | tuple[str, Column] | tuple[str, str, int]
Columns: TypeAlias = Sequence[AColumn]


@dataclass(frozen=True)
class PageTable:
    """A table. A ``folded`` table shows only its caption until the reader opens it.

    ``sql`` is the query that returned the rows. Readers can filter a ``searchable`` table.
    """

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    folded: bool = False
    sql: str = ""
    searchable: bool = False


@dataclass(frozen=True)
class Figure:
    """A chart: its file name without extension, caption, Vega-Lite specification and rows."""

    stem: str
    caption: str
    specification: Mapping[str, Any]
    rows: Rows = field(default_factory=Rows)


@dataclass(frozen=True)
class Section:
    """A section of a page.

    ``intro`` has its paragraphs, and ``alerts`` has warnings, which are shown first. ``more`` says
    how figures are measured, and is hidden until the reader opens it.
    """

    anchor: str
    title: str
    intro: Sequence[str] = ()
    alerts: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[PageTable] = ()
    more: Sequence[str] = ()


@dataclass
class Page:
    """A page of the report.

    Attributes:
        home: address of the report's first page; empty on the first page itself.
        about: short texts above the title, such as the date.
        answers: links to sections of other pages, as (address, title, first sentence).
        links: links below the sections, as (address, text).
        is_front: True for the first page, whose first section has the main answer.
    """

    sections: Sequence[Section] = ()
    title: str = ""
    home: str = ""
    about: Sequence[str] = ()
    answers: Sequence[tuple[str, str, str]] = ()
    links: Sequence[tuple[str, str]] = ()
    is_front: bool = False

    @property
    def figures(self) -> list[Figure]:
        return [figure for section in self.sections for figure in section.figures]


def table(
    caption: str, rows: Rows, columns: Columns, *, folded: bool = False, searchable: bool = False
) -> PageTable:
    """Return a table with one line for each row of ``rows``.

    >>> us = {"us": 0.5, "us_low": 0.4, "us_high": 0.6}
    >>> one = table("Sizes", Rows([{"model": "m", "n_pairs": 1200, **us}]), ["n_pairs", "us"])
    >>> one.headings, [cell.text for cell in one.rows[0]]
    (['pairs', 'US %'], ['1,200', '50.0 (40.0 to 60.0)'])
    """
    named = [_named(column) for column in columns]
    lines = list(zip(*(_cells(rows, *column) for _, *column in named), strict=True))
    return PageTable(
        caption, [heading for heading, *_ in named], lines, folded, rows.sql, searchable
    )


def rows_table(rows: Sequence[Row], names: Sequence[str]) -> PageTable:
    """Return a command's rows as a table with the columns ``names``.

    An interval is shown in the cell of its value.

    >>> row = {"n_words": 1200, "us": 0.5, "us_low": 0.4, "us_high": 0.6, "loss": 1e-4}
    >>> one = rows_table([row], list(row))
    >>> one.headings, [cell.text for cell in one.rows[0]]
    (['words', 'US %', 'loss'], ['1,200', '50.0 (40.0 to 60.0)', '0.0001'])
    """
    ends = {end for name in names for end in with_ends(name)[1:]}
    columns = [(display(name).heading, _plain(name)) for name in names if name not in ends]
    return table("", Rows(rows), columns)


def _plain(name: str) -> Column:
    def cell(row: Row) -> Cell:
        value = row[name]
        has_ends = row.get(f"{name}_low") is not None
        if isinstance(value, float) and display(name).digits is None and not has_ends:
            return Cell(f"{value:.6g}".replace("-", "−"), value, True)
        return _cells(Rows([row]), name)[0]

    return cell


def _named(column: AColumn) -> tuple[Any, ...]:
    return (display(column).heading, column) if isinstance(column, str) else column


def _cells(rows: Rows, column: Column, digits: int | None = None) -> list[Cell]:
    if not isinstance(column, str):
        return [made if isinstance(made := column(row), Cell) else text(made) for row in rows]
    if column == "benchmark" and rows and "groups" in rows[0]:
        return [text(set_name(row)) for row in rows]
    has_ends = bool(rows) and f"{column}_low" in rows[0]
    values = [row[column] for row in rows]
    if any(isinstance(v, bool) for v in values):
        return [text(v if v is None else "yes" if v else "no") for v in values]
    if has_ends or any(isinstance(v, float) for v in values):
        return [estimate(row, column, digits) for row in rows]
    return list(map(count if any(isinstance(v, int) for v in values) else text, values))


def text(value: object) -> Cell:
    return Cell("–" if value is None else str(value))


def count(value: int | None) -> Cell:
    """Return a cell with a whole number, with commas between thousands, or a dash for ``None``.

    >>> count(1234567).text
    '1,234,567'
    """
    return Cell("–" if value is None else f"{value:,}", value, True)


def counted(n: int, noun: str) -> str:
    """Return a number and its noun, which gets an "s" unless the number is 1.

    >>> counted(1, "pair"), counted(1200, "pair")
    ('1 pair', '1,200 pairs')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def shown(value: float | None, digits: int = 2, *, signed: bool = False) -> str:
    """Return a number as text, with the minus sign "−". A number that rounds to 0 has no sign.

    >>> shown(-0.001), shown(2.5, 1, signed=True)
    ('0.00', '+2.5')
    """
    if value is None:
        return "–"
    rounded = round(value, digits) + 0.0
    return f"{rounded:{'+' if signed and rounded else ''}.{digits}f}".replace("-", "−")


def estimate(
    row: Row | None,
    column: str = "value",
    digits: int | None = None,
    *,
    scale: float | None = None,
    signed: bool | None = None,
) -> Cell:
    """Return a cell with the value and interval of a row's ``column``; a dash if ``row`` is None.

    ``text.display`` has the default digits, scale and sign of each column. Column ``value`` has the
    defaults of the row's metric. If the value is ``None`` and exactly one end of the interval is
    finite, the cell shows that end as a bound. If all numbers would round to 0, they get more
    digits, unless they are below 1e-9. Numbers below 1e-9 are rounding errors. If an interval
    excludes 0, so do its ends as shown, unless one is below 0.0001.

    >>> estimate({"us": 0.5, "us_low": 0.4, "us_high": 0.6}, "us").text
    '50.0 (40.0 to 60.0)'
    >>> estimate({"value": None, "value_low": -math.inf, "value_high": -1.9}, digits=1).text
    '≤ −1.9'
    >>> estimate({"q": 3e-9}, "q").text
    '< 0.0001'
    >>> estimate({"change": -28e-5, "change_low": -4e-4, "change_high": -1e-4}, "change").text
    '−0.00028 (−0.00040 to −0.00010)'
    >>> estimate({"pd": 0.15, "pd_low": 0.012, "pd_high": 0.29}, "pd").text
    '+0.15 (+0.01 to +0.29)'
    >>> estimate({"slope": 1.3e-15}, "slope").text
    '0.00'
    """
    if row is None:
        return Cell("–", None, True)
    is_metric = column == "value" and "metric" in row
    shape = display(row["metric"], row.get("unit") or "") if is_metric else display(column)
    value, low, high = row[column], row.get(f"{column}_low"), row.get(f"{column}_high")
    if shape.is_probability and digits is None:
        is_tiny = value is not None and value < 0.0001
        return Cell("< 0.0001" if is_tiny else shown(value, 4), value, True)
    digits = shape.digits if digits is None else digits
    digits = 2 if digits is None else digits_showing(value or 0, 1) + 2 if digits < 0 else digits
    scale = shape.scale if scale is None else scale
    signed = shape.is_signed if signed is None else signed
    figures = [abs(x * scale) for x in (value, low, high) if x is not None and math.isfinite(x)]
    largest = max(figures, default=0.0)
    if largest >= 1e-9 and (needed := digits_showing(largest, digits)) > digits:
        digits = needed + 1
    if low is not None and high is not None and low * high > 0:
        nearest = min(abs(low * scale), abs(high * scale))
        if nearest >= 1e-4 and not round(nearest, digits):
            digits = digits_showing(nearest, digits)
    if value is None:
        end = one_end(low, high)
        if end is None:
            return Cell("–", None, True)
        sign = "≥" if end == low else "≤"
        return Cell(f"{sign} {shown(end * scale, digits, signed=signed)}", end * scale, True)
    words = shown(value * scale, digits, signed=signed)
    if low is None or high is None:
        return Cell(words, value * scale, True)
    low, high = low * scale, high * scale
    ends = f"{shown(low, digits, signed=signed)} to {shown(high, digits, signed=signed)}"
    return Cell(f"{words} ({ends})", value * scale, True, low, high)


def interval(row: Row, column: str = "value", digits: int | None = None, **options: Any) -> str:
    """Return the interval that ``estimate`` shows, in words; without an interval, return "".

    >>> interval({"value": 0.5, "value_low": 0.4, "value_high": 0.6}, digits=1)
    '95% interval 0.4 to 0.6'
    """
    words = estimate(row, column, digits, **options).text
    return f"95% interval {words[:-1].split(' (')[1]}" if "(" in words else ""


def one_end(low: float | None, high: float | None) -> float | None:
    """If exactly one end of an interval is finite, return this end; otherwise return ``None``.

    >>> one_end(-math.inf, -1.9), one_end(-0.5, 0.5), one_end(None, None)
    (-1.9, None, None)
    """
    if low is None or high is None or math.isfinite(low) == math.isfinite(high):
        return None
    return low if math.isfinite(low) else high


def digits_showing(value: float, least: int) -> int:
    """Return how many decimals show a value's first nonzero digit: at least ``least``, at most 12.

    >>> digits_showing(-0.045, 1), digits_showing(2.5, 1), digits_showing(0.0, 1)
    (2, 1, 1)
    """
    return min(12, max(least, -math.floor(math.log10(abs(value))))) if value else least


def stem(*parts: str) -> str:
    """Make a file name without extension from ``parts``, with at most 120 safe characters.

    >>> stem("us", "USE-5", "<b>/../x")
    'us-use-5-b-x'
    """
    return re.sub(r"[^a-z0-9.]+", "-", " ".join(parts).lower().replace("..", "")).strip("-.")[:120]


def unique(names: Iterable[str], mark: str = "_") -> list[str]:
    """Make names unique: a second ``a`` becomes ``a_2`` or, if this name is taken, ``a_3``.

    ``mark`` separates the name from the number.

    >>> unique(["a", "a_2", "a"]), unique("aab", "-")
    (['a', 'a_2', 'a_3'], ['a', 'a-2', 'b'])
    """
    made: list[str] = []
    for name in names:
        others = (f"{name}{mark}{n}" for n in itertools.count(2))
        made.append(next(other for other in itertools.chain([name], others) if other not in made))
    return made


def first_of(names: Sequence[str], most: int) -> str:
    """Join the names. If there are more than ``most``, say how many more instead of naming them.

    >>> first_of(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def plain_rows(page_table: PageTable) -> Iterator[dict[str, object]]:
    """Yield a table's rows as dicts with unrounded values and the ends of intervals.

    The keys are the headings. A repeated heading gets the suffix ``_2``, ``_3`` and so on.

    >>> cells = [[Cell("m"), Cell("1.2 (1.0 to 1.5)", 1.23, True, 1.0, 1.5)]]
    >>> list(plain_rows(PageTable("", ["model", "slope"], cells)))
    [{'model': 'm', 'slope': 1.23, 'slope_low': 1.0, 'slope_high': 1.5}]
    """
    names = unique(page_table.headings)
    has_ends = [
        any(c.low is not None for c in column) for column in zip(*page_table.rows, strict=True)
    ]
    for row in page_table.rows:
        line: dict[str, object] = {}
        for name, cell, ends in zip(names, row, has_ends, strict=True):
            is_value = cell.value is not None or cell.text == "–"
            line[name] = cell.value if is_value else cell.text
            if ends:
                line |= {f"{name}_low": cell.low, f"{name}_high": cell.high}
        yield line
