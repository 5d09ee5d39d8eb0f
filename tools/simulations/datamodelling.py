"""What the interval of a mean datamodelling score covers, for docs/attribution-study.md.

A word's predictions and preferences have the correlation of that word, which varies between words
(but not where there is one); a part of both is the same for all words of a half. The truth is the
mean over many words and halves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plumbline.pipelines.reproduce.retraining.datamodelling import correlations, score

Floats = NDArray[np.float64]
ABOUT = (
    "How often the 95% interval of a mean score contains that of many words and halves; and, where "
    "two methods are equally good, how often the interval of their difference excludes 0."
)
DRAWS = 300
#: Words, halves, mean correlation, share of the variance that words of a half have in common.
CASES = (
    *((words, 40, r, 0.3) for words in (1, 12, 60) for r in (0.0, 0.3, 0.8)),
    *((60, 40, r, 0.9) for r in (0.0, 0.3)),
    *((60, 10, r, 0.3) for r in (0.0, 0.3)),
)
#: Deviation of the words' correlations, as Fisher's z.
_SPREAD = 0.2
_N_TRUTH = 1_500


def draw_study(
    words: int, halves: int, r: float, common: float, draw: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Predictions of two equally good methods, and preferences, each float64[word, half]."""

    def normal() -> Floats:
        both = draw.standard_normal((halves,)), draw.standard_normal((words, halves))
        mixed: Floats = np.sqrt(common) * both[0] + np.sqrt(1 - common) * both[1]
        return mixed

    of_word = np.tanh(np.arctanh(r) + _SPREAD * (words > 1) * draw.standard_normal((words, 1)))
    true = normal()
    one, other = (of_word * true + np.sqrt(1 - of_word**2) * normal() for _ in range(2))
    return one, other, true


def rows(draws: int, seed: int) -> list[dict[str, object]]:
    """A row per case: shares of its studies."""
    draw, found = np.random.default_rng(seed), []
    for words, halves, r, common in CASES:
        one, _, true = draw_study(_N_TRUTH if words > 1 else 1, _N_TRUTH, r, 0, draw)
        truth = float(correlations(one, true).mean())
        n_held = n_different = 0
        width = []
        for _ in range(draws):
            one, other, true = draw_study(words, halves, r, common, draw)
            found_one, difference = score(one, true), score(one, true, other)
            n_held += found_one.low <= truth <= found_one.high
            n_different += not difference.low <= 0 <= difference.high
            width.append(found_one.high - found_one.low)
        case = {"words": words, "halves": halves, "correlation": r, "in common": common}
        shares = {"contains the truth": n_held / draws, "differ": n_different / draws}
        found.append({**case, "width": float(np.mean(width)), **shares})
    return found
