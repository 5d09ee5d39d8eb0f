"""A text as words with their places and sentences, for the rules of the perturber."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

_PART = re.compile(
    r"[^\W_]+(?:[-‐‑][^\W_]+)*|['’](?:s|re|ll|d|ve|m|t)\b|\n|[^\w\s]|_", re.IGNORECASE
)
_MARKS = frozenset(".!?\n")
_QUOTES = frozenset("\"'“”‘’«»()[]*")


@dataclass(frozen=True)
class Words:
    """Words, marks, line breaks and contracted endings ('s) of a text, in order.

    Attributes:
        spans: first character of each and the one behind its last.
        sentence: number of each one's sentence, from 0.
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
        """Sentence -> its first character and the one behind its last."""
        found: dict[int, tuple[int, int]] = {}
        for number, (start, end) in zip(self.sentence, self.spans, strict=True):
            found[number] = (found.get(number, (start, end))[0], end)
        return found

    def at(self, i: int) -> str:
        """The lowercased part at a place, ``""`` before the first and behind the last."""
        return self.lower[i] if 0 <= i < len(self.parts) else ""

    def written(self, i: int) -> str:
        """The part at a place as written, ``""`` outside the text."""
        return self.parts[i] if 0 <= i < len(self.parts) else ""

    def starts_sentence(self, i: int) -> bool:
        """Whether only quotes and brackets stand before a place in its sentence."""
        i -= 1
        while i >= 0 and self.parts[i] in _QUOTES:
            i -= 1
        return i < 0 or self.parts[i] in _MARKS


def words_of(text: str, abbreviated: Collection[str] = ()) -> Words:
    """The parts of a text; a full stop behind a word of ``abbreviated`` ends no sentence.

    >>> found = words_of("Mr. Day's she-cat ran. It's 3.5 kg!", {"Mr"})
    >>> " ".join(found.parts), found.sentence[-1]
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
        if part in _MARKS and not _inner_stop(text, match.end(), parts, abbreviated):
            number += 1
    return Words(text, parts, spans, sentence)


def _inner_stop(text: str, end: int, parts: Sequence[str], abbreviated: Collection[str]) -> bool:
    """Whether a full stop stands inside a number, behind an abbreviation or an initial."""
    if parts[-1] != ".":
        return False
    before = parts[-2] if len(parts) > 1 else ""
    initial = len(before) == 1 and before.isupper() and before != "I"
    return before in abbreviated or initial or text[end : end + 1].isalnum()
