"""Fits of preference on lean: what their points lean on, and how far their leans are noise."""

from __future__ import annotations

import json
from typing import Any

from plumbline.pipelines.report.metric_tables import FIT
from plumbline.pipelines.report.model import estimate, shown
from plumbline.pipelines.report.rows import Row, same

#: Subset of fits of benchmarks whose pairs were made for no word, or for words that were chosen
#: because they don't lean. Points are the words that decide MaxPMI.
BY_MAX_PMI = "words, max_pmi"
#: Subset of fits -> the lean of their points with its unit, in the page's order.
LEANS = {
    "words, planted delta": "planted delta of the word, in nats",
    "words, measured delta": "measured delta of the word, in nats",
    BY_MAX_PMI: "MaxPMI of the word's pairs, in nats",
}
#: These subsets.
SUBSETS = tuple(LEANS)
#: Least reliability of leans for a verdict on their slope (view `fit`).
LEAST_RELIABLE = 0.3


def fit_key(row: Row) -> dict[str, Any]:
    """The columns that identify a fit, with a row's values."""
    return same(row, [column for column in FIT if column != "model"])


def swapped_model(row: Row) -> str:
    """The model that a row of a fit of a swapped on a straight model names in its options."""
    return str(json.loads(row["options"])["swapped_model"])


def of_errors(fit: Row) -> str:
    """Say how reliable a fit's leans are, and give its corrected slope; empty if unknown.

    >>> row = {"reliability": 0.4, "error_over": "co-occurrences", "corrected": None}
    >>> of_errors(row)
    'Reliability of the leans at most 0.40'
    >>> of_errors({**row, "corrected": 2, "corrected_low": 1, "corrected_high": 3})
    'Reliability of the leans at most 0.40, corrected slope 2.00 (1.00 to 3.00)'
    >>> of_errors({**row, "reliability": 0.2})
    'Reliability of the leans at most 0.20: too noisy to judge a slope'
    """
    share = fit["reliability"]
    if share is None or fit["error_over"] == "exact":
        return ""
    most = "at most " if fit["error_over"] == "co-occurrences" else ""
    about = f"Reliability of the leans {most}{shown(share, 2)}"
    if share < LEAST_RELIABLE:
        return f"{about}: too noisy to judge a slope"
    if fit["corrected"] is None:
        return about
    return f"{about}, corrected slope {estimate(fit, 'corrected', 2).text}"
