"""Compare printed figures with rows of ``metric_value``. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.pipelines.reproduce.printed_figures import (
    SD_N_PAIRS,
    SIZE,
    TOLERANCE,
    PrintedFigure,
    convention,
    known,
)

#: Outcomes of a comparison.
OUTCOMES = (AGREE, OFF, NOT_RUN, CONTRADICTED) = (
    *("agree", "off", "not run"),
    "contradicted by the release",
)


@dataclass(frozen=True)
class ComparedFigure:
    """A printed figure beside ours, which comes from the imported data.

    Attributes:
        ours: our figure, None if it is undefined or the release has no scores for it.
        ci: ends of our 95% interval, in the figure's unit; None if undefined, and for deviations.
        outcome: one of ``OUTCOMES``. note: our convention, or the contradiction.
    """

    figure: PrintedFigure
    ours: float | None
    ci: tuple[float | None, float | None]
    outcome: str
    note: str

    @property
    def difference(self) -> float | None:
        """Ours minus the printed figure; None without ours."""
        return None if self.ours is None else self.ours - self.figure.value


def starts(metrics: Sequence[Mapping[str, Any]]) -> list[dict[str, object]]:
    """US and PD of each model and benchmark, with 95% intervals, by whether the pronoun is first.

    Subsets without pairs are left out. With too few clusters the ends of an interval are None.
    """
    rows: dict[tuple[str, str, str], dict[str, object]] = {}
    for row in sorted(metrics, key=lambda row: row["metric"] != "us"):
        name = row["metric"]
        if row["subset"].startswith("pronoun ") and name in ("us", "pd") and row["n"]:
            key = (row["model"], row["benchmark"], row["subset"])
            start = dict(zip(("model", "benchmark", "start"), key, strict=True))
            ends = {f"{name}_low": row["value_low"], f"{name}_high": row["value_high"]}
            rows.setdefault(key, {**start, "n_pairs": row["n"]}).update(
                {name: row["value"], **ends}
            )
    return [row for _, row in sorted(rows.items())]


def _interval(row: Mapping[str, Any], scale: float) -> tuple[float | None, float | None]:
    low, high = row["value_low"], row["value_high"]
    return (None, None) if low is None or high is None else (scale * low, scale * high)


_Key = tuple[str, str, str, float | None, float]
_METRIC = {SIZE: "n", "US": "us", "US_std": "us", "PD": "pd", "AuFC": "aufc"}
#: Shares are printed as percentages.
_SCALE = {"US": 100.0, "US_std": 100.0, "gap": 100.0}


def compare(
    figures: Iterable[PrintedFigure], metrics: Sequence[Mapping[str, Any]]
) -> list[ComparedFigure]:
    """Compare each figure with its row of ``metric_value``; results are in the figures' order.

    ``metrics`` also has the rows of ``run.deduplication_rows``. A difference of more than 0.011 is
    ``off``. But a printed size that is known to be wrong is ``contradicted by the release`` if ours
    is the released size. Our size of a benchmark is that of the model with most pairs.
    """
    rows = _by_key(metrics)
    compared = []
    for figure in figures:
        base = figure.log_base if figure.metric == "AuFC" else math.e
        metric = _METRIC.get(figure.metric, figure.metric)
        row = rows.get((metric, figure.benchmark, figure.model, figure.eta_nats, base))
        compared.append(_compared(figure, row))
    return compared


def _by_key(metrics: Sequence[Mapping[str, Any]]) -> dict[_Key, Mapping[str, Any]]:
    rows: dict[_Key, Mapping[str, Any]] = {}
    for row in metrics:
        if row["subset"] != "all" and row["eta_nats"] is None:
            continue
        base = json.loads(row["options"]).get("log_base", "e")
        base_value = math.e if base == "e" else float(base)
        where = (row["metric"], row["benchmark"])
        rows[(*where, row["model"], row["eta_nats"], base_value)] = row
        if row["metric"] == "n":
            size = (*where, "", row["eta_nats"], base_value)
            if size not in rows or rows[size]["value"] < row["value"]:
                rows[size] = row
    return rows


def _compared(figure: PrintedFigure, row: Mapping[str, Any] | None) -> ComparedFigure:
    scale = _SCALE.get(figure.metric, 1.0)
    value = None if row is None else row["value"]
    if value is not None and figure.metric == "US_std":
        value = math.sqrt(value * (1 - value) / SD_N_PAIRS)
    if row is None or value is None:
        return ComparedFigure(figure, None, (None, None), NOT_RUN, "")
    ours = scale * value
    ci = (None, None) if figure.metric == "US_std" else _interval(row, scale)
    exception = known(figure)
    if abs(ours - figure.value) <= TOLERANCE:
        outcome = AGREE
    elif exception and abs(ours - exception.released) <= TOLERANCE:
        outcome = CONTRADICTED
    else:
        outcome = OFF
    return ComparedFigure(
        figure, ours, ci, outcome, exception.note if exception else convention(figure)
    )
