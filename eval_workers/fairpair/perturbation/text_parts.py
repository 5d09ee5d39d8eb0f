"""Splits a text into words with positions and sentences, for the rule-based perturber."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

_PART = re.compile(
    r"[^\W_]+(?:[-‐‑][^\W_]+)*|['’](?:s|re|ll|d|ve|m|t)\b|\n|[^\w\s]|_", re.IGNORECASE
)
_MARKS = frozenset(".!?\n")
#: Words whose full stop does not end a sentence.
_ABBREVIATED = frozenset(["Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Jr", "Sr"])
_QUOTES = frozenset("\"'“”‘’«»()[]*")


@dataclass(frozen=True)
class TextParts:
    """The words, marks, line breaks and contracted endings ('s) of a text, in order.

    ``spans`` has each part's start and end offset, ``sentence`` the number of its sentence, from 0.
    """

    text: str
    parts: Sequence[str]
    spans: Sequence[tuple[int, int]]
    sentence: Sequence[int]

    @cached_property
    def lower(self) -> Sequence[str]:
        """The parts in lowercase."""
        return [part.lower() for part in self.parts]

    @cached_property
    def sentence_spans(self) -> dict[int, tuple[int, int]]:
        """The start and end offset of each sentence, by its number."""
        spans: dict[int, tuple[int, int]] = {}
        for number, (start, end) in zip(self.sentence, self.spans, strict=True):
            spans[number] = (spans.get(number, (start, end))[0], end)
        return spans

    def at(self, i: int) -> str:
        """Return the part at a position in lowercase; ``""`` outside the text."""
        return self.lower[i] if 0 <= i < len(self.parts) else ""

    def written(self, i: int) -> str:
        """Return the part at a position as written; ``""`` outside the text."""
        return self.parts[i] if 0 <= i < len(self.parts) else ""

    def starts_sentence(self, i: int) -> bool:
        """Return True if at most quotes or brackets are between a position and a sentence end.

        The text's start, a line break, and an abbreviation's full stop (Mr.) count as ends too.
        """
        i -= 1
        while i >= 0 and self.parts[i] in _QUOTES:
            i -= 1
        return i < 0 or self.parts[i] in _MARKS


def words_of(text: str) -> TextParts:
    """Split a text into its parts.

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
    """Return True if a full stop is inside a number, or after an abbreviation or an initial."""
    if parts[-1] != ".":
        return False
    before = parts[-2] if len(parts) > 1 else ""
    initial = len(before) == 1 and before.isupper() and before != "I"
    return before in _ABBREVIATED or initial or text[end : end + 1].isalnum()
