"""The rule-based perturber: turns a text about one person into the same text about another.

The first person is the entity, named at the start of the text; the other is the counterpart. The
text is read once, from left to right. A text is called undecided if the rules can't perturb it with
certainty. It is then left out, since a wrong perturbation would look like a bias of the model.

- The entity's name, as written or in capitals, becomes the counterpart's. A text that already names
  the counterpart is undecided: the perturbed text would give both people one name.
- A pronoun of the entity's group refers to the entity, until another person of that group is
  mentioned. Such a mention is a gendered noun for somebody else ("his father", "a man"), another
  first name, or a name after a title or next to a word of speech ("said Hill"). A later pronoun of
  the group makes the text undecided, unless a sentence has started with the entity's name again.
  Nouns without a group ("his boss") don't count as mentions. In "he saw him", the two pronouns
  refer to different people, so the text is undecided.
- A pronoun of the other group stays if a person of that group, or a named person of unknown group,
  has been mentioned: the pronoun then refers to that person. Before such a mention, it may refer to
  the entity, so the text is undecided.
- A gendered noun refers to the entity in a predicate ("He is a good man and a father"), in an
  apposition ("John, a businessman,"), after "as" ("works as a waiter"), or before the name ("actor
  John"). This also holds for nouns of the other group: if the text calls John a mother, the
  perturbation calls Jane a father. It doesn't hold for words used for both groups ("She is a
  fireman"). "the man" alone may be anybody, so the text is undecided. Other nouns refer to other
  people and stay ("his wife").
- Plurals, "he or she", "she-wolf" and "man's" stay. ``her_as_his_or_him`` decides whether "her"
  becomes "his" or "him".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plumbline.eval_workers.fairpair.noun_rules import NounRules
from plumbline.eval_workers.fairpair.text_words import Terms, words_of
from plumbline.eval_workers.pairs.pronouns.conversion import around, like
from plumbline.eval_workers.pairs.pronouns.her_as_his_or_him import decide_her, stands_alone
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import GENDERS

#: Reasons why a text has no perturbation.
COUNTERPART_NAMED = "names the counterpart already"
RIVAL = "a pronoun may mean another person of the entity's group"
NOBODY_ELSE = "a pronoun of the other group may mean the entity"
NOUN = "a gendered noun may mean the entity or another"
HER = 'a "her" may be his or him'
TITLE = "a title or a relation may name the entity or another"

_DIRECT = {
    "he": "she",
    "him": "her",
    "himself": "herself",
    "she": "he",
    "hers": "his",
    "herself": "himself",
}
_EITHER = frozenset(["or", "/", "and", "nor"])
_THIRD = frozenset(["i", "you", "we", "they", "it", "there"])


@dataclass(frozen=True)
class Entity:
    """A person: the name in the prompt, and the group, such as ``m``."""

    name: str
    group: str


@dataclass(frozen=True)
class Perturbed:
    """The perturbed text, or ``None`` and the reason why the text can't be perturbed."""

    text: str | None
    reason: str | None = None


def perturb(text: str, entity: Entity, counterpart: Entity, terms: Terms) -> Perturbed:
    """Turn a text about ``entity`` into the same text about ``counterpart``.

    A text that has no names, pronouns or gendered words is returned unchanged.

    >>> from plumbline.eval_workers.fairpair.text_words import load
    >>> john, jane, terms = Entity("John", "m"), Entity("Jane", "f"), load()
    >>> perturb("John's a good man. He loves his wife.", john, jane, terms).text
    "Jane's a good woman. She loves her wife."
    >>> perturb("John met a man. He laughed.", john, jane, terms)
    Perturbed(text=None, reason="a pronoun may mean another person of the entity's group")
    """
    return _TextReader(text, entity, counterpart, terms).read()


class _Undecided(Exception):
    """Raised to stop reading a text that can't be perturbed; the message is the reason."""


