"""Checks of a written sentence, which give a verdict with its reason. Pure.

A sentence has a word if it holds the whole word, in any case. A hyphen is a word boundary, and so
is an apostrophe after the word (`the engineer's` has `engineer`, `o'clock` does not have `clock`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

#: Pronoun of a request -> all its forms.
FORMS: dict[str, tuple[str, ...]] = {
    "she": ("she", "her", "hers", "herself"),
    "he": ("he", "him", "his", "himself"),
}
#: Sentences are near-duplicates from this Jaccard similarity of their words on; all gendered
#: pronouns count as one word.
NEAR = 0.8

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_ENDS = re.compile(r"[.!?…][\"'”’»)\]]*$")
_FEWEST_WORDS = 3
_GENDERED = {form for forms in FORMS.values() for form in forms}

Fate = Literal["keep", "revise", "reject"]


@dataclass(frozen=True)
class SentenceCheck:
    """Fate of a sentence; the reason is empty if the sentence is kept."""

    fate: Fate
    reason: str = ""


def check(
    sentence: str, *, word: str, pronoun: str, max_words: int | None, others: Sequence[str] = ()
) -> SentenceCheck:
    """Check a sentence that was requested with ``word`` and ``pronoun`` (`she` or `he`).

    ``others`` are the kept sentences of the same seed word. In this order: a text that isn't a
    sentence is rejected; a sentence without the word or the pronoun is to be revised; a sentence of
    more than ``max_words`` (``None``: any length), with a pronoun of the other gender, or like one
    of ``others`` is rejected.

    >>> request = {"word": "clock", "pronoun": "she", "max_words": 8}
    >>> check("She wound the clock.", **request)
    SentenceCheck(fate='keep', reason='')
    >>> check("He wound the clock.", **request, others=["She wound the clock."])
    SentenceCheck(fate='revise', reason='lacks the pronoun')
    >>> check("His clock amused her.", **request)
    SentenceCheck(fate='reject', reason='holds a pronoun of the other gender')
    """
    if problem := malformed(sentence):
        return SentenceCheck("reject", problem)
    if not has_word(sentence, word):
        return SentenceCheck("revise", "lacks the word")
    words = set(_words(sentence))
    if not words & set(FORMS[pronoun]):
        return SentenceCheck("revise", "lacks the pronoun")
    if max_words is not None and n_words(sentence) > max_words:
        return SentenceCheck("reject", f"has more than {max_words} words")
    if words & (_GENDERED - set(FORMS[pronoun])):
        return SentenceCheck("reject", "holds a pronoun of the other gender")
    if problem := repeats(sentence, others):
        return SentenceCheck("reject", problem)
    return SentenceCheck("keep")


def malformed(sentence: str) -> str | None:
    """Reason why a text can't be a sentence of any request; ``None`` if it can.

    >>> malformed("and then she left"), malformed("She left")
    ('does not start like a sentence', 'does not end like a sentence')
    """
    if not sentence.isprintable() or "\ufffd" in sentence:
        return "holds characters that can't be printed"
    if "{" in sentence or "}" in sentence:
        return "holds a brace"
    letters = [c for c in sentence if c.isalnum()]
    if not letters or letters[0].islower():
        return "does not start like a sentence"
    if not _ENDS.search(sentence):
        return "does not end like a sentence"
    if n_words(sentence) < _FEWEST_WORDS:
        return f"has fewer than {_FEWEST_WORDS} words"
    return None


def n_words(sentence: str) -> int:
    """Number of words, which are separated by white space.

    >>> n_words(" A well-known  clock - hers. ")
    5
    """
    return len(sentence.split())


def has_word(sentence: str, word: str) -> bool:
    """True if the sentence has the whole word, ignoring case.

    >>> has_word("The Nurse's bag.", "nurse"), has_word("She was nursed.", "nurse")
    (True, False)
    """
    form = re.escape(_normal(word))
    return re.search(rf"(?<!\w)(?<!\w['’]){form}(?!\w)", _normal(sentence)) is not None


def repeats(sentence: str, others: Sequence[str]) -> str | None:
    """The problem if a sentence has (nearly) the words of another, pronouns aside, or ``None``.

    >>> repeats("He wound the clock!", ["She wound the clock."])
    'repeats another sentence'
    >>> repeats("She wound the old oak clock.", ["She wound the old oak wall clock."])
    'nearly repeats another sentence'
    >>> repeats("She wound the clock.", ["She sold the clock."]) is None
    True
    """
    key = _key(sentence)
    keys = [_key(other) for other in others]
    if key in keys:
        return "repeats another sentence"
    words = set(key)
    for other in map(set, keys):
        if len(words & other) >= NEAR * len(words | other):
            return "nearly repeats another sentence"
    return None


def _key(sentence: str) -> list[str]:
    return ["<pronoun>" if word in _GENDERED else word for word in _words(sentence)]


def _words(sentence: str) -> list[str]:
    """Words in lower case, cut also at apostrophes: `she'd` holds `she`."""
    return [part for w in _WORD.findall(_normal(sentence)) for part in re.split("['’]", w)]


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
