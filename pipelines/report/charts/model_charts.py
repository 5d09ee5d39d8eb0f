"""Charts of models' preferences, of slopes and model sizes, and of how words lean."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from plumbline.eval_workers.models.model_texts import text_name
from plumbline.pipelines.report.charts.chart_forms import (
    FEMALE,
    GREEN,
    INK,
    LINE_END,
    MALE,
    NEUTRAL,
    UNTOLD,
    Chart,
    data,
    estimates,
    fitted,
    kinds,
    list_height,
    point,
)
from plumbline.pipelines.report.estimates import finding, side
from plumbline.pipelines.report.rows import Row, Rows, brief, same, set_name, sides

#: Maximum numbers of models and of slopes in a chart on the first page.
_MOST_MODELS, _MOST_SLOPES = 40, 12


def disparity(rows: Sequence[Row]) -> Chart:
    """Draw each model's preference disparity (PD) with its interval, largest first."""
    first, second = sides(rows[0])
    colours = {f"prefers {first}": FEMALE, f"prefers {second}": MALE, UNTOLD: NEUTRAL}
    ordered = sorted(rows, key=lambda r: (-r["value"], r["model"], r["model_key"]))
    points = [
        point(r, "value", r["model"], f"prefers {to}" if (to := side(r)) else UNTOLD)
        for r in ordered
    ]
    return estimates(points, f"PD, points ({second} < 0 < {first})", colours)


def spread(rows: Rows, pd_rows: Sequence[Row]) -> Chart:
    """Draw quantiles of each model's log ratios, and the band that counts as no preference.

    ``pd_rows`` are the models' rows of metric PD. If there are too many models, draws only those
    with the highest medians.
    """
    drawn = sorted(rows, key=lambda r: (r["q50_nats"], r["model"]))[-_MOST_MODELS:][::-1]
    names, preferred = [r["model"] for r in drawn], {r["model_key"]: side(r) for r in pd_rows}
    (first, second), epsilon = sides(pd_rows[0]), pd_rows[0]["epsilon_nats"]
    points = [
        {"name": brief(r["model"], names), "kind": preferred.get(r["model_key"]) or UNTOLD}
        | {f"q{q}": r[f"q{q}_nats"] for q in (5, 25, 50, 75, 95)}
        for r in drawn
    ]
    x, tip = f"log ratio in nats ({second} < 0 < {first})", ["name:N", "q25:Q", "q50:Q", "q75:Q"]
    base = alt.Chart(data(points)).encode(alt.Y("name:N", sort=None, title=None), tooltip=tip)
    limit = {"low": -epsilon, "high": epsilon}
    band = alt.Chart(data([limit])).mark_rect(color=NEUTRAL, opacity=0.25)
    colours = {first: FEMALE, second: MALE, UNTOLD: NEUTRAL}
    return alt.layer(
        band.encode(alt.X("low:Q", title=x), alt.X2("high:Q")),
        base.mark_rule(color=NEUTRAL).encode(alt.X("q5:Q"), alt.X2("q95:Q")),
        base.mark_rule(color=INK, strokeWidth=5).encode(alt.X("q25:Q"), alt.X2("q75:Q")),
        base.mark_point(filled=True, opacity=1, size=90).encode(alt.X("q50:Q"), kinds(colours)),
    ).properties(height=list_height(len(points)))


def slopes(rows: Rows, controls: Rows) -> Chart:
    """Draw each model's slopes of preference on lean, with and without controls."""
    colours = {"slope": INK, "controls held fixed": GREEN}
    of_text = ("benchmark", "groups", "corpus", "contrast")
    points = []
    for group in rows.groups("subset", *of_text)[:_MOST_SLOPES]:
        kind = "planted" if group[0]["subset"] == "words, planted delta" else group[0]["contrast"]
        name = f"{set_name(group[0])}{LINE_END}{text_name(group[0]['corpus'])} ({kind})"
        points += [point(row, "value", name, "slope") for row in group]
        points += [
            point(row, "coefficient", name, "controls held fixed")
            for row in controls.where(**same(group[0], of_text)).but(coefficient=None)
        ]
    return estimates(points, "nats of preference per nat of lean", colours)


