"""Findings from rows that have an estimate and the ends of its interval, and from fits."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence

import numpy as np

from plumbline.pipelines.report.model import estimate, shown
from plumbline.pipelines.report.rows import Row, sides
from plumbline.warehouse.finding import LEAST_CLUSTERS, Finding

#: Up to this many models of a benchmark are compared two by two.
_TWO_BY_TWO = 4
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


def finding(row: Row, of: str = "value", *, null: float = 0.0) -> Finding:
    """The finding on a row's estimate in column ``of``, with its interval.

    ``p``, ``q``, ``n_clusters`` and ``clusters`` are the row's, if it has them.

    >>> finding({"model": "m", "value": 2.0, "value_low": 1.0, "value_high": 3.0, "q": 0.3}).verdict
    'cannot be told'
    """
    return Finding(
        estimate=row[of],
        low=row[f"{of}_low"],
        high=row[f"{of}_high"],
        null=null,
        p=row.get("p"),
        q=row.get("q"),
        n_clusters=row.get("n_clusters"),
        clusters=str(row.get("clusters") or "cluster"),
    )


def side(row: Row) -> str:
    """The group whose sentence a model prefers, by a row of PD; empty if no side is clear.

    >>> side({"value": 5.0, "value_low": -1.0, "value_high": 11.0, "groups": "she/they"})
    ''
    """
    first, second = sides(row)
    return finding(row).pick(above=first, below=second, untold="")


def over_families(figures: Iterable[tuple[str, float]]) -> Finding:
    """The mean of the families' mean figures, with Student's 95% interval over families.

    Models of a family are alike (text, architecture, tokenizer), so a family counts once. There is
    no interval if the families are fewer than ``LEAST_CLUSTERS`` or all have the same mean.

    Args:
        figures: family and figure of each model.

    >>> found = over_families([(name, 1.0 + k % 2) for k, name in enumerate("aabcdef")])
    >>> found.over, found.verdict, round(found.estimate, 2)
    ('6 families', 'above', 1.42)
    """
    from scipy.special import stdtrit

    by_family: dict[str, list[float]] = {}
    for family, figure in figures:
        by_family.setdefault(family, []).append(figure)
    means = np.array([np.mean(values) for values in by_family.values()])
    n, low, high = len(means), None, None
    if n >= LEAST_CLUSTERS and means.std() > 0:
        half = stdtrit(n - 1, 0.975) * means.std(ddof=1) / math.sqrt(n)
        low, high = float(means.mean() - half), float(means.mean() + half)
    mean = float(means.mean()) if n else None
    return Finding(mean, low, high, n_clusters=n, clusters="family")


def of_groups(row: Row, p: str) -> Finding:
    """How much farther apart FairPair's two groups are than samples of one group: B less mean V.

    The verdict is from the permutation test, whose p-value is in column ``p``. The interval of F
    can't be used as a test: if the groups are alike, F's noise is of second order.
    """
    b, v_pg, v_gp = (row[c] for c in ("bias_b", "variability_pg", "variability_gp"))
    gap = None if None in (b, v_pg, v_gp) else b - (v_pg + v_gp) / 2
    return Finding(gap, p=row[p])


def differs(prompt: Row) -> bool:
    """True if the texts of a prompt of FairPair differ after correction for the other prompts."""
    return of_groups(prompt, "q_permutation").verdict == "above"


def median_model(us: Sequence[Row]) -> str:
    """The key of the model with the median US; empty for up to four models.

    Up to four models are compared two by two. If there are more, each is compared with this one:
    chance didn't make it extreme.
    """
    if len(us) <= _TWO_BY_TWO:
        return ""
    ordered = sorted(us, key=lambda r: (r["value"], r["model"], r["model_key"]))
    return str(ordered[len(ordered) // 2]["model_key"])


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
