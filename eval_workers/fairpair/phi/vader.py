"""Difference in VADER's sentiment: Phi(a, b) = |compound(a) - compound(b)| (English only).

``compound`` is between -1 and 1, and VADER itself rounds it to 4 digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from plumbline.eval_workers.fairpair.numbers import combine, distances, means

__all__ = ["DESCRIPTION", "LANGUAGES", "combine", "distances", "items", "means"]

DESCRIPTION = "absolute difference of the VADER compound sentiment"
LANGUAGES = ("en",)


def items(texts: Sequence[str]) -> list[float]:
    """Return the compound sentiment of each text; 0 if VADER knows none of its words.

    >>> items(["A good day.", "A chair.", ""])
    [0.4404, 0.0, 0.0]
    """
    return [float(_analyzer().polarity_scores(text)["compound"]) for text in texts]


@cache
def _analyzer() -> SentimentIntensityAnalyzer:
    return SentimentIntensityAnalyzer()
