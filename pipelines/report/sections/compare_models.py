"""Differences between models on the same benchmark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from plumbline.pipelines.report.charts import model_charts as charts
from plumbline.pipelines.report.charts.theme import GREEN, INK
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.model import (
    Columns,
    Figure,
    Lead,
    Missing,
    PageTable,
    Section,
    counted,
    digits_showing,
    interval,
    number,
    shown,
    stem,
    table,
)
from plumbline.pipelines.report.rows import Row, Rows, set_name, sets, sides
from plumbline.warehouse.text.display import display

PLACE = 700
NAMES = ("compare",)
LEAD_PLACE = 110  # after each model's preferences
#: Up to this many models are compared two by two; if more, each with the median model.
TWO_BY_TWO = 4
_TITLE, _UNTOLD = "Comparisons: models", "can't be told"
_RULE = (
    "Differences are paired: a difference is the model's figure minus the reference's, over the "
    "pairs that both models scored. Its 95% interval is over clusters of pairs, such as those made "
    "for one word, because they resemble each other. Two models can't be told apart if the "
    "interval contains 0, or if there are too few clusters for one."
)
_MEDIAN_MODEL = (
    f"Up to {TWO_BY_TWO} models of a benchmark are compared two by two. If there are more, each is "
    "compared with one reference, the model in the middle by US of all pairs: chance did not make "
    "it extreme. To compare any other two: plumbline report --model ONE --model OTHER."
)


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """Paired differences of models, a table for each benchmark that two or more models scored."""
    compared = _compared(facts)
    if not compared:
        yield Missing(_TITLE, "plumbline score --model ANOTHER_MODEL --benchmark NAME")
        return
    sentences = [_sentence(*difference) for difference in compared]
    intro, tables = [*sentences, *_agreement(facts), _RULE], list[PageTable]()
    figures = [_figure(rows, reference) for rows, reference in compared if reference]
    if figures:
        intro.append(_MEDIAN_MODEL)
        if counts := facts.rows("model_pair", epsilon=_epsilon(facts)):
            tables.append(_counts(counts))
    tables += [_table(rows, reference) for rows, reference in compared]
    measures = {(r["measure"], r["reference_measure"]) for rows, _ in compared for r in rows}
    alerts = of_different_measures(measures)
    yield Section("compare-models", _TITLE, intro, alerts, figures, tables)


def leads(facts: Facts) -> Iterator[Lead]:
    """Sentences on differences between models, for the first page."""
    yield Lead("Do the models differ?", [_sentence(*difference) for difference in _compared(facts)])


def _by_us(row: Row, untold: str) -> str:
    return finding(row, "us_difference").pick(above="more even", below="less even", untold=untold)


def _by_pd(row: Row, untold: str) -> str:
    first, second = sides(row)
    above, below = f"further to {first}", f"further to {second}"
    return finding(row, "pd_difference").pick(above=above, below=below, untold=untold)


def of_different_measures(measures: Collection[tuple[str, str]]) -> list[str]:
    """A warning if two models with different measures are compared; else empty.

    >>> of_different_measures([("log-likelihood", "log-likelihood")])
    []
    """
    if all(measure == reference for measure, reference in measures):
        return []
    names = ", ".join(sorted({measure for pair in measures for measure in pair}))
    return [
        f"Models with different measures are compared here ({names}): a threshold in nats has "
        "another meaning for each, so a difference in US says little about the models."
    ]


def _epsilon(facts: Facts) -> float | None:
    return next((r["epsilon_nats"] for r in facts.metrics("us")), None)


def _compared(facts: Facts) -> list[tuple[Rows, str]]:
    """Differences on each benchmark that two or more models scored, and the reference's name.

    The reference's name is empty if models are compared two by two.
    """
    compared, us_rows = [], facts.metrics("us", subset="all")
    for of_set in sets(us_rows):
        key = _median_model(us_rows.where(**of_set).only(lambda r: r["n"]))
        rows = facts.rows("model_difference", **of_set, reference_key=key, epsilon=_epsilon(facts))
        if rows:
            compared.append((rows, str(rows[0]["reference"]) if key else ""))
    return compared


def _median_model(rows: Sequence[Row]) -> str:
    """The key of the model with the median US; empty for up to ``TWO_BY_TWO`` models."""
    if len(rows) <= TWO_BY_TWO:
        return ""
    rows = sorted(rows, key=lambda r: (r["value"], r["model"], r["model_key"]))
    return str(rows[len(rows) // 2]["model_key"])


def _sentence(rows: Rows, reference: str) -> str:
    benchmark, (first, second) = set_name(rows[0]), sides(rows[0])
    if not reference:
        return f"{benchmark}: {' '.join(map(_two_models, rows))}"
    n_us, n_pd = (
        Counter(finding(r, name).verdict for r in rows)
        for name in ("us_difference", "pd_difference")
    )
    furthest = max(rows, key=lambda r: abs(r["us_difference"]))
    return (
        f"{benchmark}: of {len(rows)} models compared with {reference}, the middle one "
        f"by US, {n_us['above']} are more even, {n_us['below']} less, and "
        f"{len(rows) - n_us['above'] - n_us['below']} can't be told apart from it. The largest "
        f"estimate is {furthest['model']}'s: {_points(furthest, 'us_difference')} of US. By PD "
        f"{n_pd['above']} lean further to {first} and {n_pd['below']} further to {second}."
    )


def _agreement(facts: Facts) -> Iterator[str]:
    """A sentence on how models' log ratios correlate; none without a correlation."""
    sets = [
        f"{shown(r['correlation'], 2, signed=True)} on {set_name(r)}"
        + _between_two(r) * (r["n_models"] > 2)
        for r in facts.rows("model_correlation")
    ]
    if sets:
        yield (
            "Two models' log ratios of the same pairs correlate, on average over every two models, "
            f"by {', '.join(sets)}."
        )


