"""The words round a "her" and what kind they are, by the lists of ``agreement.toml``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from plumbline.warehouse.text.toml_file import read

#: What one rule says: an answer, that nothing can tell, or nothing at all.
Verdict = Literal["his", "him", "unsure"] | None

#: A word with its inner hyphens, apostrophes and dots (Ph.D), or one mark.
TOKEN = re.compile(r"[^\W_]+(?:[-'’.&‐‑][^\W_]+)*|[^\w\s]|_")
_WORD = re.compile(r"[^\W_]")
OPENING = frozenset("\"'“‘«([`*_„‚‹")
_CONTRACTED = re.compile(r"['’](?:s|re|ll|d|ve|m)$")
_ADJECTIVE_ENDINGS = ("less", "ous", "able", "ible", "ish", "ful", "esque")
_QUANTITIES = frozenset(["many", "several", "few", "various", "numerous", "some", "lots", "plenty"])
_NUMBERS = frozenset(
    [
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "twenty",
        "thirty",
        "forty",
        "fifty",
        "sixty",
        "seventy",
        "eighty",
        "ninety",
        "hundred",
        "thousand",
        "million",
    ]
)
_NO_ADJECTIVES = frozenset(
    [
        "handful",
        "mouthful",
        "spoonful",
        "dish",
        "wish",
        "finish",
        "polish",
        "table",
        "fish",
        "cable",
        "vegetable",
    ]
)


@cache
def words(section: str, name: str) -> frozenset[str]:
    """One list of ``agreement.toml``.

    >>> "speechless" in words("adjectives", "pure")
    True
    """
    return frozenset(_content()[section][name].split())


@cache
def _content() -> Mapping[str, Mapping[str, str]]:
    return read(resources.files(__package__) / "agreement.toml")


@cache
def closed() -> frozenset[str]:
    return frozenset(word for text in _content()["closed"].values() for word in text.split())


@dataclass(frozen=True)
class Context:
    """Tokens before and after a "her", lowercased; ``""`` stands for the sentence's ends."""

    before: tuple[str, ...]
    after: tuple[str, ...]

    def back(self, place: int) -> str:
        """The token ``place`` before the pronoun, 0 for the nearest."""
        return self.before[-1 - place] if place < len(self.before) else ""

    def on(self, place: int) -> str:
        """The token ``place`` after the pronoun, 0 for the nearest."""
        return self.after[place] if place < len(self.after) else ""

    def past_adverbs(self) -> int:
        """The place of the first token behind that is not an adverb."""
        place = 0
        while is_adverb(self.on(place)):
            place += 1
        return place

    def noun_ahead(self) -> bool:
        """Whether adverbs and adjectives behind lead to a word that may be a noun."""
        place = self.past_adverbs()
        while self.on(place) and is_adjective(self.on(place)):
            place += 1
            joined = self.on(place) in {"and", ",", "but", "yet", "or"}
            if joined and (is_adjective(self.on(place + 1)) or is_adverb(self.on(place + 1))):
                place += 1
            while is_adverb(self.on(place)):
                place += 1
        return not ends_phrase(self.on(place))

    def gift_ahead(self) -> bool:
        """Whether what follows is a noun of ``gifts``, adjectives before it and none behind."""
        place = self.past_adverbs()
        while is_adjective(self.on(place)) or self.on(place) in _QUANTITIES:
            place += 1
        if self.on(place) not in words("nouns", "gifts"):
            return False
        return ends_phrase(self.on(place + 1)) or is_adverb(self.on(place + 1))

    def giver(self) -> str:
        """The word before the verb before the pronoun, adverbs aside."""
        place = 1
        while is_adverb(self.back(place)):
            place += 1
        return self.back(place)


def is_word(token: str) -> bool:
    """Whether a token is a word, not a mark or the sentence's end."""
    return bool(_WORD.match(token))


def is_adverb(word: str) -> bool:
    """Whether a word is an adverb that may also stand before an adjective ("her newly ...")."""
    manner = word.endswith("ly") and len(word) > 3 and word not in words("adjectives", "ly")
    return manner or word in words("ambiguous", "transparent")


def is_adjective(word: str) -> bool:
    """Whether a word is an adjective, a comparative or a participle in -ed, and no noun."""
    pure = words("adjectives", "pure")
    if word in pure:
        return True
    if len(word) > 4 and word.endswith(_ADJECTIVE_ENDINGS):
        return word not in _NO_ADJECTIVES
    if len(word) > 4 and word.endswith("ed"):
        return word not in {"breed", "creed", "greed", "speed", "need", "seed", "hundred", "weed"}
    return is_comparative(word)


def is_number(word: str) -> bool:
    """Whether a word is a number, in figures or from two on in letters.

    >>> is_number("2,000"), is_number("ten"), is_number("tenth")
    (True, True, False)
    """
    return word[:1].isdigit() or word in _NUMBERS


def is_comparative(word: str) -> bool:
    """Whether a word is the comparative of an adjective of the list.

    >>> is_comparative("stupider"), is_comparative("happier"), is_comparative("teacher")
    (True, True, False)
    """
    if not word.endswith("er"):
        return False
    stem = word[:-2]
    bases = {stem, stem + "e", stem[:-1] + "y" if stem.endswith("i") else stem, stem[:-1]}
    return bool(bases & words("adjectives", "pure"))


def ends_phrase(token: str) -> bool:
    """Whether nothing of hers can start here: a mark, an end, or a word of a closed class.

    >>> [ends_phrase(token) for token in ("", ",", "with", "the", "key", "own", "back")]
    [True, True, True, True, False, False, False]
    """
    return not is_word(token) or token in closed() or _CONTRACTED.sub("", token) in closed()
