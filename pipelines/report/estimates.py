"""Turn rows with an estimate and its interval, and rows of fits, into findings."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable

import numpy as np

from plumbline.pipelines.report.model import estimate, shown
from plumbline.pipelines.report.rows import Row, sides
from plumbline.warehouse.finding import LEAST_CLUSTERS, Finding

#: Subset of fits for benchmarks whose pairs weren't made for a word, or were made for words chosen
#: because they don't lean. The points are the words that determine MaxPMI.
BY_MAX_PMI = "words, max_pmi"
#: By subset of fits, in the page's order: the lean of a point, with its unit.
LEANS = {
    "words, planted delta": "planted delta of the word, in nats",
    "words, measured delta": "measured delta of the word, in nats",
    BY_MAX_PMI: "MaxPMI of the word's pairs, in nats",
}
#: The keys of ``LEANS``.
SUBSETS = tuple(LEANS)
#: Least reliability of leans for a verdict on a slope (view `fit`).
LEAST_RELIABLE = 0.3


def finding(row: Row, of: str = "value", *, null: float = 0.0) -> Finding:
    """Return the finding on the estimate in a row's column ``of``, with its interval.

    Takes ``p``, ``q``, ``n_clusters`` and ``clusters`` from the row, if it has them.

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
    """Return the group whose sentence a model clearly prefers, by a row of PD; empty if none.

    >>> side({"value": 5.0, "value_low": -1.0, "value_high": 11.0, "groups": "she/they"})
    ''
    """
    first, second = sides(row)
    return finding(row).pick(above=first, below=second, untold="")


def over_families(figures: Iterable[tuple[str, float]]) -> Finding:
    """Return the mean of the families' mean figures, with Student's 95% interval over families.

    Models of a family are alike (text, architecture, tokenizer), so a family counts once. There is
    no interval with fewer than ``LEAST_CLUSTERS`` families, or if all have the same mean.

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
    """Return the distance between FairPair's groups minus the distance within them: B - mean V.

    The verdict comes from the permutation test, whose p-value is in column ``p``. F's bootstrap
    interval isn't a valid test, because F's distribution degenerates if the groups are alike.
    """
    b, v_pg, v_gp = (row[c] for c in ("bias_b", "variability_pg", "variability_gp"))
    gap = None if None in (b, v_pg, v_gp) else b - (v_pg + v_gp) / 2
    return Finding(gap, p=row[p])


def differs(prompt: Row) -> bool:
    """Return whether a prompt's two groups of texts differ, corrected for the number of prompts."""
    return of_groups(prompt, "q_permutation").verdict == "above"


def swapped_model(row: Row) -> str:
    """Return the swapped model named in the options of a fit of swapped on straight scores."""
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
