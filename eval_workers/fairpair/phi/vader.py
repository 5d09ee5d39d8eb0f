"""Difference of sentiment: Phi(a, b) = |compound(a) - compound(b)| of VADER (English only).

``compound`` lies in [-1, 1] and is rounded to 4 digits by VADER itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace

from vaderSentiment.vaderSentiment import (
    BOOSTER_DICT,
    NEGATE,
    SentimentIntensityAnalyzer,
    SentiText,
)

from plumbline.eval_workers.fairpair.numbers import combine, distances, means

__all__ = ["DESCRIPTION", "LANGUAGES", "combine", "distances", "items", "means"]

DESCRIPTION = "absolute difference of the VADER compound sentiment"
LANGUAGES = ("en",)

#: A word's valence depends on at most this many words before and after it.
_BEFORE, _AFTER = 3, 2
#: Negation changes a word's valence only after one of these, or after a word with `n't`.
_TURNING = frozenset(NEGATE) | {"so", "this"}


def items(texts: Sequence[str]) -> list[float]:
    """The compound sentiment of each text; 0 without a word that VADER knows.

    >>> items(["A good day.", "A chair.", ""])
    [0.4404, 0.0, 0.0]
    """
    compound = _analyzer().compound
    return [compound(text) for text in texts]


class _Analyzer(SentimentIntensityAnalyzer):
    """VADER's rules, run only on words of its lexicon and the words around each.

    This is faster, with the same scores: VADER lowercases the whole text once per rule and word.
    """

    def compound(self, text: str) -> float:
        if not self.emojis.keys().isdisjoint(text):
            return float(self.polarity_scores(text)["compound"])
        text = text.strip()
        whole = SentiText(text)
        words = whole.words_and_emoticons
        lowered = [word.lower() for word in words]
        sentiments: list[float] = [0] * len(words)
        for i, word in enumerate(lowered):
            kind_of = word == "kind" and lowered[i + 1 : i + 2] == ["of"]
            if word not in self.lexicon or word in BOOSTER_DICT or kind_of:
                continue
            start = max(0, i - _BEFORE)
            around = SimpleNamespace(  # the attributes of ``SentiText`` that its rules read
                words_and_emoticons=words[start : i + _AFTER + 1], is_cap_diff=whole.is_cap_diff
            )
            sentiments[i] = self.sentiment_valence(0, around, words[i], i - start, [])[0]
        if "but" in lowered:
            sentiments = self._but_check(words, sentiments)
        return float(self.score_valence(sentiments, text)["compound"])

    @staticmethod
    def _negation_check(valence: float, words: list[str], start_i: int, i: int) -> float:
        before = [word.lower() for word in words[max(0, i - _BEFORE) : i]]
        if any(word in _TURNING or "n't" in word for word in before):
            return float(SentimentIntensityAnalyzer._negation_check(valence, words, start_i, i))
        return valence


@cache
def _analyzer() -> _Analyzer:
    return _Analyzer()
