"""Charts of disclosure: GAS, GLD and ADD by set or topic, losses while tuning, and sweeps."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from plumbline.pipelines.report.charts.chart_forms import (
    HEIGHT,
    INK,
    NEUTRAL,
    Chart,
    data,
    estimates,
    kinds,
    line_at,
    palette,
    point,
    side_by_side,
)
from plumbline.pipelines.report.rows import Row, Rows

_LOSSES = {"distance_nats": "L_d, nats", "total": "L_g", "difference": "L_l"}
#: Measures that a chart shows, with their units.
MEASURES = {"gas": "GAS (share)", "gld": "GLD", "add_nats": "ADD (nats)"}
_CURVES = {"gas": "any gendered word", "gas_f_of_all": "female", "gas_m_of_all": "male"}
_PANELS = {"gas": ("GAS, %", 100), "gld": ("GLD", 1), "add_nats": ("ADD, nats", 1)}


def measures(rows: Rows, by: str) -> Chart:
    """A panel each for GAS, GLD and ADD, with a mark per model and value of column ``by``.

    Of several lengths of continuations, the last that has a GAS is drawn.
    """
    continued = rows.but(gas=None)
    rows = Rows({(r["model_key"], r[by]): r for r in (*rows, *continued)}.values())
    colours = palette(list(dict.fromkeys(r["model"] for r in rows)))
    panels = [
        estimates([point(r, of, _name(r, by), r["model"], scale) for r in rows], title, colours)
        for of, (title, scale) in _PANELS.items()
        if any(r[of] is not None for r in rows)
    ]
    return side_by_side(panels, 150)


def _name(row: Row, by: str) -> str:
    return "all prompts" if row[by] is None else str(row[by])


def losses(steps: Sequence[Row], chosen: int | None = None) -> Chart:
    """The losses as means of up to ten steps, on a log axis if all are above 0.

    Dots are the losses on dev prompts. A dotted line is at ``chosen``, the step that they select.
    """
    points = [
        {"series": label, "step": row["step"], "loss": row[column], "dev": row[f"dev_{column}"]}
        for column, label in _LOSSES.items()
        for row in steps
    ]
    is_log = all(p[c] > 0 for p in points for c in ("loss", "dev") if p[c] is not None)
    scale = alt.Scale(type="log") if is_log else alt.Scale(zero=False)
    base = alt.Chart(data(points), height=HEIGHT).encode(
        alt.X("step:Q"), color=kinds(palette([*_LOSSES.values()]), "series")
    )
    means = base.transform_window(mean="mean(loss)", frame=[-9, 0], groupby=["series"])
    lines_of_means = means.mark_line(point=len(steps) == 1)
    return alt.layer(
        lines_of_means.encode(alt.Y("mean:Q", title="loss", scale=scale)),
        base.mark_point(filled=True).encode(alt.Y("dev:Q")),
        *([] if chosen is None else [line_at(chosen)]),
    )


def decoding(rows: Sequence[Row]) -> Chart:
    """Shares of gendered continuations, a panel for each parameter; dotted lines are greedy's.

    A ring is around the setting with the lowest GAS.
    """
    greedy = next((r for r in rows if r["parameter"] == "greedy"), None)
    points = [
        {"series": label, "x": row["setting"], "y": row[column], "parameter": row["parameter"]}
        | {"greedy": greedy and greedy[column], "is_best": row["is_best"] and column == "gas"}
        | {"low": row[f"{column}_low"] if column == "gas" else None}
        | {"high": row[f"{column}_high"] if column == "gas" else None}
        for row in rows
        if row["parameter"] != "greedy"
        for column, label in _CURVES.items()
        if row[column] is not None
    ]
    base, series = alt.Chart(), alt.Color("series:N")
    at = base.encode(x=alt.X("x:Q", title=None, scale=alt.Scale(zero=False)))
    share = alt.Y("y:Q", title="share of continuations")
    layers = [
        at.mark_area(opacity=0.16, color=NEUTRAL).encode(y="low:Q", y2="high:Q"),
        base.mark_rule(strokeDash=[2, 2]).encode(alt.Y("greedy:Q"), series),
        at.mark_line(point=True).encode(share, series),
        at.mark_point(size=140, color=INK).encode(share).transform_filter("datum.is_best"),
    ]
    panels = alt.layer(*layers, data=data(points)).properties(width=170)
    panel = alt.Facet("parameter:N", title=None)
    return panels.facet(facet=panel, columns=3).resolve_scale(x="independent")


def instructions(rows: Sequence[Row]) -> Chart:
    """GAS, GLD and ADD with intervals, by instruction; the reference `none` comes first."""
    ordered = sorted(rows, key=lambda r: r["instruction_key"] != "none")
    points = [
        point(row, "figure", _instruction(row), MEASURES[row["measure"]])
        for row in ordered
        if row["measure"] in MEASURES
    ]
    return estimates(points, "lower: less disclosed", palette([*MEASURES.values()]))


def _instruction(row: Row) -> str:
    return f"{row['form']}: {row['instruction']}" if row["instruction"] else "none"
