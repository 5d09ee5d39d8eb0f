"""Splits texts into words, and loads the words that the rule-based perturber exchanges."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import TypeAlias

from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.toml_file import Text, Words, toml_table

_PART = re.compile(
    r"[^\W_]+(?:[-‐‑][^\W_]+)*|['’](?:s|re|ll|d|ve|m|t)\b|\n|[^\w\s]|_", re.IGNORECASE
)
_MARKS = frozenset(".!?\n")
#: Words whose full stop does not end a sentence.
_ABBREVIATED = frozenset(["Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Jr", "Sr"])
_QUOTES = frozenset("\"'“”‘’«»()[]*")

_SHIPPED = "gender_en.toml"
_CLASSES = (
    *("copulas", "bare", "as", "between", "determiners", "adverbs", "stops", "joins", "ends"),
    *("owners", "neutral_titles", "kinds", "speech"),
)
_Pairs: TypeAlias = tuple[tuple[Text, Text], ...]


@dataclass(frozen=True)
class TextParts:
    """A text split into parts: words, punctuation, line breaks and contracted endings ('s).

    Each part has its start and end offset in ``spans``, and its sentence's number in ``sentence``.
    """

    text: str
    parts: Sequence[str]
    spans: Sequence[tuple[int, int]]
    sentence: Sequence[int]

    @cached_property
    def lower(self) -> Sequence[str]:
        return [part.lower() for part in self.parts]

    @cached_property
    def sentence_spans(self) -> dict[int, tuple[int, int]]:
        """Map each sentence's number to its start and end offset."""
        spans: dict[int, tuple[int, int]] = {}
        for number, (start, end) in zip(self.sentence, self.spans, strict=True):
            spans[number] = (spans.get(number, (start, end))[0], end)
        return spans

    def at(self, i: int) -> str:
        """Return part ``i`` in lowercase, or ``""`` if there is no such part."""
        return self.lower[i] if 0 <= i < len(self.parts) else ""

    def written(self, i: int) -> str:
        """Return part ``i`` with its capitals, or ``""`` if there is no such part."""
        return self.parts[i] if 0 <= i < len(self.parts) else ""

    def starts_sentence(self, i: int) -> bool:
        """Return True if part ``i`` starts a sentence, not counting quotes and brackets before it.

        Here, a line break and an abbreviation's full stop (Mr.) also end a sentence.
        """
        i -= 1
        while i >= 0 and self.parts[i] in _QUOTES:
            i -= 1
        return i < 0 or self.parts[i] in _MARKS


def words_of(text: str) -> TextParts:
    """Split a text into words, punctuation and the other parts that ``TextParts`` lists.

    >>> words = words_of("Mr. Day's she-cat ran. It's 3.5 kg!")
    >>> " ".join(words.parts), words.sentence[-1]
    ("Mr . Day 's she-cat ran . It 's 3 . 5 kg !", 1)
    """
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    sentence: list[int] = []
    number = 0
    for match in _PART.finditer(text):
        part = match.group()
        parts.append(part)
        spans.append(match.span())
        sentence.append(number)
        if part in _MARKS and not _inner_stop(text, match.end(), parts):
            number += 1
    return TextParts(text, parts, spans, sentence)


def _inner_stop(text: str, end: int, parts: Sequence[str]) -> bool:
    """Return True if the last part is a full stop inside a sentence, as in 3.5, Mr. or J."""
    if parts[-1] != ".":
        return False
    before = parts[-2] if len(parts) > 1 else ""
    initial = len(before) == 1 and before.isupper() and before != "I"
    return before in _ABBREVIATED or initial or text[end : end + 1].isalnum()


@toml_table
class Terms:
    """The words of each group, and the word classes that the rules need; see ``gender_en.toml``.

    ``generic`` has nouns that are also used for the other group, as in "She is a fireman". Such a
    use isn't changed. ``titles`` are capitalised and have no full stop. ``first_names`` show that
    the text mentions another person.
    """

    version: str = ""
    language: str = ""
    axis: str = ""
    groups: tuple[str, str] = ("", "")
    description: str = ""
    pronouns: bool = False
    nouns: _Pairs = ()
    generic: Words = frozenset()
    titles: _Pairs = ()
    first_names: Mapping[str, Words] = field(default_factory=dict)
    grammar: Mapping[str, Words] = field(default_factory=dict)

    @cached_property
    def noun_of(self) -> dict[str, dict[str, str]]:
        """For each group, map its nouns to their counterparts in the other group.

        >>> load().noun_of["m"]["dad"], load().noun_of["f"]["mum"]
        ('mom', 'dad')
        """
        return self._both_ways(self.nouns)

    @cached_property
    def title_of(self) -> dict[str, dict[str, str]]:
        """For each group, map its titles to their counterparts in the other group."""
        return self._both_ways(self.titles)

    def _both_ways(self, pairs: _Pairs) -> dict[str, dict[str, str]]:
        to_second = dict(reversed(pairs))  # if a word is in several pairs, use the first
        to_first = {second: first for first, second in reversed(pairs)}
        return dict(zip(self.groups, (to_second, to_first), strict=True))

    @cached_property
    def classes(self) -> dict[str, frozenset[str]]:
        return {name: self.grammar.get(name, frozenset()) for name in _CLASSES}


#: For axes without word lists: only names are exchanged.
NO_TERMS = Terms()


@cache
def load() -> Terms:
    """Load the English words of ``gender_en.toml``."""
    return toml_file.load(Terms, resources.files(__package__) / _SHIPPED, _SHIPPED)