def by_size(rows: Sequence[Row], title: str) -> Chart:
    """Draw a measure of each model against its number of parameters, one panel per benchmark."""
    scale = 100 if rows[0]["measure"] == "us" else 1
    points = [
        {"panel": set_name(r), "x": r["n_parameters"] / 1e6, "y": scale * r["figure"]}
        | {"model": r["model"], "scores": f"{r['scores']} scores"}
        for r in rows
    ]
    x = alt.X("x:Q", title="millions of parameters", scale=alt.Scale(type="log"))
    y = alt.Y("y:Q", title=title, scale=alt.Scale(zero=False))
    dots = alt.Chart(data(points), width=170, height=120).mark_point(color=INK)
    shape = alt.Shape("scores:N", title=None)
    dots = dots.encode(x, y, shape, tooltip=["model:N", "x:Q", "y:Q"])
    panels = dots.facet(facet=alt.Facet("panel:N", title=None, sort=None), columns=3)
    return panels.resolve_scale(y="independent")


#: Maximum number of points to label.
_NAMED = 10
#: Maximum number of words to draw for each side.
_WORDS = 10


def leaning(rows: Sequence[Row], sides: tuple[str, str]) -> Chart:
    """Draw the ten words that lean most to each of the two ``sides``, such as she and he.

    A ring marks a word that never occurs near one side. Its lean is at least as strong as shown.
    """
    first, second = sides
    colours = {f"leans to {first}": FEMALE, f"leans to {second}": MALE, UNTOLD: NEUTRAL}
    points = []
    drawn = (row for row in rows if row["place"] <= _WORDS)
    for row in sorted(drawn, key=lambda r: -r["lean_bound_nats"]):
        bound = finding({**row, "delta_nats": row["lean_bound_nats"]}, "delta_nats")
        kind = bound.pick(above=f"leans to {first}", below=f"leans to {second}", untold=UNTOLD)
        points.append(
            {**point(row, "delta_nats", row["word"], kind), "bound": row["lean_bound_nats"]}
        )
    chart = estimates(points, f"lean ({rows[0]['contrast']}) in nats", colours)
    one_sided = [p for p in points if p["value"] is None]
    if not one_sided:
        return chart
    ring = alt.Scale(domain=["at least; never near the other side"], range=["circle"])
    rings = alt.Chart(data(p | {"ring": ring.domain[0]} for p in one_sided)).mark_point(size=60)
    at = rings.encode(alt.Y("name:N", sort=None), alt.X("bound:Q"), alt.Color("kind:N"))
    return chart + at.encode(alt.Shape("ring:N", scale=ring, title=None))


def following(points: Sequence[Row], fit: Row, titles: tuple[str, str], page: str) -> Chart:
    """Draw a fit, and label its outermost points. Each point links to its word on ``page``."""
    chart = fitted(points, fit, *titles, page=page)
    # Put each label on the inner side of its point, so that the label stays inside the chart.
    middle = (min(p["x_nats"] for p in points) + max(p["x_nats"] for p in points)) / 2
    named = _outermost(points)
    left = alt.Chart(data(p for p in named if p["x_nats"] <= middle)).mark_text(align="left", dx=6)
    right = alt.Chart(data(p for p in named if p["x_nats"] > middle)).mark_text(
        align="right", dx=-6
    )
    at = {"x": "x_nats:Q", "y": "y_nats:Q", "text": "point:N"}
    return chart + left.encode(**at) + right.encode(**at)


def _outermost(points: Sequence[Row]) -> list[Row]:
    """Choose points to label: the highest, rightmost, lowest, leftmost, then the next highest, etc.

    Skips a point if its label would overlap an earlier label.
    """
    xs, ys = ([p[c] for p in points] for c in ("x_nats", "y_nats"))
    width, height = (max(xs) - min(xs)) or 1.0, (max(ys) - min(ys)) or 1.0
    by_x = sorted(points, key=lambda p: float(p["x_nats"]))
    by_y = sorted(points, key=lambda p: float(p["y_nats"]))
    ways = (by_y[::-1], by_x[::-1], by_y, by_x)
    named = list[Row]()
    for row in (row for turn in zip(*ways, strict=True) for row in turn):
        has_room = all(
            abs(row["y_nats"] - other["y_nats"]) > 0.06 * height
            or abs(row["x_nats"] - other["x_nats"]) > 0.2 * width
            for other in named
        )
        if has_room:
            named.append(row)
        if len(named) == _NAMED:
            break
    return named
