"""Exchange words of a text: she for he, or words whose exchange should not matter. Pure.

Pronouns follow the rules of ``pronouns``. A "her" that these can't decide stays and is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from plumbline.eval_workers.models.ngram import SENTENCE_END
from plumbline.eval_workers.pairs.pronouns.conversion import around, like
from plumbline.eval_workers.pairs.pronouns.her_as_his_or_him import decide_her, stands_alone
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import UsageProblem

#: Pronouns exchanged in any context; the counterparts of *her* and *his* depend on it.
_PRONOUNS = {
    "she": "he",
    "he": "she",
    "him": "her",
    "hers": "his",
    "herself": "himself",
    "himself": "herself",
}
#: Titles before a name. *Mr* has two counterparts; the more frequent one is taken.
_TITLES = {"mr": "mrs", "mrs": "mr", "ms": "mr", "miss": "mr"}
#: Title case before a capital: "Miss Bates", not "I miss Bath".
_BEFORE_NAME = re.compile(r"\.?\s+[^\W\d_a-z]")
_WORD = re.compile(r"(?<![\w‑‐-])[^\W\d_]+(?![\w‑‐-])")
#: Characters of context on each side by which *her* and *his* are decided.
_CONTEXT = 200


@dataclass(frozen=True)
class WordChange:
    """One exchanged word: its start in the original, the original word and the new one."""

    start: int
    written: str
    new: str


@dataclass(frozen=True)
class Exchanged:
    """A text with its changes, in order; ``undecided``: starts of each *her* without a decision."""

    text: str
    changes: tuple[WordChange, ...]
    undecided: tuple[int, ...]


@dataclass(frozen=True)
class Exchange:
    """Words to exchange.

    Attributes:
        words: lowercase word to lowercase word; capitals are kept.
        pronouns: exchange pronouns of she and he too, by their grammar, and titles before names.
        near: exchange only in sentences that hold one of these lowercase words; empty: everywhere.
    """

    words: Mapping[str, str]
    pronouns: bool = False
    near: frozenset[str] = frozenset()

    @cached_property
    def _near(self) -> re.Pattern[str]:
        names = "|".join(map(re.escape, sorted(self.near)))
        return re.compile(rf"(?<!\w)(?:{names})(?!\w)", re.IGNORECASE)

    def apply(self, text: str) -> Exchanged:
        """Exchange the words of a text.

        >>> done = gender_exchange().apply("Mr. Hill, a king, saw her and her aunt: 'SHE is his!'")
        >>> done.text
        "Mrs. Hill, a queen, saw him and his uncle: 'HE is hers!'"
        >>> len(done.changes), gender_exchange().apply("I saw her smile.").undecided
        (7, (6,))
        >>> neutral_exchange("rain", "snow").apply("Rain, he said, not rainfall.").text
        'Snow, he said, not rainfall.'
        """
        changes: list[WordChange] = []
        undecided: list[int] = []
        for start, end in self._spans(text):
            for match in _WORD.finditer(text, start, end):
                new = self._new(text, match)
                if new is None:
                    undecided.append(match.start())
                elif new:
                    changes.append(
                        WordChange(match.start(), match.group(), like(new, match.group()))
                    )
        parts, end = [], 0
        for change in changes:
            parts += [text[end : change.start], change.new]
            end = change.start + len(change.written)
        return Exchanged("".join([*parts, text[end:]]), tuple(changes), tuple(undecided))

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Parts of the text in which words are exchanged."""
        if not self.near:
            yield 0, len(text)
            return
        ends = [match.end() for match in SENTENCE_END.finditer(text)]
        for start, end in pairwise([0, *ends, len(text)]):
            if self._near.search(text, start, end):
                yield start, end

    def _new(self, text: str, match: re.Match[str]) -> str | None:
        """Counterpart of a word; empty if it stays, ``None`` if it can't be decided."""
        word = match.group().lower()
        if self.pronouns:
            if word in _PRONOUNS:
                return _PRONOUNS[word]
            if word in _TITLES:
                is_title = match.group()[0].isupper() and _BEFORE_NAME.match(text, match.end())
                return _TITLES[word] if is_title else ""
            if word in ("her", "his"):
                return _of_case(text, match)
        return self.words.get(word, "")


def _of_case(text: str, match: re.Match[str]) -> str | None:
    """Counterpart of *her* or *his* (each has two) by the context; ``None`` if undecided."""
    first = max(match.start() - _CONTEXT, 0)
    near = text[first : match.end() + _CONTEXT]
    before, after = around(near, match.start() - first, match.end() - first)
    if match.group().lower() == "her":
        return decide_her(before, after)
    return "hers" if stands_alone(after) else "her"


def gender_exchange(near: frozenset[str] = frozenset()) -> Exchange:
    """Exchange the words of our lists ``gendered`` and ``names``, pronouns and titles.

    >>> gender_exchange(frozenset({"nurse"})).apply("He slept. The nurse saw he slept.").text
    'He slept. The nurse saw she slept.'
    """
    words: dict[str, str] = {}
    for name in ("gendered", "names"):
        for pair in wordlists.load(name).pairs:
            words |= {pair.a: pair.b, pair.b: pair.a}
    return Exchange(words, pronouns=True, near=near)


def neutral_exchange(first: str, second: str, near: frozenset[str] = frozenset()) -> Exchange:
    """Exchange two words and nothing else: the placebo.

    Raises ``UsageProblem`` unless they are two different words of letters.
    """
    a, b = first.lower(), second.lower()
    if a == b or not (_WORD.fullmatch(first) and _WORD.fullmatch(second)):
        problem = f"{first!r} and {second!r} are not two different words"
        raise UsageProblem("placebo", problem, "give words of letters, such as rain,snow")
    return Exchange({a: b, b: a}, near=near)
