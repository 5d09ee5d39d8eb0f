"""Krippendorff's alpha of all raters and of all but one, with intervals over pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Row = dict[str, Any]
Floats = npt.NDArray[np.float64]

_N_RESAMPLES = 2_000
#: Fewest pairs with two answers that an interval needs; with fewer, resamples tell too little.
FEWEST_PAIRS = 10
#: An interval needs a defined alpha in at least this share of the resamples.
_LEAST_DEFINED = 0.95


def alpha(counts: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Floats:
    """Krippendorff's alpha of ordered answers, 1 for full agreement and 0 for chance.

    alpha = 1 - D_o / D_e, with D_o the mean disagreement within pairs and D_e that of any two
    answers, both in the ordinal distance of Krippendorff, *Content Analysis* (2004), chapter 11.
    Pairs with fewer than two answers are ignored. ``counts`` [pair, answer] are numbers of raters,
    answers in their order; ``weights`` [resample, pair] are how often a pair counts, by default
    once. Returns one alpha per resample; NaN where all answers that count are the same.

    >>> alpha([[2, 0], [0, 2], [1, 1]]).round(3).tolist()  # 1 - 2 * 5 / (2 * 3 * 3)
    [0.444]
    >>> alpha([[2, 0], [1, 0]]).tolist()
    [nan]
    """
    n = np.asarray(counts, np.float64)
    n_raters = n.sum(1)
    n = n[n_raters > 1]
    w = np.ones((1, len(n))) if weights is None else np.asarray(weights)[:, n_raters > 1]
    n_levels = n.shape[1]
    coincidences = n[:, :, None] * n[:, None, :] - n[:, :, None] * np.eye(n_levels)
    coincidences /= (n.sum(1) - 1)[:, None, None]
    observed = np.einsum("rp,pab->rab", w, coincidences)
    totals = observed.sum(2)
    expected = totals[:, :, None] * totals[:, None, :] - totals[:, :, None] * np.eye(n_levels)
    # Squares of distances: the number of answers between two, and half of those at both ends.
    below = np.cumsum(totals, 1) - totals / 2
    distance = (below[:, :, None] - below[:, None, :]) ** 2
    within, between = ((c * distance).sum((1, 2)) for c in (observed, expected))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(between > 0, 1 - (totals.sum(1) - 1) * within / between, np.nan)


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
    drawn: npt.NDArray[Any] = np.zeros((0, n))
    if n >= FEWEST_PAIRS:
        drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), _N_RESAMPLES)
    alphas = alpha(totals, drawn)
    result = [{"without_rater": "", **_figures(totals, alphas), "n_raters": len(raters)}]
    for rater, of_rater in zip(raters if len(raters) > 2 else [], counts, strict=False):
        alphas_without = alpha(totals - of_rater, drawn)
        gain = _interval(alphas_without - alphas, 0.05 / len(raters))
        row = {"without_rater": rater, **_figures(totals - of_rater, alphas_without)}
        row |= dict(zip(("gain_low", "gain_high"), gain, strict=True))
        result.append({**row, "n_raters": len(raters) - 1})
    return result


def _figures(counts: Floats, resampled: Floats) -> Row:
    """Columns with the alpha of some raters' answers, and its interval from resampled alphas."""
    used = counts[counts.sum(1) > 1]
    value = alpha(counts)[0]
    low, high = _interval(resampled, 0.05)
    return {
        "n_pairs": len(used),
        "n_answers": int(used.sum()),
        "alpha": None if np.isnan(value) else float(value),
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
