"""Rows of a table or view as text: some of them, their number, and sums of all of them."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any

#: Rows shown of a longer one: those whose text hashes lowest, so that others don't move them.
SHOWN = 12

#: Columns that say when, how fast or from which run, and sizes of compressed files.
CIRCUMSTANCES = frozenset(
    (
        *("seconds", "started_at", "ended_at", "vetted_at", "git_commit", "packages"),
        *("config_hash", "n_bytes"),
    )
)
#: What computing zero leaves.
_TINY = 1e-12


def number(value: float) -> str:
    """A float with 9 significant digits.

    >>> number(1 / 3), number(-1e-17), number(2.0)
    ('0.333333333', '0.0', '2.0')
    """
    if not math.isfinite(value):
        return str(value)
    text = f"{0.0 if abs(value) < _TINY else value:.9g}"
    return text if any(c in text for c in ".e") else f"{text}.0"


def shown_rows(
    name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], fix: Callable[[str], str]
) -> str:
    """Heading, columns with sums of all rows, and rows."""
    kinds = [
        column not in CIRCUMSTANCES and any(isinstance(row[i], float) for row in rows)
        for i, column in enumerate(columns)
    ]
    cells = [
        [_cell(column, value, fix) for column, value in zip(columns, row, strict=True)]
        for row in rows
    ]
    exact = [[c for c, of in zip(row, kinds, strict=True) if not of] for row in cells]
    order = sorted(range(len(rows)), key=lambda k: (exact[k], cells[k]))
    lines = [f"## {name}", f"{len(rows)} rows, all but floats: {_hash([exact[k] for k in order])}"]
    weights = [1 + zlib.crc32("\t".join(row).encode()) / 2**32 for row in exact]
    for i, column in enumerate(columns):
        if kinds[i]:
            lines.append(f"  {column}: {_sums([row[i] for row in rows], weights)}")
    lowest = sorted(order, key=lambda k: zlib.crc32("\t".join(exact[k]).encode()))[:SHOWN]
    kept = {*lowest}
    lines.append(" | ".join(columns))
    lines += [" | ".join(cells[k]) for k in order if k in kept]
    return "\n".join(lines)


def _cell(column: str, value: Any, fix: Callable[[str], str]) -> str:
    if value is None:
        return "–"
    if column in CIRCUMSTANCES:
        return "*"
    return fix(_text(value)) if isinstance(value, str) else _text(value)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k}: {_text(v)}' for k, v in value.items())}}}"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))


def _hash(rows: Sequence[Sequence[str]]) -> str:
    text = "\n".join("\t".join(row) for row in rows)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _sums(values: Sequence[Any], weights: Sequence[float]) -> str:
    """How many are none or not finite, and weighted sums of what is above and below 0.

    The weight of a row is of its other columns, so that exchanged values change the sums. Unlike a
    hash, sums of values that differ by rounding differ by rounding.
    """
    known = [(v, w) for v, w in zip(values, weights, strict=True) if v is not None]
    finite = [(v, w) for v, w in known if math.isfinite(v)]
    above = math.fsum(v * w for v, w in finite if v > 0)
    below = math.fsum(v * w for v, w in finite if v < 0)
    n_none, n_infinite = len(values) - len(known), len(known) - len(finite)
    return f"{number(above)} and {number(below)}, {n_none} NULL, {n_infinite} not finite"
