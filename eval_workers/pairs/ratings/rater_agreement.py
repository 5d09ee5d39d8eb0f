"""Krippendorff's alpha of all raters and of all but one, with intervals over pairs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import krippendorff
import numpy as np
import numpy.typing as npt

Row = dict[str, Any]
Floats = npt.NDArray[np.float64]

_N_RESAMPLES = 2_000
#: Fewest pairs with two answers that an interval needs; with fewer, resamples tell too little.
FEWEST_PAIRS = 10
#: An interval needs a defined alpha in at least this share of the resamples.
_LEAST_DEFINED = 0.95


def alpha(counts: npt.ArrayLike) -> float:
    """Krippendorff's alpha of ordered answers, 1 for full agreement and 0 for chance.

    The ordinal form of Krippendorff, *Content Analysis* (2004), chapter 11. ``counts``
    [pair, answer] are numbers of raters, answers in their order; pairs with fewer than two answers
    are ignored. Returns NaN where all answers that count are the same.

    >>> round(alpha([[2, 0], [0, 2], [1, 1]]), 3)  # 1 - 2 * 5 / (2 * 3 * 3)
    0.444
    >>> alpha([[2, 0], [1, 0]])
    nan
    """
    n = np.asarray(counts)
    n = n[n.sum(1) > 1]
    if np.count_nonzero(n.any(0)) < 2:
        return math.nan
    return float(krippendorff.alpha(value_counts=n, level_of_measurement="ordinal"))


def agreement(ratings: Sequence[Row]) -> list[Row]:
    """Rows of `rating_agreement` without benchmark and run: per design and question one of all
    raters, then one without each rater if there are three or more.

    ``ratings`` are rows of `rating`. The 95% intervals are percentile bootstraps over pairs; all
    alphas of a design and question use the same resamples. Intervals are NULL with fewer than ten
    pairs that have two answers, and if more than 5% of the resamples have no alpha. The gain is the
    alpha without the rater minus the alpha of all; Bonferroni's correction widens its interval.

    >>> ask = lambda rater, pair, level: {"rater": rater, "pair_id": pair, "question": "natural",
    ...                                   "answer_level": level, "design": None}
    >>> [row] = agreement([ask(r, p, int(p == "x")) for r in "ab" for p in "xyz"])
    >>> row["alpha"], row["n_pairs"], row["n_answers"]
    (1.0, 3, 6)
    """
    groups: dict[tuple[str | None, str], list[Row]] = {}
    for row in ratings:
        groups.setdefault((row["design"], row["question"]), []).append(row)
    return [
        {"design": design, "question": question, **row}
        for (design, question), rows in groups.items()
        for row in _of_question(rows)
    ]


def _of_question(rows: Sequence[Row]) -> list[Row]:
    raters = sorted({row["rater"] for row in rows})
    n_answers = Counter(row["pair_id"] for row in rows)
    places = {pair: k for k, pair in enumerate(sorted(p for p, n in n_answers.items() if n > 1))}
    n_levels = 1 + max(row["answer_level"] for row in rows)
    counts = np.zeros((len(raters), len(places), n_levels))
    for row in rows:
        if row["pair_id"] in places:
            counts[raters.index(row["rater"]), places[row["pair_id"]], row["answer_level"]] += 1
    n, totals = len(places), counts.sum(0)
    drawn = np.zeros((0, n), np.int64)
    if n >= FEWEST_PAIRS:
        drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), _N_RESAMPLES)
    all_alphas, row = _alphas(totals, drawn)
    result = [{"without_rater": "", **row, "n_raters": len(raters)}]
    for rater, of_rater in zip(raters if len(raters) > 2 else [], counts, strict=False):
        alphas, row = _alphas(totals - of_rater, drawn)
        low, high = _interval(alphas - all_alphas, 0.05 / len(raters))
        row |= {"without_rater": rater, "gain_low": low, "gain_high": high}
        result.append({**row, "n_raters": len(raters) - 1})
    return result


def _alphas(counts: Floats, drawn: npt.NDArray[np.int64]) -> tuple[Floats, Row]:
    """Alpha of some raters' answers in each resample, and columns with their alpha and interval.

    ``drawn`` [resample, pair] are how often a pair counts.
    """
    resampled = np.array([alpha(np.repeat(counts, times, 0)) for times in drawn])
    used, value = counts[counts.sum(1) > 1], alpha(counts)
    low, high = _interval(resampled, 0.05)
    return resampled, {
        "n_pairs": len(used),
        "n_answers": int(used.sum()),
        "alpha": None if math.isnan(value) else value,
        "alpha_low": low,
        "alpha_high": high,
    }


def _interval(resampled: Floats, outside: float) -> tuple[float | None, float | None]:
    """Central range of the values, without a share ``outside``; ``None`` if too few are defined."""
    defined = resampled[~np.isnan(resampled)]
    if len(defined) < _LEAST_DEFINED * _N_RESAMPLES:
        return None, None
    low, high = np.quantile(defined, (outside / 2, 1 - outside / 2)).tolist()
    return low, high
