"""The first table: models by benchmarks, PD and US as dots with their intervals."""

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
from plumbline.pipelines.report.rows import Row, brief, by_set, set_name, sides


@dataclass(frozen=True)
class Strip:
    """A metric drawn as a dot on a line, with the ends of its interval.

    ``value`` is the row's. ``places`` are the value and both ends, from 0 to 60 pixels. ``words``
    says everything for readers who don't see the dot. ``side`` gives the colour: ``first``,
    ``second`` or empty. ``ranks`` are the places that the model may have, or empty.
    """

    metric: str
    value: float
    text: str
    places: Sequence[float]
    words: str
    side: str = ""
    ranks: str = ""


@dataclass(frozen=True)
class Matrix:
    """PD and US of each model (rows) on each benchmark (columns).

    ``about`` are the headings of the models' properties, ``sets`` the benchmarks with their sizes.
    A line has a model's name, its properties, and its PD and US on each benchmark. The scale of PD
    is from -``reach`` to ``reach`` points; ``sides`` names both ends.
    """

    about: Sequence[str]
    sets: Sequence[tuple[str, str]]
    lines: Sequence[tuple[str, Sequence[Cell], Sequence[Sequence[Strip]]]]
    reach: int
    sides: tuple[str, str]
    sql: str

    @property
    def is_ranked(self) -> bool:
        """True if ranks of models are known."""
        return any(s.ranks for *_, cells in self.lines for strips in cells for s in strips)


def matrix(facts: Facts) -> Matrix | None:
    """All models, by family and size, on all pairs of each benchmark; ``None`` without metrics.

    The benchmark that the page is about comes first.
    """
    rows = facts.rows("metric").where(subset="all", metric=("us", "pd"))
    pd_by_set = by_set(rows.only(lambda r: r["metric"] == "pd" and r["n"]))
    if not pd_by_set:
        return None
    first = set_name(headline_pd(facts)[0])
    pd_by_set.sort(key=lambda of: (set_name(of[0]) != first, -len(of), _by_number(set_name(of[0]))))
    names = [set_name(of[0]) for of in pd_by_set]
    us = {(set_name(r), r["model_key"]): r for r in rows if r["metric"] == "us"}
    pd = {(set_name(r), r["model_key"]): r for of in pd_by_set for r in of}
    ends = [abs(end) for r in pd.values() for end in _with_ends(r)]
    reach = min(100, 10 * math.ceil(max(ends) / 10) or 10)
    texts, models = TrainingTexts(facts), list({r["model_key"]: r for r in pd.values()}.values())
    models.sort(key=lambda r: (*texts.place(r), texts.n_parameters(r) or 0, _by_number(r["model"])))
    about = _about(texts, models)
    lines = [
        (
            brief(row["model"], [r["model"] for r in models]),
            [column[i] for column in about.values()],
            [_strips(us.get(key), pd.get(key), reach) for key in keys],
        )
        for i, row in enumerate(models)
        for keys in [[(name, row["model_key"]) for name in names]]
    ]
    kinds = {sides(of[0]) for of in pd_by_set}
    return Matrix(
        [*about],
        [(set_name(of[0]), _size({r["n"] for r in of})) for of in pd_by_set],
        lines,
        reach,
        kinds.pop() if len(kinds) == 1 else ("the first group", "the second group"),
        rows.sql,
    )


def _about(texts: TrainingTexts, models: Sequence[Row]) -> dict[str, list[Cell]]:
    """Columns of family, size and year, without columns whose text is the same in all rows."""
    columns = {
        "Family": [text(texts.family(r) or None) for r in models],
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


def _strips(us: Row | None, pd: Row | None, reach: int) -> Sequence[Strip]:
    """PD and US of a model on a benchmark; nothing unless it has both."""
    if not (us and pd):
        return ()
    preferred, points = side(pd), shown(pd["value"], 1, signed=True)
    colour = {"": "", sides(pd)[0]: "first"}.get(preferred, "second")
    to = f"prefers {preferred}" if preferred else UNTOLD
    at_pd = [30 + 30 * max(-1.0, min(1.0, end / reach)) for end in _with_ends(pd)]
    about_pd = f"PD {points} points, {sureness(pd)}, n = {pd['n']:,}: {to}"
    at_us = [60 * end for end in _with_ends(us)]
    about_us = f"US {shown(100 * us['value'], 1)}%, {sureness(us)}, n = {us['n']:,}"
    share, places = f"{shown(100 * us['value'], 0)}%", ranks(us)
    return (
        Strip("pd", pd["value"], points, at_pd, about_pd, colour),
        Strip("us", us["value"], share, at_us, about_us, ranks=places.text if places else ""),
    )


def _with_ends(row: Row) -> list[float]:
    """A row's value and the ends of its interval; the value itself for an end that is NULL."""
    value: float = row["value"]
    return [value if row[c] is None else row[c] for c in ("value", "value_low", "value_high")]


def _size(sizes: set[int]) -> str:
    low, high = min(sizes), max(sizes)
    return counted(low, "pair") if low == high else f"{low:,} to {high:,} pairs"


def _by_number(name: str) -> list[tuple[str, int]]:
    """A sort key that reads numbers in names.

    >>> sorted(["use-10", "use-5"], key=_by_number)
    ['use-5', 'use-10']
    """
    return [(words, int(number or 0)) for words, number in re.findall(r"(\D*)(\d*)", name.lower())]
