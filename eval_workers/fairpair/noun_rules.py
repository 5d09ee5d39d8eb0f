"""Rules that decide whether a gendered noun refers to the main person of a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from plumbline.eval_workers.fairpair.text_words import Terms, TextParts

#: Who a noun refers to; ``unsure`` if the rules can't decide.
About = Literal["entity", "other", "unsure"]

_LONGEST_PHRASE = 6
#: Words that begin a description after a noun: "the man in the shop", "the man who came".
_QUALIFIERS = frozenset(["who", "whose", "that", "with", "in", "at", "from", "of", "on"])
_ANAPHORIC = frozenset(["the", "this", "that"])


class NounRules:
    """Decides which person each gendered noun of a text refers to.

    The entity is the text's main person. ``subject`` is the last position where the entity was the
    subject of a clause. If the subject was a name, this is the position of the name's last word. A
    new sentence or a mention of another person resets ``subject`` to ``None``. ``clause_subject``
    has the same value as ``subject``, unless another person was mentioned by a name or noun: only
    ``subject`` is reset then. ``others`` has the positions of names and nouns for other people.
    """

    def __init__(self, words: TextParts, terms: Terms, is_entity: Callable[[int], bool]) -> None:
        self._words = words
        self._is_first = words.starts_sentence
        self._classes = terms.classes
        self._is_entity = is_entity
        self.others: set[int] = set()
        self.subject: int | None = None
        self.clause_subject: int | None = None

    def about(self, i: int) -> About:
        """Decide whether the noun at position ``i`` refers to the entity or another person."""
        words = self._words
        if words.at(i + 1) in {"'s", "’s"} and not self.contracted(i + 1):
            return "other"
        before, has_determiner = self._phrase_start(i)
        head = words.at(before)
        if self._is_copula(before):
            if self._is_first(before) and self._leads_to_entity(i):
                return "entity"  # as in "Being a father, he ..."
            return self._predicate(before)
        if head in self._classes["as"] and has_determiner:
            return self._as(before, i)
        if self._precedes_name(i):
            return self._of_name(i)
        if before + 1 == i and not head[:1].isalnum() and not words.at(i + 1)[:1].isalnum():
            return "unsure"  # a form of address: "Sir, please"
        if has_determiner and self._is_first(before + 1) and self._leads_to_entity(i):
            return "entity"
        if head == "," and has_determiner and self._is_entity(before - 1):
            return "entity"
        if head in self._classes["joins"] and (
            words.at(i + 1) in {"", "\n"} or self._in(i + 1, "ends")
        ):
            return self._joined(before)
        owned = before + 1 < i and self._in(i - 1, "owners")
        anaphoric = words.at(before + 1) in _ANAPHORIC and not owned
        return "unsure" if anaphoric and words.at(i + 1) not in _QUALIFIERS else "other"

    def _in(self, i: int, name: str) -> bool:
        return self._words.at(i) in self._classes[name]

    def contracted(self, i: int) -> bool:
        """Return True if the "'s" at position ``i`` is short for "is" or "has"."""
        return self._in(i + 1, "determiners") or self._in(i + 1, "adverbs")

    def _precedes_name(self, i: int) -> bool:
        """Return True if the entity's name follows the noun, as in "actor John"."""
        after = i + 2 if self._words.at(i + 1) == "," else i + 1
        return self._is_entity(after) and self._words.at(after)[:1].isalpha()

    def _of_name(self, i: int) -> About:
        start = self._phrase_start(i)[0] + 1
        is_aside = self._words.at(i + 1) == "," and not self._is_first(start)
        if is_aside and not self._in(start, "owners"):
            return "unsure"
        is_own = self._words.at(start) in {"his", "her"}  # as in "his brother John"
        return "unsure" if is_own else "entity"

    def _phrase_start(self, i: int) -> tuple[int, bool]:
        """Return the position before the noun's phrase, and whether the phrase has a determiner."""
        j = i - 1
        while i - j <= _LONGEST_PHRASE and self._is_modifier(j):
            j -= 1
        if self._words.at(j) == "of" and self._in(j - 1, "kinds"):
            return self._phrase_start(j - 1)  # as in "the kind of man"
        owned = self._words.at(j) in {"'s", "’s"} and not self._is_entity(j - 1)
        if owned or (self._words.at(j) in {"'", "’"} and self._words.at(j - 1).endswith("s")):
            j -= 2  # in "Mary's friend", the owner counts as a determiner
        has_determiner = self._in(j, "determiners")
        if has_determiner:
            j -= 1
        while self._in(j, "adverbs"):
            j -= 1
        return j, has_determiner or owned

    def _is_modifier(self, i: int) -> bool:
        word = self._words.at(i)
        if not word[:1].isalnum():
            return word == "-"
        if self._in(i, "stops") or self._in(i, "copulas") or self._in(i, "determiners"):
            return False
        return not self._in(i, "as") and not self._is_entity(i) and word not in {"and", "or"}

    def _is_copula(self, i: int) -> bool:
        if not self._in(i, "copulas"):
            return False
        if self._words.at(i) not in {"'s", "’s"} or self._words.at(i - 1) in {"he", "she", "who"}:
            return True
        return self.contracted(i)

    def _predicate(self, copula: int) -> About:
        i = copula - 1
        if self.subject is not None and (
            self._in(copula, "bare") or self._reaches(self.subject, copula)
        ):
            return "entity"
        while self._in(i, "between") and self._words.at(i) not in {",", "who"}:
            i -= 1
        if self._words.at(i) == "who":
            i -= 2 if self._words.at(i - 1) == "," else 1
        if self._in(i, "joins"):
            return "entity" if self.clause_subject is not None else "unsure"
        return "other" if self._has_subject(i) else "unsure"

    def _reaches(self, subject: int, copula: int) -> bool:
        return all(
            self._in(i, "between") or self._in(i, "adverbs") or self._words.at(i).isdigit()
            for i in range(subject + 1, copula)
        )

    def _has_subject(self, i: int) -> bool:
        """Return True if a pronoun or noun phrase for another person ends at ``i``."""
        if i in self.others:
            return True
        if self._words.at(i) in {"i", "you", "we", "they", "it", "he", "she", "there", "this"}:
            return not self._is_entity(i)
        for back in range(4):
            if self._in(i - back, "determiners") or self._in(i - back, "owners"):
                return True
            if not self._is_modifier(i - back):
                return False
        return False

    def _as(self, place: int, noun: int) -> About:
        if self._words.at(place) == "like":
            return "other"
        if self._is_first(place):
            return "entity" if self._leads_to_entity(noun) else "unsure"
        if self.subject is not None:
            return "entity"
        first = place
        while first and self._words.sentence[first - 1] == self._words.sentence[place]:
            first -= 1
        return "other" if any(self._has_subject(k) for k in range(first, place)) else "unsure"

    def _leads_to_entity(self, i: int) -> bool:
        """Return True if the entity comes after the next comma, as in "A good man, John ..."."""
        for k in range(i + 1, i + 1 + _LONGEST_PHRASE):
            if self._words.at(k) in {",", ".", "!", "?", "\n", ""}:
                return self._words.at(k) == "," and self._is_entity(k + 1)
        return False

    def _joined(self, i: int) -> About:
        """Decide who a noun after "and" refers to, as in "He is a cook and a father"."""
        while self._in(i, "joins"):
            i -= 1
        before, has_determiner = self._phrase_start(i + 1)
        if self._in(before, "joins") and before > 0:
            return self._joined(before)
        if self._is_copula(before):
            return self._predicate(before)
        if self._in(before, "as") and has_determiner:
            return self._as(before, i)
        return "other"
