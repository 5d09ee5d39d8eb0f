"""Judge estimates by their intervals: turn rows into findings, such as above or below 0."""

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


def finding(row: Row, of: str = "value", *, null: float = 0.0) -> Finding:
    """Judge the estimate in a row's column ``of`` by its interval; return the finding.

    Uses the columns ``p``, ``q``, ``n_clusters``, ``clusters``, ``n_by_kind`` if the row has them.

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
        n_by_kind=tuple(row.get("n_by_kind") or ()),
    )


def side(row: Row) -> str:
    """Return the group whose sentences a model clearly prefers, from its row of metric PD.

    Returns an empty string if there is no clear preference.

    >>> side({"value": 5.0, "value_low": -1.0, "value_high": 11.0, "groups": "she/they"})
    ''
    """
    first, second = sides(row)
    return finding(row).pick(above=first, below=second, untold="")


def over_families(figures: Iterable[tuple[str, float]]) -> Finding:
    """Average figures within each family of models, then over families; return the finding.

    A family counts once, since its models have a text, architecture and tokenizer in common. The
    interval is Student's 95% interval over families. There is none with fewer than
    ``LEAST_CLUSTERS`` families, or if all families have the same mean.

    Args:
        figures: family and figure of each model.

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
    """Return the finding on FairPair's B - mean V: the bias between groups minus sampling noise.

    The verdict comes from the permutation test, whose p-value is in the column named ``p``. F's
    bootstrap interval isn't a valid test: if the groups are alike, F's distribution degenerates.
    """
    b, v_pg, v_gp = (row[c] for c in ("bias_b", "variability_pg", "variability_gp"))
    gap = None if None in (b, v_pg, v_gp) else b - (v_pg + v_gp) / 2
    return Finding(gap, p=row[p])


def differs(prompt: Row) -> bool:
    """Return whether a prompt's two groups of texts differ, judged by the corrected p-value."""
    return of_groups(prompt, "q_permutation").verdict == "above"


def swapped_model(row: Row) -> str:
    """Return the swapped model's name from a fit of its scores on the straight model's scores."""
    return str(json.loads(row["options"])["swapped_model"])
