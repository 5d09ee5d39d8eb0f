"""Converts a sentence to a pronoun template.

Only she, her, herself, he, him, his and himself are replaced, also if contracted (he's). Nouns such
as ``woman`` or ``she-wolf`` stay. The rules of ``her_as_his_or_him`` decide whether a "her" would
be "his" or "him" for a man. A sentence is rejected with a reason if it mixes genders, says "s/he",
or has a pronoun without a placeholder: "hers", or "his" in "a friend of his".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from plumbline.eval_workers.pairs.pronouns.her_as_his_or_him import TOKEN, decide_her, stands_alone
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import (
    GENDERS,
    PRONOUNS,
    Gender,
    template_problem,
)

#: Marks that belong to the word around them: combining accents, joiners, soft hyphen.
_JOINERS = "\u0300-\u036f\u200b-\u200d\u2060\u00ad"
_HYPHENS = "-‐‑"


def _either_case(word: str) -> str:
    return "".join(f"[{letter.upper()}{letter}]" for letter in word)


#: A pronoun as a whole word. Both cases are spelled out: ``re.IGNORECASE`` would match ſhe, too.
PRONOUN = re.compile(
    rf"(?<![\w{_JOINERS}])(?<!\w[{_HYPHENS}])"
    rf"(?:{'|'.join(map(_either_case, GENDERS))})"
    rf"(?![\w{_JOINERS}])(?![{_HYPHENS}]\w)"
)
_SLASHED = re.compile(
    r"\bs/he\b|\(s\)he\b|\b(?:she|he|hers?|him|his)(?:self)?(?:/\w+|\(\w+\))"
    r"|\b\w+/(?:she|he|hers?|him|his)(?:self)?\b"
)
_OWNED_TWICE = re.compile(r"\b(?:hers?|his|him)['’]s\b")
#: Pronoun -> its placeholder, if it has exactly one (her has two, hers has none).
_DIRECT = {
    pronoun: placeholder
    for pronouns in PRONOUNS.values()
    for placeholder, pronoun in pronouns.items()
    if pronoun != "her"
}
#: Pronoun -> its masculine forms.
_MASCULINE = {"she": ("he",), "her": ("his", "him"), "herself": ("himself",)}


@dataclass(frozen=True)
class PronounPlace:
    """One pronoun of a sentence: its offset, the word as written, and its placeholder.

    The placeholder is ``None`` if it isn't known whether a "her" means "his" or "him".
    """

    start: int
    written: str
    placeholder: str | None


@dataclass(frozen=True)
class Conversion:
    """The pronouns of a sentence (``places``) and their ``gender``, or the ``problem`` with it.

    If the sentence has a problem, ``gender`` is ``None`` and ``places`` is empty.
    """

    sentence: str
    gender: Gender | None
    places: tuple[PronounPlace, ...]
    problem: str | None = None

    @property
    def undecided(self) -> tuple[int, ...]:
        """The offset of each "her" that could mean either "his" or "him"."""
        return tuple(place.start for place in self.places if place.placeholder is None)

    @property
    def template(self) -> str | None:
        """The sentence with placeholders; ``None`` if there is a problem or an undecided "her".

        >>> to_template("She lost her key.").template
        '{pronoun} lost {pronoun1} key.'
        """
        if self.problem or self.undecided:
            return None
        first, *texts = self._between()
        filled = zip(self.places, texts, strict=True)
        return first + "".join(f"{place.placeholder}{text}" for place, text in filled)

    def decided_by(self, converted: str) -> Conversion | None:
        """Decide each undecided "her" by looking at ``converted``, the same sentence about a man.

        Returns ``None`` if the sentences differ in more than the gender of the pronouns.

        >>> found = to_template("They saw her smile.")
        >>> found.decided_by("They saw his smile.").template, found.decided_by("They saw it.")
        ('They saw {pronoun1} smile.', None)
        """
        if self.gender != "f":
            return None
        first, *texts = map(re.escape, self._between())
        allowed = (
            "|".join(like(word, place.written) for word in _MASCULINE[place.written.lower()])
            for place in self.places
        )
        pattern = first + "".join(f"({a}){text}" for a, text in zip(allowed, texts, strict=True))
        if not (match := re.fullmatch(pattern, converted)):
            return None
        places = (
            replace(place, placeholder=_DIRECT["his" if word.lower() == "his" else "him"])
            if place.placeholder is None
            else place
            for place, word in zip(self.places, match.groups(), strict=True)
        )
        return replace(self, places=tuple(places))

    def _between(self) -> list[str]:
        ends = [0, *(place.start + len(place.written) for place in self.places)]
        starts = [*(place.start for place in self.places), len(self.sentence)]
        return [self.sentence[end:start] for end, start in zip(ends, starts, strict=True)]


def like(word: str, written: str) -> str:
    """Give a lowercase word the capitals of ``written``: all letters, only the first, or none.

    >>> like("he", "SHE"), like("he", "She"), like("he", "she")
    ('HE', 'He', 'he')
    """
    if written.isupper():
        return word.upper()
    return word.capitalize() if written[0].isupper() else word


def to_template(sentence: str) -> Conversion:
    """Find the placeholder of each pronoun in a sentence, or the problem with the sentence.

    A template doesn't keep the capitals of pronouns: ``fill`` capitalises only at sentence starts.

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
        places.append(PronounPlace(match.start(), match.group(), placeholder))
    return Conversion(sentence, GENDERS[places[0].written.lower()], tuple(places))


def sentence_problem(sentence: str) -> str | None:
    """Return why a sentence can't be converted, or ``None``; "hers" and "his" aren't checked.

    >>> sentence_problem("A key was lost.")
    'holds no pronoun, expected she, her, herself or he, him, his, himself'
    >>> sentence_problem("She lost his key.")
    'holds pronouns of both genders: She, his'
    """
    lowered = sentence.lower()
    if match := _SLASHED.search(lowered):
        return f'holds "{match.group()}", which names more than one pronoun'
    if match := _OWNED_TWICE.search(lowered):
        return f'holds "{match.group()}", which is not a form of a pronoun'
    if "{" in sentence or "}" in sentence:
        return "holds braces, which mark placeholders"
    written = PRONOUN.findall(sentence)
    if not written:
        return "holds no pronoun, expected she, her, herself or he, him, his, himself"
    if odd := next((w for w in written if not (w.isupper() or w[1:].islower())), None):
        return f'holds "{odd}", whose capitals no other pronoun can take'
    if len({GENDERS[word.lower()] for word in written}) > 1:
        return f"holds pronouns of both genders: {', '.join(dict.fromkeys(written))}"
    return template_problem("{pronoun} " + sentence)


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
    """Return the tokens before and after a pronoun, for the rules of ``her_as_his_or_him``.

    >>> around("I saw her key.", 6, 9)
    (['I', 'saw'], ['key', '.'])
    """
    before = TOKEN.findall(sentence, 0, start)
    after = [match.group() for match in TOKEN.finditer(sentence, end)]
    if after and after[0] in "\"'" and sentence.startswith(after[0], end):
        after[0] = "”"  # a straight quote right after the pronoun is a closing quote
    if before and after and (before[-1], after[0]) == ("[", "]"):  # WinoBias brackets pronouns
        return before[:-1], after[1:]
    return before, after
