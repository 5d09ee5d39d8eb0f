"""Difference in VADER's sentiment: Phi(a, b) = |compound(a) - compound(b)| (English only).

A fold's item is the mean of its samples' sentiments.
``compound`` is between -1 and 1, and VADER itself rounds it to 4 digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from statistics import fmean

import numpy as np
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from plumbline.eval_workers.fairpair.phi import Floats

DESCRIPTION = "absolute difference of the VADER compound sentiment"
LANGUAGES = ("en",)


def items(texts: Sequence[str]) -> list[float]:
    """Return the compound sentiment of each text; 0 if VADER knows none of its words.

    >>> items(["A good day.", "A chair.", ""])
    [0.4404, 0.0, 0.0]
    """
    return [float(_analyzer().polarity_scores(text)["compound"]) for text in texts]


def combine(items: Sequence[float]) -> float:
    """Return the mean of a fold's numbers.

    >>> combine([0.5, -0.1])
    0.2
    """
    return fmean(items)


def distances(items: Sequence[float]) -> Floats:
    """Return the matrix of |a - b| for every two numbers.

    >>> distances([0.0, 0.5]).tolist()
    [[0.0, 0.5], [0.5, 0.0]]
    """
    values = np.asarray(items, np.float64)
    return np.abs(values[:, None] - values[None, :])


@cache
def _analyzer() -> SentimentIntensityAnalyzer:
    return SentimentIntensityAnalyzer()
