"""A written sentence to a pronoun template, and so to the same sentence about the other gender.

Only pronouns are replaced: she, her, hers, herself and he, him, his, himself, as whole words, also
before a contraction (he's, she'd've). A woman stays a woman. ``she-wolf`` holds no pronoun. "her"
is his or him by the rules of ``agreement``; what they can't tell is reported as undecided. The
template language has no form for hers, nor for a his that stands alone ("a friend of his, Ann"):
such sentences are rejected with the reason, like those that mix both genders or write "s/he".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from plumbline.eval_workers.pairs.pronouns.agreement import (
    TOKEN,
    Masculine,
    decide_her,
    stands_alone,
)
from plumbline.eval_workers.pairs.pronouns.templates import PRONOUNS, Gender, template_problem

#: Marks that make one word of what they stand between: combining accents, joiners, soft hyphen.
_JOINERS = "\u0300-\u036f\u200b-\u200d\u2060\u00ad"
_HYPHENS = "-‐‑"
_FORMS = ("herself", "himself", "hers", "her", "his", "him", "she", "he")


def _either_case(word: str) -> str:
    return "".join(f"[{letter.upper()}{letter}]" for letter in word)


#: A pronoun as a word of its own; the case is spelled out since ``re.IGNORECASE`` takes ſhe too.
PRONOUN = re.compile(
    rf"(?<![\w{_JOINERS}])(?<!\w[{_HYPHENS}])"
    rf"(?:{'|'.join(map(_either_case, _FORMS))})"
    rf"(?![\w{_JOINERS}])(?![{_HYPHENS}]\w)"
)
_SLASHED = re.compile(
    r"\bs/he\b|\(s\)he\b|\b(?:she|he|hers?|him|his)(?:self)?(?:/\w+|\(\w+\))"
    r"|\b\w+/(?:she|he|hers?|him|his)(?:self)?\b"
)
_OWNED_TWICE = re.compile(r"\b(?:hers?|his|him)['’]s\b")
_GENDER: dict[str, Gender] = {
    "she": "f",
    "her": "f",
    "hers": "f",
    "herself": "f",
    "he": "m",
    "him": "m",
    "his": "m",
    "himself": "m",
}
_DIRECT = {
    "she": "{pronoun}",
    "he": "{pronoun}",
    "his": "{pronoun1}",
    "him": "{pronoun2}",
    "herself": "{pronoun2}self",
    "himself": "{pronoun2}self",
}


@dataclass(frozen=True)
class Place:
    """One pronoun of a sentence: its first character's offset, as written, and its placeholder.

    The placeholder is ``None`` while nobody has told whether "her" is his or him.
    """

    start: int
    written: str
    placeholder: str | None


@dataclass(frozen=True)
class Conversion:
    """What ``to_template`` made of a sentence: its pronouns, or the problem why it can't be used.

    ``gender`` is the one written, ``None`` with a problem; then ``places`` is empty.
    """

    sentence: str
    gender: Gender | None
    places: tuple[Place, ...]
    problem: str | None = None

    @property
    def undecided(self) -> tuple[int, ...]:
        """Offsets of each "her" that may be his or him."""
        return tuple(place.start for place in self.places if place.placeholder is None)

    @property
    def template(self) -> str | None:
        """The sentence with placeholders; ``None`` with a problem or while a "her" is undecided.

        >>> to_template("She lost her key.").template
        '{pronoun} lost {pronoun1} key.'
        """
        if self.problem or self.undecided:
            return None
        return self._rewritten([str(place.placeholder) for place in self.places])

    def decided(self, answers: Mapping[int, Masculine]) -> Conversion:
        """The same with answers for undecided offsets; other offsets of ``answers`` are ignored.

        >>> to_template("I saw her smile.").decided({6: "his"}).template
        'I saw {pronoun1} smile.'
        """
        return replace(self, places=tuple(self._answered(place, answers) for place in self.places))

    def converted(self) -> str | None:
        """The sentence about the other gender, capitals kept: SHE becomes HE, Her becomes His.

        ``None`` where ``template`` is.

        >>> to_template("'SHE hurt herself', she's told.").converted()
        "'HE hurt himself', he's told."
        """
        if self.problem or self.undecided or self.gender is None:
            return None
        pronouns = PRONOUNS["m" if self.gender == "f" else "f"]
        return self._rewritten(
            [like(pronouns[str(place.placeholder)], place.written) for place in self.places]
        )

    @staticmethod
    def _answered(place: Place, answers: Mapping[int, Masculine]) -> Place:
        answer = answers.get(place.start)
        if place.placeholder is not None or answer is None:
            return place
        return replace(place, placeholder=_DIRECT[answer])

    def _rewritten(self, new: Sequence[str]) -> str:
        parts = []
        end = 0
        for place, word in zip(self.places, new, strict=True):
            parts += [self.sentence[end : place.start], word]
            end = place.start + len(place.written)
        return "".join([*parts, self.sentence[end:]])


def like(word: str, written: str) -> str:
    """A lowercase word with the capitals of another: all, the first, or none.

    >>> like("he", "SHE"), like("he", "She"), like("he", "she")
    ('HE', 'He', 'he')
    """
    if written.isupper():
        return word.upper()
    return word.capitalize() if written[0].isupper() else word


def to_template(sentence: str) -> Conversion:
    """The pronouns of a sentence and their placeholders, or why there can be no template.

    Capitals within a sentence and all-capital pronouns stay in ``converted`` only: a template holds
    none, and ``fill`` capitalises at sentence starts alone.

    >>> to_template("He hurt himself.").template
    '{pronoun} hurt {pronoun2}self.'
    >>> to_template("She gave her a key; the lock was hers.").problem
    'holds "hers", which no placeholder stands for'
    >>> to_template("They saw her smile.").undecided
    (9,)
    """
    if problem := sentence_problem(sentence):
        return Conversion(sentence, None, (), problem)
    places = []
    for match in PRONOUN.finditer(sentence):
        placeholder, problem = _placeholder(sentence, match)
        if problem:
            return Conversion(sentence, None, (), problem)
        places.append(Place(match.start(), match.group(), placeholder))
    return Conversion(sentence, _GENDER[places[0].written.lower()], tuple(places))


def sentence_problem(sentence: str) -> str | None:
    """Why a sentence has no other gender's version, whatever its pronouns' grammar, or ``None``.

    >>> sentence_problem("A key was lost.")
    'holds no pronoun, expected she, her, herself or he, him, his, himself'
    >>> sentence_problem("She lost his key.")
    'holds pronouns of both genders: She, his'
    """
    lowered = sentence.lower()
    if found := _SLASHED.search(lowered):
        return f'holds "{found.group()}", which names more than one pronoun'
    if found := _OWNED_TWICE.search(lowered):
        return f'holds "{found.group()}", which is not a form of a pronoun'
    if "{" in sentence or "}" in sentence:
        return "holds braces, which mark placeholders"
    written = PRONOUN.findall(sentence)
    if not written:
        return "holds no pronoun, expected she, her, herself or he, him, his, himself"
    if odd := next((word for word in written if not _usual_case(word)), None):
        return f'holds "{odd}", whose capitals no other pronoun can take'
    if len({_GENDER[word.lower()] for word in written}) > 1:
        return f"holds pronouns of both genders: {', '.join(dict.fromkeys(written))}"
    return template_problem("{pronoun} " + sentence)


def _usual_case(word: str) -> bool:
    return word.isupper() or word[1:].islower()


def _placeholder(sentence: str, match: re.Match[str]) -> tuple[str | None, str | None]:
    word = match.group().lower()
    if word == "hers":
        return None, 'holds "hers", which no placeholder stands for'
    before, after = around(sentence, match.start(), match.end())
    if word == "his" and stands_alone(after):
        return None, 'holds a "his" that stands alone (hers), which no placeholder stands for'
    if word == "her":
        answer = decide_her(before, after)
        return _DIRECT[answer] if answer else None, None
    return _DIRECT[word], None


def around(sentence: str, start: int, end: int) -> tuple[list[str], list[str]]:
    """The tokens before and after a pronoun that stands there, for the rules of ``agreement``.

    >>> around("I saw her key.", 6, 9)
    (['I', 'saw'], ['key', '.'])
    """
    before = TOKEN.findall(sentence, 0, start)
    after = list(_following(sentence, end))
    if before and after and (before[-1], after[0]) == ("[", "]"):  # WinoBias marks pronouns so
        return before[:-1], after[1:]
    return before, after


def _following(sentence: str, start: int) -> Iterator[str]:
    for match in TOKEN.finditer(sentence, start):
        # a straight quote that touches the pronoun closes: her' opens nothing
        closes = match.start() == start and match.group() in "\"'"
        yield "”" if closes else match.group()
