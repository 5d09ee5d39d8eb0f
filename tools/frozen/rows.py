"""Rows of a table or view as lines of cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

#: Columns to leave out: when, how fast, from which run, and sizes of compressed files.
CIRCUMSTANCES = frozenset(
    (
        *("seconds", "started_at", "ended_at", "vetted_at", "git_commit", "packages"),
        *("config_hash", "n_bytes"),
    )
)
#: Rounding errors of zero are smaller than this.
_TINY = 1e-12


@dataclass(frozen=True)
class Relation:
    """The rows of a table or view, each a list of cells, one per column."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    @staticmethod
    def of(columns: Sequence[str], rows: Sequence[Any], fix: Callable[[str], str]) -> Relation:
        """Return values as text, without the columns to leave out."""
        places = [i for i, column in enumerate(columns) if column not in CIRCUMSTANCES]
        cells = [[_cell(row[i], fix) for i in places] for row in rows]
        return Relation([columns[i] for i in places], cells)

    def only(self, columns: Sequence[str]) -> Relation:
        """Return the same rows with some of the columns, in this order."""
        places = [self.columns.index(column) for column in columns]
        return Relation(columns, [[row[i] for i in places] for row in self.rows])


def number(value: float, digits: int = 12) -> str:
    """Return a float with 12 significant digits.

    >>> number(1 / 3), number(-1e-17), number(2.0)
    ('0.333333333333', '0.0', '2.0')
    """
    if not math.isfinite(value):
        return str(value)
    text = f"{0.0 if abs(value) < _TINY else value:.{digits}g}"
    return text if any(c in text for c in ".e") else f"{text}.0"


def _cell(value: Any, fix: Callable[[str], str]) -> str:
    if value is None:
        return "–"
    return fix(_text(value)) if isinstance(value, str) else _text(value)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k}: {_text(v)}' for k, v in value.items())}}}"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))
