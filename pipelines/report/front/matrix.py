"""The first table: models by benchmarks, US and PD as dots with their intervals."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import side
from plumbline.pipelines.report.findings.models_by_text import TrainingTexts
from plumbline.pipelines.report.findings.sentences import UNTOLD, sureness
from plumbline.pipelines.report.front.headline import headline_pd
from plumbline.pipelines.report.metric_tables import ranks
from plumbline.pipelines.report.model import Cell, counted, shown, text
from plumbline.pipelines.report.rows import Row, Rows, brief, by_set, set_name, sides


@dataclass(frozen=True)
class Strip:
    """A metric's ``value`` with its places on a scale from 0 to 100: ``at``, ``low`` and ``high``.

    ``low`` and ``high`` are the ends of the interval. ``text`` is the value as text, ``words`` adds
    the interval. ``side`` gives the colour: ``first``, ``second`` or empty.
    """

    value: float
    text: str
    at: float
    low: float
    high: float
    words: str
    side: str = ""


@dataclass(frozen=True)
class ModelRow:
    """A model: short and whole name, properties, and US, PD and ranks on each benchmark."""

    name: str
    whole: str
    about: Sequence[Cell]
    cells: Sequence[tuple[Strip, Strip, Cell | None] | None]


@dataclass(frozen=True)
class Matrix:
    """US and PD of each model (rows) on each benchmark (columns).

    ``about`` are the headings of the models' properties, ``sets`` the benchmarks with their sizes.
    The scale of PD is from -``reach`` to ``reach`` points; ``sides`` names both ends.
    """

    about: Sequence[str]
    sets: Sequence[tuple[str, str]]
    lines: Sequence[ModelRow]
    reach: int
    sides: tuple[str, str]
    sql: str

    @property
    def is_ranked(self) -> bool:
        """True if ranks of models are known."""
        return any(cell and cell[2] for line in self.lines for cell in line.cells)


def matrix(facts: Facts) -> Matrix | None:
    """All models, by family and size, on all pairs of each benchmark; ``None`` without metrics.

    The benchmark that the page is about comes first.
    """
    rows = facts.rows("metric").where(subset="all", metric=("us", "pd"))
    pd_by_set = by_set(rows.only(lambda r: r["metric"] == "pd" and r["n"]))
    if not pd_by_set:
        return None
    first = set_name(headline_pd(facts)[0])

    def place(pd_rows: Rows) -> tuple[object, ...]:
        name = set_name(pd_rows[0])
        return name != first, -len(pd_rows), name_order((name, ""))

    pd_by_set.sort(key=place)
    us = {(set_name(r), r["model_key"]): r for r in rows if r["metric"] == "us"}
    pd = {(set_name(r), r["model_key"]): r for pd_rows in pd_by_set for r in pd_rows}
    ends = [abs(end) for r in pd.values() for end in (r["value"], *_ends(r))]
    reach = min(100, 10 * math.ceil(max(ends) / 10) or 10)
    texts, names = TrainingTexts(facts), [set_name(pd_rows[0]) for pd_rows in pd_by_set]
    models = list({r["model_key"]: r for r in pd.values()}.values())
    models.sort(key=lambda r: (*texts.place(r), *name_order((r["model"], r["model_key"]))))
    about = _about(texts, models)
    lines = []
    for i, row in enumerate(models):
        key, model = row["model_key"], row["model"]
        properties = [column[i] for column in about.values()]
        metrics = [(us.get((name, key)), pd.get((name, key))) for name in names]
        cells = [_cells(a, b, reach) if a and b else None for a, b in metrics]
        lines.append(ModelRow(brief(model, [r["model"] for r in models]), model, properties, cells))
    kinds = {sides(pd_rows[0]) for pd_rows in pd_by_set}
    return Matrix(
        [*about],
        [(set_name(pd_rows[0]), _size({r["n"] for r in pd_rows})) for pd_rows in pd_by_set],
        lines,
        reach,
        kinds.pop() if len(kinds) == 1 else ("the first group", "the second group"),
        rows.sql,
    )


def _about(texts: TrainingTexts, models: Sequence[Row]) -> dict[str, list[Cell]]:
    """Columns of family, size and year, without columns whose text is the same in all rows."""
    columns = {
        "Family": [text(texts.family(r) or "–") for r in models],
        "Size": [_parameters(texts.n_parameters(r)) for r in models],
        "Year": [Cell("–" if (y := texts.year(r)) is None else str(y), y) for r in models],
    }
    return {
        name: cells for name, cells in columns.items() if len({cell.text for cell in cells}) > 1
    }


def _parameters(n: int | None) -> Cell:
    """A cell of a number of parameters.

    >>> _parameters(70_426_624).text, _parameters(46_702_792_704).text, _parameters(1940).text
    ('70.4M', '46.7B', '1.94k')
    """
    scale, unit = next(((s, u) for s, u in ((1e9, "B"), (1e6, "M")) if (n or 0) >= s), (1e3, "k"))
    return Cell("–" if n is None else f"{n / scale:.3g}{unit}", n)


def _cells(us: Row, pd: Row, reach: int) -> tuple[Strip, Strip, Cell | None]:
    first, _ = sides(pd)
    preferred = side(pd)
    points = shown(pd["value"], 1, signed=True)
    share, *share_ends = (100 * value for value in (us["value"], *_ends(us)))
    at, *ends = (50 + 50 * max(-1.0, min(1.0, v / reach)) for v in (pd["value"], *_ends(pd)))
    return (
        Strip(
            us["value"],
            f"{shown(share, 0)}%",
            share,
            share_ends[0],
            share_ends[1],
            f"US {shown(share, 1)}%, {sureness(us)}, n = {us['n']:,}",
        ),
        Strip(
            pd["value"],
            points,
            at,
            ends[0],
            ends[1],
            f"PD {points} points, {sureness(pd)}, n = {pd['n']:,}: "
            f"{f'prefers {preferred}' if preferred else UNTOLD}",
            "" if not preferred else "first" if preferred == first else "second",
        ),
        ranks(us),
    )


def _ends(row: Row) -> tuple[float, float]:
    """The ends of an interval; the value itself for an end that is NULL."""
    low, high = (row["value"] if row[c] is None else row[c] for c in ("value_low", "value_high"))
    return low, high


def _size(sizes: set[int]) -> str:
    low, high = min(sizes), max(sizes)
    return counted(low, "pair") if low == high else f"{low:,} to {high:,} pairs"


def name_order(model: tuple[str, str]) -> tuple[object, ...]:
    """A sort key for (name, key) that reads sizes in names: 70m is before 160m, which is before 1b.

    >>> sorted([("p-1b", ""), ("p-160m", ""), ("p-70m", "")], key=name_order)[0]
    ('p-70m', '')
    """
    units = {"k": 1e3, "m": 1e6, "b": 1e9}
    parts = re.split(r"(\d+(?:\.\d+)?[kmb]?)", model[0].lower())
    sizes = [
        (0, float(p.rstrip("kmb")) * units.get(p[-1], 1), "") if i % 2 else (1, 0.0, p)
        for i, p in enumerate(parts)
    ]
    return (*sizes, model[1])
