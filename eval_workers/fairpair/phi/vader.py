"""Difference of sentiment: Phi(a, b) = |compound(a) - compound(b)| of VADER (English only).

``compound`` lies in [-1, 1] and is rounded to 4 digits by VADER itself.
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
    """The compound sentiment of each text; 0 without a word that VADER knows.

    >>> items(["A good day.", "A chair.", ""])
    [0.4404, 0.0, 0.0]
    """
    return [float(_analyzer().polarity_scores(text)["compound"]) for text in texts]


@cache
def _analyzer() -> SentimentIntensityAnalyzer:
    return SentimentIntensityAnalyzer()
