"""Changes of measures with a model's size, and with deduplication of its text."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.pipelines.report.charts import model_charts as charts
from plumbline.pipelines.report.charts.chart_forms import side_by_side
from plumbline.pipelines.report.charts.theme import FEMALE, MALE
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.findings.sentences import moved
from plumbline.pipelines.report.model import (
    Columns,
    Figure,
    PageTable,
    Section,
    estimate,
    stem,
    table,
)
from plumbline.pipelines.report.rows import Row, Rows, by_set, set_name
from plumbline.warehouse.finding import LEAST_CLUSTERS

PLACE = 710
NAMES = ("size", "deduplication")
#: Measure -> its name and the factor into its unit, in the order of the page.
_MEASURES = {"us": ("US", 100), "pd": ("PD", 1), "|pd|": ("|PD|", 1), "slope": ("slope", 1)}
#: Measures that are plotted against size -> their units.
_DRAWN = {"us": "%", "pd": "points", "slope": "nats per nat"}
_UNITS = "US and PD in points, slopes in nats per nat; 95% intervals in brackets"
_OF_MEANS: Columns = [("models", "n_models"), ("clearly up", "n_rose"), ("clearly down", "n_fell")]
_OF_MODELS: Columns = [("model's", "plain_figure"), ("twin's", "deduped_figure"), "n"]


def sections(facts: Facts) -> Iterator[Section]:
    """On size, if families of several sizes have 4 models or more; on -deduped twins, if any."""
    if trends := facts.rows("size_trend"):
        yield _size(facts, trends)
    if means := facts.rows("deduplication_mean"):
        yield _deduplication(facts, means)


def _size(facts: Facts, trends: Rows) -> Section:
    means, of_families = trends.where(family=""), trends.but(family="")
    intro = [
        _clear_changes(means),
        "By how much a measure changes per tenfold number of parameters: the slope of a line "
        "through the models of a family, for each family with several sizes, and the mean over "
        "families with Student's 95% interval over them. A family's slope has no interval; a "
        "family of one size is only in the figures, as are models of no known family.",
    ]
    points = facts.rows("size_point")
    figures = [_points(points.where(measure=m), m) for m in _DRAWN if trends.where(measure=m)]
    tables = [
        _trends(means, "Change per tenfold number of parameters, mean over families"),
        _trends(of_families, "The same of each family", folded=True),
    ]
    return Section("size", "Comparisons: size", intro, (), figures, tables)


def _clear_changes(rows: Rows) -> str:
    """A sentence on the mean changes over families whose interval excludes 0."""
    most = max(r["n_families"] for r in rows)
    if most < LEAST_CLUSTERS:
        return (
            f"The models of several sizes are of {most} {'family' if most == 1 else 'families'}: "
            "too few to say whether size matters."
        )
    estimates = [r for r in rows if r["per_tenfold_low"] is not None]
    if not estimates:
        return "No change has an interval."
    clear = [r for r in estimates if finding(r, "per_tenfold").verdict != "cannot be told"]
    changes = "; ".join(
        f"{_MEASURES[r['measure']][0]} {_trend(r)} on {set_name(r)} by "
        f"{estimate(r, 'per_tenfold').text} {r['unit']}, over {r['n_families']} "
        "families"
        for r in clear
    )
    return (
        f"Over families {len(clear)} of {len(estimates)} changes of a measure per tenfold number "
        "of parameters have an interval without 0 (by chance alone, about one in 20 would)"
        f"{': ' + changes if changes else ''}."
    )


def _trend(row: Row) -> str:
    return finding(row, "per_tenfold").pick(above="rises", below="falls", untold="not shown")


def _points(rows: Rows, measure: str) -> Figure:
    """A measure against size, one panel per benchmark and text, one point per model."""
    title, scale = _MEASURES[measure]
    title = f"{title} in {_DRAWN[measure]}"
    return Figure(
        stem("size", measure),
        f"{title} of each model against its parameters, a panel for each benchmark and text.",
        f"{title} of each model by its number of parameters, on a logarithmic axis.",
        charts.by_size(rows, list(map(set_name, rows)), title, scale),
        rows,
    )


def _trends(rows: Rows, caption: str, *, folded: bool = False) -> PageTable:
    columns: Columns = [
        ("family", lambda r: r["family"] or "all"),
        "benchmark",
        ("measure", lambda r: _MEASURES[r["measure"]][0]),
        ("of", lambda r: r["subset"]),
        ("change", "per_tenfold"),
        ("with size", _trend),
        ("families", "n_families"),
        ("models", "n_models"),
    ]
    whole = f"{caption}: {_UNITS}"
    return table(whole, rows, columns, folded=folded, searchable=folded)


def _deduplication(facts: Facts, means: Rows) -> Section:
    rows = facts.rows("deduplication")
    of_pairs = means.where(subset="all")
    intro = [
        " ".join(_mean(r) for r in of_pairs if r["measure"] == "us"),
        "A model is compared with the one whose name has -deduped, on what both scored: the twin's "
        "figure less the model's, with the 95% interval over clusters of pairs (words, frames), "
        "and the mean over models with its interval over models. Twins also differ by training "
        "run: only the interval over models covers that.",
    ]
    figures = [_changes(set_rows, of_pairs) for set_rows in by_set(rows.where(subset="all"))]
    tables = [
        _change_table(means, "Mean change from a model to its -deduped twin", True),
        _change_table(rows, "The change of each model", False),
    ]
    return Section("deduplication", "Comparisons: deduplication", intro, (), figures, tables)


def _mean(row: Row) -> str:
    return (
        f"{set_name(row)}: over {row['n_models']} models US "
        f"{moved(finding(row, 'difference'))}, on average by "
        f"{estimate(row, 'difference', 1).text} points; it clearly rose in {row['n_rose']} and "
        f"fell in {row['n_fell']} of them."
    )


def _changes(rows: Rows, means: Rows) -> Figure:
    name = set_name(rows[0])
    of_set = means.where(**{c: rows[0][c] for c in ("benchmark", "groups")})
    listed = Rows([*rows, *({**r, "model": "mean"} for r in of_set)], rows.sql)
    ways = (FEMALE, MALE)
    panels = [
        charts.differences(of, "difference", f"{of[0]['measure'].upper()}, points of change", ways)
        for of in listed.where(measure=("us", "pd")).groups("measure")
    ]
    return Figure(
        stem("deduplication", name),
        f"Change of US and PD on {name} from each model to its -deduped twin, and the mean.",
        f"{name}: US and PD of the -deduped twin less those of the model; lines are 95% intervals, "
        "over pairs for a model and over models for the mean.",
        side_by_side(panels, 200),
        listed,
    )


def _change_table(rows: Rows, caption: str, are_means: bool) -> PageTable:
    columns: Columns = [
        *([] if are_means else ["model"]),
        "benchmark",
        ("measure", lambda r: _MEASURES[r["measure"]][0]),
        ("of", lambda r: r["subset"]),
        ("change", "difference", 2),
        (
            "it is",
            lambda r: finding(r, "difference").pick(above="up", below="down", untold="not shown"),
        ),
        *(_OF_MEANS if are_means else _OF_MODELS),
    ]
    whole = f"{caption}: {_UNITS}"
    return table(whole, rows, columns, folded=not are_means, searchable=not are_means)
