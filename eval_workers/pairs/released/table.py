"""Rows of a released table of figures, with what may be wrong with each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from plumbline.warehouse.text.csv_rows import Record, read_text, records_of

_CUT = "the file ends in this row without a line end: it may be cut short"


def read_rows(path: Path, columns: tuple[str, ...]) -> Iterator[Record]:
    """All rows of a table that has ``columns``; see ``records_of``.

    A last row without a line end comes with a problem: half a number reads like a number. Raises
    ``BadInput`` for a file that can't be read to its end or lacks a column.
    """
    content = read_text(path)
    is_whole = content.endswith(("\n", "\r"))
    last = None
    for row in records_of(content, str(path), columns):
        if last is not None:
            yield last
        last = row
    if last is not None:
        yield last if is_whole else last._replace(problem=last.problem or _CUT)


def finite(text: str) -> float | None:
    """The number a field holds, ``None`` if it holds none or one that is not finite.

    >>> finite("-3.5"), finite("nan"), finite("")
    (-3.5, None, None)
    """
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