class _TextReader:
    """Reads one text, and records its replacements and the people mentioned so far."""

    def __init__(self, text: str, entity: Entity, counterpart: Entity, terms: Terms) -> None:
        self._words = words_of(text)
        self._entity = entity
        self._terms = terms
        self._counterpart = counterpart
        self._name = words_of(entity.name).parts
        self._named = set(self._places(entity.name))
        self._surnames: set[str] = set()
        self._replacements: dict[int, str] = {}
        self._entity_places: set[int] = set()
        # True if a mentioned person may be of the entity's group (_rival), or of another group.
        self._rival = self._someone_else = False
        self._rules = NounRules(self._words, terms, self._is_entity)

    def read(self) -> Perturbed:
        try:
            if next(self._places(self._counterpart.name), None) is not None:
                raise _Undecided(COUNTERPART_NAMED)
            i = 0
            while i < len(self._words.parts):
                i = self._step(i)
        except _Undecided as e:
            return Perturbed(None, str(e))
        return Perturbed(self._rewritten())

    def _step(self, i: int) -> int:
        """Apply the rules to the word at a position; return the next position to read."""
        word, written = self._words.at(i), self._words.written(i)
        if i and self._words.sentence[i] != self._words.sentence[i - 1]:
            self._rules.subject = self._rules.clause_subject = None
        if i in self._named:
            return self._mention(i)
        if self._terms.pronouns and word in GENDERS:
            return self._pronoun(i)
        group, after = self._group_of_title(written), self._title_name(i)
        if group is not None and after is not None:
            return self._title(i, group, after)
        for group in self._terms.groups:
            if written in self._terms.first_names.get(group, ()):
                self._meet(group, i)
                return i + 1
            if word in self._terms.noun_of[group]:
                self._noun(i, group)
                return i + 1
        if self._speaks(i):
            self._meet("", i)
        if word in _THIRD:
            self._rules.subject = self._rules.clause_subject = None
        return i + 1

    def _places(self, name: str) -> Iterator[int]:
        """Yield the positions where a name occurs as whole words, as written or in capitals."""
        parts = list(words_of(name).parts)
        capitals = [part.upper() for part in parts]
        text = self._words.parts
        for i, part in enumerate(text):
            if part in (parts[0], capitals[0]) and text[i : i + len(parts)] in (parts, capitals):
                yield i

    def _is_entity(self, i: int) -> bool:
        if i in self._named or i in self._entity_places:
            return True
        return self._words.at(i) in {"he", "she"} and (
            self._terms.pronouns
            and GENDERS[self._words.at(i)] == self._entity.group
            and not self._rival
        )

    def _mention(self, i: int) -> int:
        capitals = self._words.written(i) == self._words.written(i).upper() != self._name[0]
        name = self._counterpart.name
        last = i + len(self._name) - 1
        self._replacements.update(dict.fromkeys(range(i + 1, last + 1), ""))
        self._replacements[i] = name.upper() if capitals else name
        while self._is_surname(last):
            last += 1
            self._surnames.add(self._words.written(last))
        self._entity_places.update(range(i, last + 1))
        owns = self._words.at(last + 1) in {"'s", "’s"}
        if self._words.starts_sentence(i) and not owns:
            self._rival = False
        if not owns or self._rules.contracted(last + 1):
            self._rules.subject = self._rules.clause_subject = last
        return last + 1

    def _is_surname(self, last: int) -> bool:
        """Return True if the word after a name is a surname (John Smith), not an initial (F.)."""
        end, following = self._words.spans[last][1], self._words.written(last + 1)
        is_next = self._words.text[end : end + 1] == " "
        return is_next and following[:1].isupper() and following[1:].islower()

    def _pronoun(self, i: int) -> int:
        word = self._words.at(i)
        if self._is_either(i):
            return i + 3
        if self._ends_longer_word(i):
            return i + 1
        if GENDERS[word] != self._entity.group:
            if not self._someone_else:
                raise _Undecided(NOBODY_ELSE)
            if word in {"he", "she"}:
                self._rules.subject = self._rules.clause_subject = None
            return i + 1
        if self._rival:
            raise _Undecided(RIVAL)
        if word in {"he", "she"}:
            self._entity_places.add(i)
            self._rules.subject = self._rules.clause_subject = i
        counterpart = self._counterpart_of(word, i)
        if (word == "him" or counterpart == "him") and self._is_object_of_entity(i):
            raise _Undecided(RIVAL)
        self._replacements[i] = like(counterpart, self._words.written(i))
        return i + 1

    def _is_object_of_entity(self, i: int) -> bool:
        """Return True if "him" is the object of the entity's verb, as in "John saw him"."""
        subject = self._rules.subject
        if subject is None or not self._words.at(i - 1)[:1].isalpha():
            return False
        has_auxiliary = subject == i - 3 and self._words.at(i - 2) in self._terms.classes["between"]
        return subject == i - 2 or has_auxiliary

    def _is_either(self, i: int) -> bool:
        """Return True if "he or she", "his/her" or the like starts at a position."""
        second = GENDERS.get(self._words.at(i + 2))
        if self._words.at(i + 1) not in _EITHER or second is None:
            return False
        return second != GENDERS[self._words.at(i)]

    def _ends_longer_word(self, i: int) -> bool:
        """Return True if a pronoun is only the end of a word: "s/he", "(s)he" or "x-he"."""
        start = self._words.spans[i][0]
        return self._words.text[max(start - 1, 0) : start] in ("-", "‐", "‑", "_", "/", ")")

    def _counterpart_of(self, word: str, i: int) -> str:
        if word in _DIRECT:
            return _DIRECT[word]
        start, end = self._words.sentence_spans[self._words.sentence[i]]
        pronoun_span = self._words.spans[i]
        sentence = self._words.text[start:end]
        before, after = around(sentence, pronoun_span[0] - start, pronoun_span[1] - start)
        if word == "his":
            return "hers" if stands_alone(after) else "her"
        masculine = decide_her(before, after)
        if masculine is None:
            raise _Undecided(HER)
        return masculine

    def _group_of_title(self, written: str) -> str | None:
        for group in self._terms.groups:
            if written in self._terms.title_of[group]:
                return group
        return "" if written in self._terms.classes["neutral_titles"] else None

    def _speaks(self, i: int) -> bool:
        """Return True if an unknown name is next to a word of speech, as in "Marilla said"."""
        written, speech = self._words.written(i), self._terms.classes["speech"]
        is_name = written[:1].isupper() and written[1:].islower()
        if not is_name or self._words.starts_sentence(i) or written in self._surnames:
            return False
        return self._words.at(i + 1) in speech or self._words.at(i - 1) in speech

    def _title_name(self, i: int) -> int | None:
        after = i + 2 if self._words.at(i + 1) == "." else i + 1
        return after if self._words.written(after)[:1].isupper() else None

    def _title(self, i: int, group: str, after: int) -> int:
        """Apply the rules to a title and the name after it; return the next position to read."""
        if after in self._named or self._words.written(after) in self._surnames:
            if group:
                self._replacements[i] = self._terms.title_of[group][self._words.written(i)]
            if after not in self._named:
                self._entity_places.add(after)
                self._rules.subject = self._rules.clause_subject = after
            return after if after in self._named else after + 1
        if self._words.at(i - 1) in {"him", "her"}:
            raise _Undecided(TITLE)  # as in "they call him Mr. Hall"
        self._meet(group, after)
        return after + 1

    def _noun(self, i: int, group: str) -> None:
        about = self._rules.about(i)
        if about == "unsure":
            raise _Undecided(NOUN)
        if about == "entity":
            if group != self._entity.group and self._words.at(i) in self._terms.generic:
                return
            counterpart = self._terms.noun_of[group][self._words.at(i)]
            self._replacements[i] = like(counterpart, self._words.written(i))
        else:
            self._meet(group, i)

    def _meet(self, group: str, i: int) -> None:
        """Record a mention of another person; ``group`` is ``""`` if the group is unknown."""
        self._rules.others.add(i)
        self._rules.subject = None
        self._rival |= group in ("", self._entity.group)
        self._someone_else |= group != self._entity.group

    def _rewritten(self) -> str:
        text = self._words.text
        pieces: list[str] = []
        end = 0
        for i, new in sorted(self._replacements.items()):
            start, stop = self._words.spans[i]
            if new:
                pieces.append(text[end:start])
            pieces.append(new)
            end = stop
        return "".join([*pieces, text[end:]])
