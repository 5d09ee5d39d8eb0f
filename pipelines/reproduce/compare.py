"""Printed figures beside those of ``metric_value``: pure, rows in, rows out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.pipelines.reproduce.figures import (
    SD_N_PAIRS,
    SIZE,
    TOLERANCE,
    PrintedFigure,
    convention,
    known,
)
from plumbline.warehouse.files import kept_object

#: What a comparison can come to.
OUTCOMES = (AGREE, OFF, NOT_RUN, CONTRADICTED) = (
    *("agree", "off", "not run"),
    "contradicted by the release",
)


@dataclass(frozen=True)
class Compared:
    """A figure, what the imported data give for it, and what that means.

    Attributes:
        ours: None where the release has no scores for it.
        ci: 95% interval of ours in the figure's unit; NaN if undefined.
        outcome: one of the constants of this module. ``note``: convention or contradiction.
    """

    figure: PrintedFigure
    ours: float | None
    ci: tuple[float, float]
    outcome: str
    note: str

    @property
    def difference(self) -> float | None:
        """Ours less the printed figure; None without ours."""
        return None if self.ours is None else self.ours - self.figure.value


@dataclass(frozen=True)
class Start:
    """US (percent) and PD (points) of pairs by what they start with.

    Attributes:
        us_ci, pd_ci: 95% intervals; NaN where there is none, as of few clusters.
    """

    model: str
    benchmark: str
    start: str
    n: int
    us: float
    us_ci: tuple[float, float]
    pd: float
    pd_ci: tuple[float, float]


def starts(metrics: Sequence[Mapping[str, Any]]) -> list[Start]:
    """The pronoun-first split of every model and benchmark; subsets without pairs are left out."""
    found: dict[tuple[str, str, str], dict[str, Mapping[str, Any]]] = {}
    for row in metrics:
        if row["subset"].startswith("pronoun ") and row["metric"] in ("us", "pd") and row["n"]:
            key = (row["model"], row["benchmark"], row["subset"])
            found.setdefault(key, {})[row["metric"]] = row
    return [
        Start(
            *key,
            of["us"]["n"],
            100 * of["us"]["value"],
            _interval(of["us"], 100),
            of["pd"]["value"],
            _interval(of["pd"], 1),
        )
        for key, of in sorted(found.items())
    ]


def _interval(row: Mapping[str, Any], scale: float) -> tuple[float, float]:
    low, high = row["value_low"], row["value_high"]
    if low is None or high is None:
        return math.nan, math.nan
    return scale * low, scale * high


_Key = tuple[str, str, str, float | None, float]
_METRIC = {SIZE: "n", "US": "us", "US_std": "us", "PD": "pd", "AuFC": "aufc"}
#: Shares are printed as percentages.
_SCALE = {"US": 100.0, "US_std": 100.0, "gap": 100.0}


def compare(
    figures: Iterable[PrintedFigure], metrics: Sequence[Mapping[str, Any]]
) -> list[Compared]:
    """Each figure beside the row of ``metric_value`` that it is; the order stays.

    A difference of more than 0.011 is ``off``, unless the figure is a size that is known to
    contradict the released data and ours is what these give. A size is that of the model with most
    pairs. What deduplication changes comes as rows of ``metrics`` too, see
    ``run.deduplication_rows``.
    """
    found = _by_key(metrics)
    return [_compared(figure, _row(figure, found)) for figure in figures]


def _by_key(metrics: Sequence[Mapping[str, Any]]) -> dict[_Key, Mapping[str, Any]]:
    found: dict[_Key, Mapping[str, Any]] = {}
    for row in metrics:
        if row["subset"] != "all" and row["eta_nats"] is None:
            continue
        base = kept_object(row, "options").get("log_base", "e")
        base_value = math.e if base == "e" else float(base)
        where = (row["metric"], row["benchmark"])
        found[(*where, row["model"], row["eta_nats"], base_value)] = row
        if row["metric"] == "n":
            size = (*where, "", row["eta_nats"], base_value)
            if size not in found or found[size]["value"] < row["value"]:
                found[size] = row
    return found


def _row(
    figure: PrintedFigure, found: Mapping[_Key, Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    base = figure.log_base if figure.metric == "AuFC" else math.e
    metric = _METRIC.get(figure.metric, figure.metric)
    return found.get((metric, figure.benchmark, figure.model, figure.eta_nats, base))


def _compared(figure: PrintedFigure, row: Mapping[str, Any] | None) -> Compared:
    scale = _SCALE.get(figure.metric, 1.0)
    value = None if row is None else row["value"]
    if value is not None and figure.metric == "US_std":
        value = math.sqrt(value * (1 - value) / SD_N_PAIRS)
    if row is None or value is None:
        return Compared(figure, None, (math.nan, math.nan), NOT_RUN, "")
    ours = scale * value
    ci = (math.nan, math.nan) if figure.metric == "US_std" else _interval(row, scale)
    exception = known(figure)
    if abs(ours - figure.value) <= TOLERANCE:
        outcome = AGREE
    elif exception and abs(ours - exception.released) <= TOLERANCE:
        outcome = CONTRADICTED
    else:
        outcome = OFF
    return Compared(figure, ours, ci, outcome, exception.note if exception else convention(figure))
