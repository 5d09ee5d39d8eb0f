"""Rows of a released table of figures, each with its problem if it has one."""

from __future__ import annotations

import math
from pathlib import Path

from plumbline.warehouse.text.csv_rows import Record, read_text, records_of

_CUT = "the file ends in this row without a line end: it may be cut short"


def read_rows(path: Path, columns: tuple[str, ...]) -> list[Record]:
    """All rows of a table that has ``columns``; see ``records_of``.

    A last row without a line end comes with a problem: half a number reads like a number. Raises
    ``BadInput`` for a file that can't be read to its end or lacks a column.
    """
    content = read_text(path)
    rows = list(records_of(content, str(path), columns))
    if rows and not content.endswith(("\n", "\r")):
        rows[-1] = rows[-1]._replace(problem=rows[-1].problem or _CUT)
    return rows


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
