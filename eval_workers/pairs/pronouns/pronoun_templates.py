"""Fills pronoun templates with female or male pronouns. Pure.

The placeholders are those of UnStereoEval (Belem et al., ICLR 2024): ``{pronoun}`` he/she,
``{pronoun1}`` his/her, ``{pronoun2}`` him/her and ``{pronoun2}self`` himself/herself.
"""

from __future__ import annotations

import re
from typing import Literal

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.text.placeholders import PLACEHOLDER

Gender = Literal["f", "m"]

_PLACEHOLDERS = ("{pronoun}", "{pronoun1}", "{pronoun2}", "{pronoun2}self")
#: Placeholder -> pronoun, female and male.
PRONOUNS: dict[Gender, dict[str, str]] = {
    "f": dict(zip(_PLACEHOLDERS, ("she", "her", "her", "herself"), strict=True)),
    "m": dict(zip(_PLACEHOLDERS, ("he", "his", "him", "himself"), strict=True)),
}

_FIX = "write {pronoun} for he or she, {pronoun1} for his or her, {pronoun2} for him or her"
_OPENING = r"[\"'“‘«(\[]*"
# A full stop may be followed by closing quotes; after `?"` and `!"` a speech tag ("Why?" she
# asked) is the usual continuation, so only closing brackets may follow these.
_SENTENCE_END = r"(?:\.[\"'”’»)\]]*|[!?]+[)\]]*)\s+"
_AT_SENTENCE_START = re.compile(rf"(?:^\s*|\n\s*|{_SENTENCE_END}){_OPENING}\Z")


def template_problem(template: str) -> str | None:
    """Reason why a template can't be filled; ``None`` if it can.

    >>> template_problem("The nurse lost {pronoun1} key.") is None
    True
    >>> template_problem("The nurse lost a key.")
    'the template holds no placeholder, expected one of {pronoun}, {pronoun1}, {pronoun2}'
    """
    if not template.strip():
        return "the template is empty"
    if not template.isprintable() and re.search(r"[\x00\ud800-\udfff]", template):
        return "the template holds a NUL or bytes that are not UTF-8, or half a surrogate pair"
    if not PLACEHOLDER.search(template):
        expected = "{pronoun}, {pronoun1}, {pronoun2}"
        return f"the template holds no placeholder, expected one of {expected}"
    if left := re.search(r"\{[^{}]*\}?|\}", PLACEHOLDER.sub("", template)):
        return f"the template holds {left.group()!r}, which is not a placeholder"
    return None


def fill(template: str, gender: Gender) -> str:
    """The template with its placeholders filled with female (``f``) or male (``m``) pronouns.

    A pronoun is capitalised at a sentence start: at the start of the text or of a line, and after
    a full stop, question or exclamation mark; opening quotes and brackets may come between. An
    abbreviation's full stop counts as the end of a sentence. Only the placeholders change. Raises
    ``BadInput`` with the reason of ``template_problem``.

    >>> fill("{pronoun} hurt {pronoun2}self. '{pronoun1} arm!', {pronoun} said.", "f")
    "She hurt herself. 'Her arm!', she said."
    >>> fill("The nurse met {pronoun1} friend.", "m")
    'The nurse met his friend.'
    """
    if problem := template_problem(template):
        raise BadInput(f"template {template!r}", problem.removeprefix("the template "), _FIX)
    pronouns = PRONOUNS[gender]
    return PLACEHOLDER.sub(
        lambda match: capital_at(template, match.start(), pronouns[match.group()]), template
    )


def capital_at(template: str, place: int, word: str) -> str:
    """The word, with a capital if this place of a template is the start of a sentence.

    >>> capital_at("'{pronoun} won.", 1, "she"), capital_at("Then {pronoun} won.", 5, "she")
    ('She', 'she')
    """
    starts = _AT_SENTENCE_START.search(template, 0, place)
    return word[:1].upper() + word[1:] if starts else word
