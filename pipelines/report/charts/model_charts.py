"""Charts of models: preferences, spread, differences, slopes, size, deduplication, pairs kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import altair as alt

from plumbline.pipelines.report.charts.chart_forms import (
    data,
    estimates,
    kinds,
    line_at,
    lines,
    list_height,
    point,
)
from plumbline.pipelines.report.charts.theme import FEMALE, GREEN, INK, MALE, NEUTRAL, Chart
from plumbline.pipelines.report.findings.estimates import finding, side
from plumbline.pipelines.report.rows import Row, sides

_UNTOLD = "can't be told"


def disparity(rows: Sequence[Row], names: Mapping[str, str]) -> Chart:
    """PD of each model with its interval, largest first; ``names`` are the models' by key."""
    first, second = sides(rows[0])
    colours = {f"prefers {first}": FEMALE, f"prefers {second}": MALE, _UNTOLD: NEUTRAL}
    ordered = sorted(rows, key=lambda r: (-r["value"], r["model"], r["model_key"]))
    points = [
        point(r, "value", names[r["model_key"]], f"prefers {to}" if (to := side(r)) else _UNTOLD)
        for r in ordered
    ]
    return estimates(points, f"PD, points ({second} < 0 < {first})", colours)


def us_curve(rows: Sequence[Row], names: Mapping[str, str], epsilon: float) -> Chart:
    """US against epsilon for each model; the dotted line is the epsilon of the metrics."""
    points = [
        {"series": names[r["model_key"]], "x": r["epsilon_nats"], "y": 100 * r["us"]} for r in rows
    ]
    x = alt.X("x:Q", title="epsilon: largest |log ratio| without a preference, nats")
    y = alt.Y("y:Q", title="US: % of pairs", scale=alt.Scale(domain=[0, 100]))
    return alt.layer(lines(points, x, y), line_at(epsilon))


def shares(rows: Sequence[Row], names: Mapping[str, str]) -> Chart:
    """Each group's share of preferred sentences in percent; the dotted line is an even share."""
    points = [
        point(r, "value", f"{names[r['model_key']]}: {r['group_name']}", scale=100) for r in rows
    ]
    even = 100 / rows[0]["n_groups"]
    return estimates(points, "share of preferred sentences, %", {"": INK}, rule=even)


def spread(
    rows: Sequence[Row], names: Mapping[str, str], preferred: Mapping[str, str], pd: Row
) -> Chart:
    """Quantiles of each model's log ratios, around the band that counts as no preference.

    ``preferred`` is the side that a model prefers, by key; ``pd`` a row of PD of the benchmark.
    """
    first, second = sides(pd)
    points = [
        {"name": names[r["model_key"]], "kind": preferred.get(r["model_key"]) or _UNTOLD}
        | {f"q{q}": r[f"q{q}_nats"] for q in (5, 25, 50, 75, 95)}
        for r in rows
    ]
    x, tip = f"log ratio in nats ({second} < 0 < {first})", ["name:N", "q25:Q", "q50:Q", "q75:Q"]
    base = alt.Chart(data(points)).encode(alt.Y("name:N", sort=None, title=None), tooltip=tip)
    limit = {"low": -pd["epsilon_nats"], "high": pd["epsilon_nats"]}
    band = alt.Chart(data([limit])).mark_rect(color=NEUTRAL, opacity=0.25)
    colours = {first: FEMALE, second: MALE, _UNTOLD: NEUTRAL}
    return alt.layer(
        band.encode(alt.X("low:Q", title=x), alt.X2("high:Q")),
        base.mark_rule(color=NEUTRAL).encode(alt.X("q5:Q"), alt.X2("q95:Q")),
        base.mark_rule(color=INK, strokeWidth=5).encode(alt.X("q25:Q"), alt.X2("q75:Q")),
        base.mark_point(filled=True, opacity=1, size=90).encode(alt.X("q50:Q"), kinds(colours)),
    ).properties(height=list_height(len(points)))


def differences(
    rows: Sequence[Row], of: str, title: str, ways: tuple[str, str], scale: float = 1
) -> Chart:
    """Column ``of``, a difference with its interval, for each model; coloured where clear.

    ``ways`` are the colours above and below 0.
    """
    colours = {"above 0": ways[0], "below 0": ways[1], _UNTOLD: NEUTRAL}
    points = [
        point(r, of, r["model"], _UNTOLD if way == _UNTOLD else f"{way} 0", scale)
        for r in sorted(rows, key=lambda r: (-r[of], r["model"]))
        for way in [finding(r, of).pick(above="above", below="below", untold=_UNTOLD)]
    ]
    return estimates(points, title, colours)


def slopes(groups: Iterable[tuple[str, Sequence[Row], Sequence[Row]]]) -> Chart:
    """All slopes of each benchmark and text, and coefficients with controls held fixed.

    A group has a name, rows of slopes and rows of ``control``.
    """
    colours = {"slope": INK, "controls held fixed": GREEN}
    points = [
        point(row, column, name, kind)
        for name, slope_rows, controls in groups
        for kind, column, kind_rows in zip(
            colours, ("value", "coefficient"), (slope_rows, controls), strict=True
        )
        for row in kind_rows
        if row[column] is not None
    ]
    return estimates(points, "nats of preference per nat of lean", colours)


def by_size(rows: Sequence[Row], names: Sequence[str], title: str, scale: float) -> Chart:
    """A measure of each model against its number of parameters, a panel for each name."""
    points = [
        {"panel": name, "x": r["n_parameters"] / 1e6, "y": scale * r["figure"]}
        | {"model": r["model"], "scores": f"{r['scores']} scores"}
        for name, r in zip(names, rows, strict=True)
    ]
    x = alt.X("x:Q", title="millions of parameters", scale=alt.Scale(type="log"))
    y = alt.Y("y:Q", title=title, scale=alt.Scale(zero=False))
    dots = alt.Chart(data(points), width=170, height=120).mark_point(color=INK)
    shape = alt.Shape("scores:N", title=None)
    return dots.encode(x, y, shape, tooltip=["model:N", "x:Q", "y:Q"]).facet(
        facet=alt.Facet("panel:N", title=None, sort=None), columns=3
    ).resolve_scale(y="independent")  # fmt: skip


def kept(rows: Sequence[Row], names: Sequence[str]) -> Chart:
    """The share of pairs kept against eta, a line for each benchmark."""
    points = [
        {"series": name, "x": r["eta_nats"], "y": 100 * r["n_kept"] / r["n"]}
        for name, r in zip(names, rows, strict=True)
    ]
    x = alt.X("x:Q", title="eta: limit on |MaxPMI| in nats")
    y = alt.Y("y:Q", title="% of pairs kept", scale=alt.Scale(domain=[0, 100]))
    return lines(points, x, y)
