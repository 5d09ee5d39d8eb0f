"""The first table: models by benchmarks, US and PD as dots with their intervals."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import side
from plumbline.pipelines.report.findings.sentences import UNTOLD, sureness
from plumbline.pipelines.report.front.headline import Headline
from plumbline.pipelines.report.groups import by_set, set_name, sides
from plumbline.pipelines.report.model import counted, shown
from plumbline.pipelines.report.rows import Row

#: Models and benchmarks shown; the appendix has all.
_MOST_MODELS, _MOST_SETS = 24, 6


@dataclass(frozen=True)
class Strip:
    """A figure as text, and its place and interval on a scale from 0 to 100; ``side`` colours."""

    text: str
    at: float
    low: float
    high: float
    words: str
    side: str = ""


@dataclass(frozen=True)
class Matrix:
    """US and PD of each model (rows) on each benchmark (columns); ``None`` where not scored.

    A row is the model's name, short and whole, and its cells. ``reach`` is the largest PD of the
    scale, in points; ``left_out`` what is not shown, in words.
    """

    headings: Sequence[tuple[str, str]]
    rows: Sequence[tuple[str, str, Sequence[tuple[Strip, Strip] | None]]]
    reach: int
    sides: tuple[str, str]
    left_out: str
    sql: str


def matrix(facts: Facts, head: Headline | None) -> Matrix | None:
    """Of all pairs of each benchmark, the headline's first; ``None`` without metrics."""
    rows = facts.rows("metric").where(subset="all", metric=("us", "pd"))
    every = by_set(rows.only(lambda r: r["metric"] == "pd" and r["n"]))
    if not every:
        return None
    first = set_name(head.fit) if head else ""
    every.sort(key=lambda of: (set_name(of[0]) != first, -len(of), _order((set_name(of[0]), ""))))
    shown_sets = every[:_MOST_SETS]
    models = sorted({(r["model"], r["model_key"]) for of in shown_sets for r in of}, key=_order)
    us = {(set_name(r), r["model_key"]): r for r in rows if r["metric"] == "us"}
    pd = {(set_name(r), r["model_key"]): r for of in shown_sets for r in of}
    ends = [abs(end) for r in pd.values() for end in (r["value"], *_ends(r))]
    reach = min(100, 10 * math.ceil(max(ends) / 10) or 10)
    names = [set_name(of[0]) for of in shown_sets]
    lines: list[tuple[str, str, list[tuple[Strip, Strip] | None]]] = []
    for model, key in models[:_MOST_MODELS]:
        found = [(us.get((name, key)), pd.get((name, key))) for name in names]
        cells = [_cells(a, b, reach) if a and b else None for a, b in found]
        lines.append((brief(model, [name for name, _ in models]), model, cells))
    kinds = {sides(of[0]) for of in shown_sets}
    return Matrix(
        [(name, _size([r["n"] for r in of])) for name, of in zip(names, shown_sets, strict=True)],
        lines,
        reach,
        kinds.pop() if len(kinds) == 1 else ("the first group", "the second group"),
        _left_out(len(models) - _MOST_MODELS, len(every) - _MOST_SETS),
        rows.sql,
    )


def brief(model: str, models: Sequence[str]) -> str:
    """A model's name without its owner, where no other of the models has the same.

    >>> [brief(name, ["a/x", "b/x", "b/y"]) for name in ("a/x", "b/y")]
    ['a/x', 'y']
    """
    short = model.rpartition("/")[2]
    return short if [m.rpartition("/")[2] for m in models].count(short) == 1 else model


def _cells(us: Row, pd: Row, reach: int) -> tuple[Strip, Strip]:
    first, _ = sides(pd)
    way = side(pd)
    share, points = shown(100 * us["value"], 0), shown(pd["value"], 1, signed=True)

    def at(value: float) -> float:
        return 50 + 50 * max(-1.0, min(1.0, value / reach))

    share_ends, point_ends = _ends(us), _ends(pd)
    how = f"prefers {way}" if way else UNTOLD
    return (
        Strip(
            f"{share}%",
            *(100 * us["value"], 100 * share_ends[0], 100 * share_ends[1]),
            f"US {shown(100 * us['value'], 1)}%, {sureness(us)}, n = {us['n']:,}",
        ),
        Strip(
            points,
            *(at(pd["value"]), at(point_ends[0]), at(point_ends[1])),
            f"PD {points} points, {sureness(pd)}, n = {pd['n']:,}: {how}",
            "" if not way else "first" if way == first else "second",
        ),
    )


def _ends(row: Row) -> tuple[float, float]:
    """The ends of an interval; the value itself where there is none."""
    low, high = (row["value"] if row[c] is None else row[c] for c in ("value_low", "value_high"))
    return low, high


def _size(sizes: Sequence[int]) -> str:
    low, high = min(sizes), max(sizes)
    return counted(low, "pair") if low == high else f"{low:,} to {high:,} pairs"


def _order(model: tuple[str, str]) -> tuple[object, ...]:
    """By name, numbers by their size: 70m before 160m before 1b.

    >>> sorted([("p-1b", ""), ("p-160m", ""), ("p-70m", "")], key=_order)[0]
    ('p-70m', '')
    """
    units = {"k": 1e3, "m": 1e6, "b": 1e9}
    parts = re.split(r"(\d+(?:\.\d+)?[kmb]?)", model[0].lower())
    sizes = [
        (0, float(p.rstrip("kmb")) * units.get(p[-1], 1), "") if i % 2 else (1, 0.0, p)
        for i, p in enumerate(parts)
    ]
    return (*sizes, model[1])


def _left_out(models: int, sets: int) -> str:
    more = [f"{n:,} more {what}" for n, what in ((models, "models"), (sets, "benchmarks")) if n > 0]
    return f"{' and '.join(more)} in the appendix" if more else ""
