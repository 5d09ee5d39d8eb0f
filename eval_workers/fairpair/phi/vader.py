"""Difference in sentiment, for English: Phi(a, b) = |compound(a) - compound(b)|.

``compound`` is VADER's score from -1 (negative) to 1 (positive), rounded to 4 digits by VADER.
An item (see ``Phi``) is the ``compound`` of a text, or the mean ``compound`` of a fold's samples.
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
    """Return VADER's compound score of each text; 0 if VADER knows none of the text's words.

    >>> items(["A good day.", "A chair.", ""])
    [0.4404, 0.0, 0.0]
    """
    return [float(_analyzer().polarity_scores(text)["compound"]) for text in texts]


def combine(items: Sequence[float]) -> float:
    """Return the mean score of a fold.

    >>> combine([0.5, -0.1])
    0.2
    """
    return fmean(items)


def distances(items: Sequence[float]) -> Floats:
    """Return a square array with |a - b| for every two scores.

    >>> distances([0.0, 0.5]).tolist()
    [[0.0, 0.5], [0.5, 0.0]]
    """
    values = np.asarray(items, np.float64)
    return np.abs(values[:, None] - values[None, :])


@cache
def _analyzer() -> SentimentIntensityAnalyzer:
    return SentimentIntensityAnalyzer()
