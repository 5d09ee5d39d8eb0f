"""Judge estimates by their intervals, for example whether a preference is clearly above 0."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable

from plumbline.pipelines.report.rows import Row, sides
from plumbline.warehouse.finding import LEAST_CLUSTERS, Finding

#: Subset of fits for benchmarks whose pairs weren't made for a word, or were made for words chosen
#: because they don't lean. The points are the words that determine MaxPMI.
BY_MAX_PMI = "words, max_pmi"
#: For each subset of fits, in the page's order: what x is in the fit, with its unit.
LEANS = {
    "words, planted delta": "planted delta of the word, in nats",
    "words, measured delta": "measured delta of the word, in nats",
    BY_MAX_PMI: "MaxPMI of the word's pairs, in nats",
}
#: The keys of ``LEANS``.
SUBSETS = tuple(LEANS)


def finding(row: Row, column: str = "value", *, null: float = 0.0) -> Finding:
    """Judge whether the estimate in a row's ``column`` is clearly above or below ``null``.

    The verdict uses the interval and, if the row has them, the columns ``p``, ``q``,
    ``n_clusters``, ``clusters`` and ``n_by_kind``.

    >>> finding({"model": "m", "value": 2.0, "value_low": 1.0, "value_high": 3.0, "q": 0.3}).verdict
    'cannot be told'
    """
    return Finding(
        estimate=row[column],
        low=row[f"{column}_low"],
        high=row[f"{column}_high"],
        null=null,
        p=row.get("p"),
        q=row.get("q"),
        n_clusters=row.get("n_clusters"),
        clusters=str(row.get("clusters") or "cluster"),
        n_by_kind=tuple(row.get("n_by_kind") or ()),
    )


def side(row: Row) -> str:
    """Return the group whose sentences a model clearly prefers. ``row`` has the model's PD.

    Returns an empty string if there is no clear preference.

    >>> side({"value": 5.0, "value_low": -1.0, "value_high": 11.0, "groups": "she/they"})
    ''
    """
    first, second = sides(row)
    return finding(row).pick(above=first, below=second, untold="")


def over_families(figures: Iterable[tuple[str, float]]) -> Finding:
    """Average figures over the models of each family, then over families; judge the mean.

    A family counts once, since its models share a text, architecture and tokenizer. The interval
    is Student's 95% interval over families. With fewer than ``LEAST_CLUSTERS`` families, or if all
    families have the same mean, there is no interval.

    Args:
        figures: a pair (family, figure) for each model.

    >>> found = over_families([(name, 1.0 + k % 2) for k, name in enumerate("aabcdef")])
    >>> found.over, found.verdict, round(found.estimate, 2)
    ('6 families', 'above', 1.42)
    """
    import numpy as np
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
    """Judge whether FairPair's bias B exceeds the sampling noise (the mean of V_pg and V_gp).

    The verdict comes from a permutation test, whose p-value is in the column named ``p``. F's
    bootstrap interval can't be used, since the bootstrap fails if the two groups are alike.
    """
    b, v_pg, v_gp = (row[c] for c in ("bias_b", "variability_pg", "variability_gp"))
    gap = None if None in (b, v_pg, v_gp) else b - (v_pg + v_gp) / 2
    return Finding(gap, p=row[p])


def differs(prompt: Row) -> bool:
    """Return whether a prompt's two groups of texts differ, judged by the corrected p-value."""
    return of_groups(prompt, "q_permutation").verdict == "above"


def swapped_model(row: Row) -> str:
    """Of a row's two models, return the one whose training text has she and he swapped."""
    return str(json.loads(row["options"])["swapped_model"])
