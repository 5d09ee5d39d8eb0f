"""Whether a converted sentence differs from its original by its pronouns alone.

For what somebody else converted: a language model's answers, a released file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from plumbline.eval_workers.pairs.pronouns.agreement import Masculine
from plumbline.eval_workers.pairs.pronouns.conversion import PRONOUN, Conversion, like

Kind = Literal["text", "punctuation", "pronoun", "capitals", "count"]

#: Written form -> the forms that it may become.
_BECOMES = {
    "she": {"he"},
    "her": {"his", "him"},
    "hers": {"his"},
    "herself": {"himself"},
    "he": {"she"},
    "him": {"her"},
    "his": {"her", "hers"},
    "himself": {"herself"},
}
_PARTS = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True)
class Problem:
    """One thing that differs and shouldn't: what kind it is, and a line that says it."""

    kind: Kind
    message: str


def check_conversion(original: str, converted: str) -> tuple[Problem, ...]:
    """What differs between the two besides each pronoun's gender; empty when nothing does.

    Each pronoun of the original must have become a form of the other gender, capitals kept.
    ``text``: another word differs, or is missing; ``punctuation``: marks, blanks or line breaks
    differ; ``pronoun``: one stayed, or became what it can't; ``capitals``; ``count``: there is no
    pronoun in the original. Which of his and him is right for a "her" isn't judged.

    >>> check_conversion("She lost her key.", "He lost his key.")
    ()
    >>> [p.message for p in check_conversion("She likes bier.", "He likes beer.")]
    ['"bier" became "beer"']
    >>> [p.message for p in check_conversion("She saw it herself.", "He saw it herself.")]
    ['"herself" stayed "herself", expected "himself"']
    """
    before, after = _parts(original), _parts(converted)
    pronouns = PRONOUN.findall(original)
    problems = []
    if not pronouns:
        problems.append(Problem("count", "the original holds no pronoun"))
    mixed = len({_gender(word) for word in pronouns}) > 1
    if mixed:
        named = ", ".join(dict.fromkeys(pronouns))
        problems.append(Problem("pronoun", f"the original mixes both genders: {named}"))
    for tag, a, b, c, d in _differences(before, after):
        if tag != "equal":
            problems.append(_difference(before[a:b], after[c:d]))
            continue
        for old, new in zip(before[a:b], after[c:d], strict=True):
            if old.is_pronoun and not mixed and (problem := _pronoun_problem(old.text, new.text)):
                problems.append(problem)
    return tuple(problems)


def answered(conversion: Conversion, converted: str) -> Conversion | tuple[Problem, ...]:
    """A conversion, each undecided "her" decided as a converted sentence has it, or its problems.

    What the rules decided stays as it is.

    >>> from plumbline.eval_workers.pairs.pronouns.conversion import to_template
    >>> conversion = to_template("They saw her smile.")
    >>> answered(conversion, "They saw his smile.").template
    'They saw {pronoun1} smile.'
    """
    if problems := check_conversion(conversion.sentence, converted):
        return problems
    found = PRONOUN.findall(converted)
    answers: dict[int, Masculine] = {}
    for place, word in zip(conversion.places, found, strict=True):
        answers[place.start] = "his" if word.lower() == "his" else "him"
    return conversion.decided(answers)


@dataclass(frozen=True)
class _Part:
    """A pronoun, another word, a mark or a run of blanks."""

    text: str
    is_pronoun: bool = False


def _parts(text: str) -> list[_Part]:
    """The parts of a text in order; joined they are the text."""
    parts: list[_Part] = []
    end = 0
    for match in PRONOUN.finditer(text):
        parts += map(_Part, _PARTS.findall(text[end : match.start()]))
        parts.append(_Part(match.group(), is_pronoun=True))
        end = match.end()
    return [*parts, *map(_Part, _PARTS.findall(text[end:]))]


def _gender(pronoun: str) -> bool:
    return pronoun.lower().startswith(("she", "her"))


def _differences(
    before: list[_Part], after: list[_Part]
) -> list[tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]]:
    left, right = (
        [None if part.is_pronoun else part.text for part in parts] for parts in (before, after)
    )
    matcher: SequenceMatcher[str | None] = SequenceMatcher(None, left, right, autojunk=False)
    return list(matcher.get_opcodes())


def _difference(old: list[_Part], new: list[_Part]) -> Problem:
    was, is_now = ("".join(part.text for part in side) for side in (old, new))
    kind: Kind = "text" if re.search(r"\w", was + is_now) else "punctuation"
    if not is_now:
        return Problem(kind, f"{_quoted(was)} is left out")
    if not was:
        return Problem(kind, f"{_quoted(is_now)} is new")
    return Problem(kind, f"{_quoted(was)} became {_quoted(is_now)}")


def _quoted(text: str) -> str:
    return (
        '"' + text.encode("unicode_escape").decode() + '"'
        if not text.isprintable()
        else f'"{text}"'
    )


def _pronoun_problem(old: str, new: str) -> Problem | None:
    allowed = _BECOMES[old.lower()]
    wanted = " or ".join(f'"{like(form, old)}"' for form in sorted(allowed))
    if new.lower() not in allowed:
        verb = "stayed" if new == old else "became"
        return Problem("pronoun", f'"{old}" {verb} "{new}", expected {wanted}')
    if new != like(new.lower(), old):
        return Problem("capitals", f'"{old}" became "{new}", expected {wanted}')
    return None
