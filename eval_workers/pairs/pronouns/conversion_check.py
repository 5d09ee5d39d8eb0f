"""Checks that a sentence converted elsewhere differs from its original only in its pronouns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from plumbline.eval_workers.pairs.pronouns.conversion import PRONOUN, Conversion, like
from plumbline.eval_workers.pairs.pronouns.her_as_his_or_him import Masculine

Kind = Literal["text", "punctuation", "pronoun", "capitals", "count"]

#: Pronoun -> the pronouns of the other gender that may replace it.
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
#: A part of a text; True if the part is a pronoun.
_Part = tuple[str, bool]
_PARTS = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True)
class ConversionProblem:
    """A difference that a conversion must not make: its kind, and a line that describes it."""

    kind: Kind
    message: str


def check_conversion(original: str, converted: str) -> tuple[ConversionProblem, ...]:
    """Differences between the two sentences besides each pronoun's gender; empty if there are none.

    Each pronoun of the original must have become one of the other gender, with the same capitals.
    Kinds are ``text`` (a word changed, is new or missing), ``punctuation`` (marks, blanks or line
    breaks), ``pronoun`` (it stayed or became a wrong one, or the original mixes genders),
    ``capitals``, and ``count`` (no pronoun). Her may become his or him, his may become her or hers.

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
        problems.append(ConversionProblem("count", "the original holds no pronoun"))
    is_mixed = len({word.lower().startswith(("she", "her")) for word in pronouns}) > 1
    if is_mixed:
        words = ", ".join(dict.fromkeys(pronouns))
        problems.append(ConversionProblem("pronoun", f"the original mixes both genders: {words}"))
    # None replaces every pronoun, so that changed pronouns are equal here.
    left, right = ([None if p else text for text, p in parts] for parts in (before, after))
    matcher: SequenceMatcher[str | None] = SequenceMatcher(None, left, right, autojunk=False)
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        old_parts, new_parts = before[old_start:old_end], after[new_start:new_end]
        if tag != "equal":
            problems.append(_difference(old_parts, new_parts))
            continue
        for (old, is_pronoun), (new, _) in zip(old_parts, new_parts, strict=True):
            if is_pronoun and not is_mixed and (problem := _pronoun_problem(old, new)):
                problems.append(problem)
    return tuple(problems)


def answered(conversion: Conversion, converted: str) -> Conversion | tuple[ConversionProblem, ...]:
    """The conversion with each "her" decided as in ``converted``, or the problems of ``converted``.

    >>> from plumbline.eval_workers.pairs.pronouns.conversion import to_template
    >>> conversion = to_template("They saw her smile.")
    >>> answered(conversion, "They saw his smile.").template
    'They saw {pronoun1} smile.'
    """
    if problems := check_conversion(conversion.sentence, converted):
        return problems
    words = PRONOUN.findall(converted)
    answers: dict[int, Masculine] = {
        place.start: "his" if word.lower() == "his" else "him"
        for place, word in zip(conversion.places, words, strict=True)
    }
    return conversion.decided(answers)


def _parts(text: str) -> list[_Part]:
    """Pronouns, other words, marks and runs of blanks, in order; together they are the text."""
    parts: list[_Part] = []
    end = 0
    for match in PRONOUN.finditer(text):
        parts += [(part, False) for part in _PARTS.findall(text[end : match.start()])]
        parts.append((match.group(), True))
        end = match.end()
    return [*parts, *((part, False) for part in _PARTS.findall(text[end:]))]


def _difference(old: list[_Part], new: list[_Part]) -> ConversionProblem:
    was, is_now = ("".join(text for text, _ in side) for side in (old, new))
    kind: Kind = "text" if re.search(r"\w", was + is_now) else "punctuation"
    if not is_now:
        return ConversionProblem(kind, f"{_quoted(was)} is left out")
    if not was:
        return ConversionProblem(kind, f"{_quoted(is_now)} is new")
    return ConversionProblem(kind, f"{_quoted(was)} became {_quoted(is_now)}")


def _quoted(text: str) -> str:
    return f'"{text if text.isprintable() else text.encode("unicode_escape").decode()}"'


def _pronoun_problem(old: str, new: str) -> ConversionProblem | None:
    allowed = _BECOMES[old.lower()]
    expected = " or ".join(f'"{like(form, old)}"' for form in sorted(allowed))
    if new.lower() not in allowed:
        verb = "stayed" if new == old else "became"
        return ConversionProblem("pronoun", f'"{old}" {verb} "{new}", expected {expected}')
    if new != like(new.lower(), old):
        return ConversionProblem("capitals", f'"{old}" became "{new}", expected {expected}')
    return None
