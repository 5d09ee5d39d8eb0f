"""Turn rows of ``metric_value`` into tables with a column for each metric."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from plumbline.pipelines.report.estimates import finding
from plumbline.pipelines.report.model import (
    AColumn,
    Cell,
    Column,
    Columns,
    PageTable,
    estimate,
    first_of,
    table,
)
from plumbline.pipelines.report.rows import FIT, Row, Rows, corpus_name, set_name, sides, with_ends
from plumbline.warehouse.finding import LEAST_PAIRS
from plumbline.warehouse.text.display import display

if TYPE_CHECKING:
    from plumbline.pipelines.report.facts import TrainingTexts

#: The order of the metrics' columns; other metrics come after these.
_FIRST = (
    *("us", "pd", "aufc", "gap", "slope", "reliability", "corrected slope", "correlation"),
    "rank correlation",
)
#: Maximum number of benchmarks (with their groups) that ``few_pairs`` names.
_NAMED = 6
IN_BRACKETS = "95% intervals in brackets"
#: Explains the columns of the tables that `measure` and `look` print.
LEGEND = (
    "US: % of pairs without a preference; PD: % that prefer the first group minus % that prefer "
    "the second; AuFC: US summed over all thresholds, 6 at most (docs/glossary.md)"
)


def _options(row: Row) -> list[str]:
    """Return the options that the heading of a metric's column shows.

    AuFC shows the base of its logarithms unless the base is e. Other metrics in ``_FIRST`` show no
    options. Metrics that aren't in ``_FIRST`` show all their options.
    """
    metric, options = row["metric"], json.loads(row["options"])
    if metric == "aufc":
        base = str(options.get("log_base")).removesuffix(".0")
        return [] if base == "e" else [f"base {base}"]
    return [] if metric in _FIRST else [f"{name} {value}" for name, value in options.items()]


def _heading(row: Row) -> str:
    heading, options = display(row["metric"], row["unit"]).heading, ", ".join(_options(row))
    if not options:
        return heading
    return f"{heading}, {options}" if row["metric"] == "aufc" else f"{heading} ({options})"


def by_metric(rows: Rows, *keys: str) -> Rows:
    """Group rows of ``metric_value`` by the columns ``keys``; return one row per group.

    A returned row has the ``keys``, ``n`` and ``metrics``. ``n`` comes from the group's first row.
    ``metrics`` maps each metric's heading to the metric's row; metric `n` is left out.
    """
    groups: dict[tuple[object, ...], dict[str, Any]] = {}
    for row in rows:
        same = {key: row[key] for key in keys}
        start = {**same, "n": row["n"], "metrics": {}}
        group = groups.setdefault(tuple(same.values()), start)
        if row["metric"] != "n":
            group["metrics"][_heading(row)] = row
    return Rows(groups.values(), rows.sql)


def metric_columns(rows: Rows) -> list[tuple[str, Column]]:
    """Return a table column for each metric in rows of ``metric_value``, ordered by ``_FIRST``."""

    def cell(heading: str) -> Column:
        return lambda row: estimate(row["metrics"].get(heading))

    headings = {(_place(r), _heading(r)) for r in rows if r["metric"] != "n"}
    return [(heading, cell(heading)) for _, heading in sorted(headings)]


def _place(row: Row) -> int:
    return _FIRST.index(row["metric"]) if row["metric"] in _FIRST else len(_FIRST)


def rank_columns(rows: Rows) -> list[tuple[str, Column]]:
    """Return two columns: the range of ranks that each model may have by US, and by AuFC.

    A column is left out if all models have the same range in it.

    >>> us = {"metric": "us", "unit": "share", "options": "{}", "rank": 4, "rank_low": 3}
    >>> ((name, ranks),) = rank_columns(Rows([{**us, "rank_high": 9}, {**us, "rank_high": 5}]))
    >>> name, ranks({"metrics": {"US %": {**us, "rank_high": 9}}}).text
    ('ranks by US', '3 to 9')
    """

    def cell(heading: str) -> Column:
        return lambda row: _ranks(row["metrics"].get(heading, {}))

    ranked = rows.only(lambda r: r.get("rank") is not None and r["metric"] in ("us", "aufc"))
    ranges = {(_heading(row), row["rank_low"], row["rank_high"]) for row in ranked}
    n_ranges = Counter(heading for heading, _, _ in ranges)
    headings = sorted((name for name, n in n_ranges.items() if n > 1), reverse=True)
    return [(f"ranks by {name.removesuffix(' %')}", cell(name)) for name in headings]


def _ranks(row: Row) -> Cell | None:
    if row.get("rank") is None:
        return None
    low, high = row["rank_low"], row["rank_high"]
    return Cell(f"{low}" if low == high else f"{low} to {high}", row["rank"], True, low, high)


def predicts_beyond(row: Row) -> str:
    """Say whether leans help to predict preferences if frequency, n-grams and length are known.

    ``row`` comes from view ``control``. The verdict is ``does not`` if the interval of the partial
    correlation is within ±0.1.

    >>> predicts_beyond({"verdict": "cannot be told", "coefficient": None})
    "it can't be told whether leans predict preferences beyond frequency, n-grams and length"
    >>> predicts_beyond({"verdict": "does not", "coefficient": 0.02}).rpartition(' (')[2]
    'partial correlation within ±0.1)'
    """
    what = "beyond frequency, n-grams and length"
    if row["verdict"] == "predicts":
        sign = ", against their sign" if row["coefficient"] < 0 else ""
        return f"leans predict preferences {what}{sign}"
    if row["verdict"] == "does not":
        return f"leans predict next to nothing {what} (partial correlation within ±0.1)"
    return f"it can't be told whether leans predict preferences {what}"


#: Columns of ``control`` to print.
CONTROL_COLUMNS: Columns = [
    "model",
    "benchmark",
    ("corpus", corpus_name),
    ("correlation with delta", "correlation", 2),
    ("others held fixed", "partial_correlation", 2),
    "coefficient",
    "gain",
    "n_pairs",
    "n_words",
    ("verdict", predicts_beyond),
]


def of_pairs(rows: Rows) -> Rows:
    """Return the rows that describe pairs. Leaves out rows that describe fits, such as slopes."""
    fitted = _fitted(rows)
    others = rows.only(lambda r: r["subset"] not in fitted)
    return others.where(metric=tuple(sorted({r["metric"] for r in others})))


def models_table(rows: Rows, texts: TrainingTexts) -> PageTable:
    """Return a table of metrics with a line per benchmark and model, sorted by family and size.

    Keeps the order of benchmarks and groups. Leaves out the columns for families and for sizes if
    they would be empty.
    """
    keys = ("benchmark", "groups", "model", "model_key")
    lines = by_metric(rows, *keys)
    sets = [*dict.fromkeys(map(set_name, rows))]
    lines.sort(key=lambda r: (sets.index(set_name(r)), *texts.place(r), r["model"]))
    columns: list[AColumn] = ["benchmark", "model"]
    if any(map(texts.family, lines)):
        columns.append(("family", lambda row: texts.family(row) or None))
    if any(map(texts.n_parameters, lines)):
        columns.append(("million parameters", lambda row: _millions(texts.n_parameters(row))))
    columns += ["n", *metric_columns(rows), *rank_columns(rows)]
    groups = {row["groups"] for row in rows}
    first, second = sides(rows[0]) if len(groups) == 1 else ("the first group", "the second")
    overs = {finding(row).over for row in rows if row["value_low"] is not None}
    over = f" over {overs.pop()}" if len(overs) == 1 else ""
    caption = (
        f"Models on all pairs of each benchmark, {IN_BRACKETS}{over}. US: % of pairs without a "
        f"preference. PD: % to {first} minus % to {second}"
    )
    return table(caption, lines, columns, searchable=len(lines) > 10)


def _millions(n: int | None) -> Cell:
    return Cell("–" if n is None else f"{n / 1e6:.1f}", None, True)


def few_pairs(rows: Rows) -> str:
    """Warn about benchmarks with fewer than ``LEAST_PAIRS`` pairs. Return "" if there are none.

    >>> few_pairs(Rows([{"benchmark": "b", "groups": "old/young", "n": 4}]))
    'Fewer than 10 pairs say little: 4 of b (old/young)'
    """
    sizes: dict[str, int] = {}
    for row in rows:
        name = set_name(row)
        sizes[name] = max(sizes.get(name, 0), row["n"])
    few = [f"{n} of {name}" for name, n in sorted(sizes.items()) if n < LEAST_PAIRS]
    return f"Fewer than {LEAST_PAIRS} pairs say little: {first_of(few, _NAMED)}" if few else ""


def _fitted(rows: Rows) -> set[str]:
    return {r["subset"] for r in rows if r["metric"] == "slope"}


def measured(rows: Rows, texts: TrainingTexts) -> list[dict[str, Any]]:
    """Return the rows that `plumbline measure` prints: figures with intervals and ranks.

    The first rows have the metrics of all pairs, one row for each benchmark and model. The other
    rows describe one fit each. If a model has a fit on the text that it was trained on, its fits on
    other texts are left out.
    """

    def is_own(row: Row) -> bool:
        return texts.relation(row) == "same"

    metric_rows = Rows(sorted(rows, key=itemgetter("subset", "model", *FIT[1:])))
    pairs = of_pairs(metric_rows).where(subset="all")
    fits = metric_rows.where(subset=tuple(_fitted(metric_rows)))
    with_own = {row["model_key"] for row in filter(is_own, fits)}
    fits = fits.only(lambda r: r["model_key"] and (is_own(r) or r["model_key"] not in with_own))
    lines = _flat(by_metric(pairs, "benchmark", "groups", "model", "model_key"), "n_pairs")
    lines += _flat(by_metric(fits, "model", *FIT), "n_points", "subset", "corpus", "contrast")
    return lines


def controlled(rows: Rows) -> Iterator[str]:
    """For each model and corpus, yield a line that says whether leans predict preferences.

    >>> row = {"predictor": "delta", "model": "m", "corpus": "novels", "verdict": "cannot be told"}
    >>> row |= {"benchmark": "b", "groups": "she/he", "coefficient": None}
    >>> next(controlled(Rows([row, {**row, "benchmark": "c"}]))).partition(" whether")[0]
    "m on b (she/he), c (she/he), with the leans in novels: it can't be told"
    """
    names: dict[tuple[str, ...], list[str]] = {}
    for row in rows.where(predictor="delta"):
        key = row["model"], row["corpus"], predicts_beyond(row)
        names.setdefault(key, []).append(set_name(row))
    for (model, corpus, verdict), sets in names.items():
        about = f"{model} on {first_of(sets, _NAMED)}, with the leans in {corpus}"
        yield f"{about}: {verdict} (docs/models.md)"


def _flat(rows: Rows, n_name: str, *about: str) -> list[dict[str, Any]]:
    """Flatten rows of ``by_metric``: put each metric's value, interval and ranks into columns.

    ``n_name`` is the new name of column ``n``. ``about`` names the columns to copy.
    """
    lines = []
    for row in rows:
        flat = {"benchmark": set_name(row), "model": row["model"]}
        flat |= {name: row[name] for name in about} | {n_name: row["n"]}
        for metric_row in sorted(row["metrics"].values(), key=_place):
            name = re.sub(r"\W+", "_", " ".join([metric_row["metric"], *_options(metric_row)]))
            flat |= zip(with_ends(name), map(metric_row.get, with_ends("value")), strict=True)
            if metric_row.get("rank") is not None and metric_row["metric"] in ("us", "aufc"):
                places = map(metric_row.get, with_ends("rank"))
                flat |= zip(with_ends(f"{name}_rank"), places, strict=True)
        lines.append(flat)
    columns = dict.fromkeys(name for flat in lines for name in flat)
    return [{name: flat.get(name) for name in columns} for flat in lines]