def _between_two(row: Row) -> str:
    least, most = (shown(row[end], 2, signed=True) for end in ("least", "most"))
    return f" (from {least} to {most} between two models)"


def _two_models(row: Row) -> str:
    by_us = _by_us(row, "not shown to be more or less even")
    by_pd = _by_pd(row, "not shown to lean otherwise")
    us, pd = _points(row, "us_difference"), _points(row, "pd_difference")
    return (
        f"{row['model']} against {row['reference']}: {by_us}, {us} of US; "
        f"{by_pd}, {pd} of PD ({counted(row['n_pairs'], 'pair')})."
    )


def _points(row: Row, column: str) -> str:
    value = display(column).scale * row[column]
    digits = digits_showing(value, 1)
    points = f"{shown(value, digits, signed=True)} points"
    return f"{points} ({interval(row, column, digits) or 'no interval'})"


def _counts(rows: Rows) -> PageTable:
    columns: Columns = [
        "benchmark",
        ("models", "n_models"),
        ("pairs of models", "n_model_pairs"),
        ("differ in US", "n_us_differ"),
        ("after correction", "n_us_corrected"),
        ("differ in PD", "n_pd_differ"),
        ("after correction", "n_pd_corrected"),
    ]
    caption = (
        "Of all pairs of models, those whose difference has an interval without 0; about one in 20 "
        "pairs of equal models has one by chance"
    )
    return table(caption, rows, columns)


def _table(rows: Rows, reference: str) -> PageTable:
    columns: Columns = [
        *(["model"] if reference else ["model", "reference"]),
        ("US %", lambda r: number(100 * r["us_model"], 1)),
        ("reference's US %", lambda r: number(100 * r["us_reference"], 1)),
        "us_difference",
        ("by US", lambda r: _by_us(r, _UNTOLD)),
        "pd_model",
        "pd_reference",
        "pd_difference",
        ("by PD", lambda r: _by_pd(r, _UNTOLD)),
        ("pairs", "n_pairs"),
    ]
    compared = f"models against {reference}" if reference else "models two by two"
    caption = f"{set_name(rows[0])}, {compared}; 95% intervals in brackets"
    return table(caption, rows, columns, searchable=bool(reference))


def _figure(rows: Rows, reference: str) -> Figure:
    """Each model's difference in US with its interval; grey if its sign isn't clear."""
    name = set_name(rows[0])
    title = "US, points of difference (less even < 0 < more)"
    return Figure(
        stem("compare", name),
        f"US of each model on {name} minus that of {reference}, with intervals; the figures are in "
        "the table of this benchmark.",
        f"{name}: US minus that of {reference}, in points, over the pairs that both scored; "
        "lines are 95% intervals.",
        charts.differences(rows, "us_difference", title, (GREEN, INK), 100),
        rows,
    )
