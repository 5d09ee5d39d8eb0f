"""Fills templates with the pronouns of a group, such as she, he or they, and makes verbs agree.

The placeholders are those of UnStereoEval (Belem et al., ICLR 2024): ``{pronoun}`` he/she,
``{pronoun1}`` his/her, ``{pronoun2}`` him/her and ``{pronoun2}self`` himself/herself.

Templates are written for *she* and *he*, so their verbs are singular. If a pronoun takes a plural
verb (*they*), the first verb after it is changed. A sentence is refused if another verb may have to
change. The word classes are in ``forms.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Literal

from plumbline.eval_workers.pairs.pronouns.her_as_his_or_him import TOKEN, stands_alone
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.text.placeholders import PLACEHOLDER
from plumbline.warehouse.text.toml_file import Text, Words, load, toml_table

Gender = Literal["f", "m"]

_PLACEHOLDERS = ("{pronoun}", "{pronoun1}", "{pronoun2}", "{pronoun2}self")
#: Placeholder -> pronoun, female and male.
PRONOUNS: dict[Gender, dict[str, str]] = {
    "f": dict(zip(_PLACEHOLDERS, ("she", "her", "her", "herself"), strict=True)),
    "m": dict(zip(_PLACEHOLDERS, ("he", "his", "him", "himself"), strict=True)),
}

#: Pronoun -> its gender, also of *hers*, which has no placeholder.
GENDERS: dict[str, Gender] = {
    pronoun: gender for gender, pronouns in PRONOUNS.items() for pronoun in pronouns.values()
}
GENDERS["hers"] = "f"

_FIX = "write {pronoun} for he or she, {pronoun1} for his or her, {pronoun2} for him or her"
_OPENING = r"[\"'“‘«(\[]*"
# Closing quotes may follow a full stop. But `?"` and `!"` don't end a sentence, since a speech tag
# usually follows: "Why?" she asked.
_SENTENCE_END = r"(?:\.[\"'”’»)\]]*|[!?]+[)\]]*)\s+"
_AT_SENTENCE_START = re.compile(rf"(?:^\s*|\n\s*|{_SENTENCE_END}){_OPENING}\Z")
#: A placeholder, a word or a punctuation mark of a template.
_PIECE = re.compile(rf"{PLACEHOLDER.pattern}|{TOKEN.pattern}")
_WORD = re.compile(r"[^\W_]")
_SUBJECT = "{pronoun}"


@toml_table
class Forms:
    """One group's pronouns.

    ``alone`` is the form that needs no noun after it, like *hers*. ``plural`` is true for pronouns
    that take plural verbs.
    """

    nominative: Text
    determiner: Text
    accusative: Text
    reflexive: Text
    alone: Text
    plural: bool = False


def template_problem(template: str) -> str | None:
    """Return why a template can't be filled. Return ``None`` if it can.

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
    """Fill a template's placeholders with female (``f``) or male (``m``) pronouns.

    A pronoun is capitalised if it starts the text, a line or a sentence; opening quotes and
    brackets may come before it. Every full stop ends a sentence, even the one in an abbreviation.
    Raises ``BadInput`` with the reason that ``template_problem`` gives.

    >>> fill("{pronoun} hurt {pronoun2}self. '{pronoun1} arm!', {pronoun} said.", "f")
    "She hurt herself. 'Her arm!', she said."
    >>> fill("The nurse met {pronoun1} friend.", "m")
    'The nurse met his friend.'
    """
    if problem := template_problem(template):
        raise BadInput(f"template {template!r}", problem.removeprefix("the template "), _FIX)
    pronouns = PRONOUNS[gender]
    return PLACEHOLDER.sub(
        lambda match: _capital_at(template, match.start(), pronouns[match.group()]), template
    )


def _capital_at(template: str, place: int, word: str) -> str:
    """Return the word, capitalised if this place in a template is the start of a sentence.

    >>> _capital_at("'{pronoun} won.", 1, "she"), _capital_at("Then {pronoun} won.", 5, "she")
    ('She', 'she')
    """
    starts = _AT_SENTENCE_START.search(template, 0, place)
    return word[:1].upper() + word[1:] if starts else word


def forms(group: str) -> Forms:
    """Return the pronouns of a group. Raises ``UsageProblem`` for an unknown group.

    >>> forms("xe").reflexive, forms("they").plural
    ('xemself', True)
    """
    by_group = _file().forms
    if group not in by_group:
        fix = f"there are {', '.join(by_group)}"
        raise UsageProblem(f"group {group!r}", "has no pronouns", fix)
    return by_group[group]


def fill_for(template: str, group: str) -> str:
    """Fill a template with the pronouns of a group.

    Raises ``UsageProblem`` for an unknown group. Raises ``ValueError`` with the reason if the words
    don't show which form a verb must have, or if there is a ``template_problem``.

    >>> fill_for("{pronoun} says {pronoun} was late and lost {pronoun1} key.", "they")
    'They say they were late and lost their key.'
    >>> fill_for("Does {pronoun} like {pronoun2}self?", "xe")
    'Does xe like xemself?'
    >>> try:
    ...     fill_for("The cook said {pronoun}'s finished.", "they")
    ... except ValueError as reason:
    ...     print(reason)
    which verb agrees in "said she ' s" stays undecided
    """
    if problem := template_problem(template):
        raise ValueError(problem)
    pronouns = forms(group)
    pieces = list(_PIECE.finditer(template))
    words = [piece.group() for piece in pieces]
    changed: dict[int, str] = {}
    for k, word in enumerate(words):
        if pronouns.plural and word == _SUBJECT:
            changed |= _agreeing(words, k)
    text, end = "", 0
    for k, piece in enumerate(pieces):
        word = changed.get(k, piece.group())
        if PLACEHOLDER.fullmatch(piece.group()):
            word = _capital_at(template, piece.start(), _form(pronouns, words, k))
        text += template[end : piece.start()] + word
        end = piece.end()
    return text + template[end:]


def _form(pronouns: Forms, words: Sequence[str], k: int) -> str:
    placeholder = words[k]
    if placeholder == "{pronoun1}" and stands_alone(words[k + 1 :]):
        return pronouns.alone
    return {
        _SUBJECT: pronouns.nominative,
        "{pronoun1}": pronouns.determiner,
        "{pronoun2}": pronouns.accusative,
        "{pronoun2}self": pronouns.reflexive,
    }[placeholder]


def _lower_at(words: Sequence[str], k: int) -> str:
    return words[k].lower() if 0 <= k < len(words) else ""


def _agreeing(words: Sequence[str], k: int) -> dict[int, str]:
    """Return {index: plural form} of the verb with the subject at ``k``, or {} for no change.

    Only the first verb after the subject is changed. Raises ``ValueError`` if an auxiliary comes
    before the subject, if "is" or "has" is contracted, or if a later verb may have to change, too.
    """
    following, place = _lower_at(words, k + 1), _next_verb(words, k + 1)
    is_contracted = following in ("'", "’")
    if is_contracted and _lower_at(words, k + 2) != "s":
        return {}  # 'd and 'll are the same after she and they
    is_inverted = _lower_at(words, k - 1) in _file().verbs.plural_of
    if not is_inverted and following == "and":
        return {}  # a subject joined by "and" is plural already
    is_relative = following in ("or", "who", "that", "which")
    verb = _lower_at(words, place)
    is_apart = not _WORD.match(verb) and any(map(_inflects, words[place:]))
    if is_contracted or is_inverted or is_relative or is_apart or _has_later_verb(words, place):
        near = " ".join("she" if w == _SUBJECT else w for w in words[max(k - 1, 0) : k + 3])
        raise ValueError(f'which verb agrees in "{near}" stays undecided')
    return {place: _plural(words[place])} if _inflects(verb) else {}


def _next_verb(words: Sequence[str], place: int) -> int:
    """Skip adverbs and reflexive pronouns from ``place`` on; return the index of the next word."""
    while word := _lower_at(words, place):
        is_adverb = word.endswith("ly") and len(word) > 4
        is_adverb = is_adverb and word not in ("reply", "apply", "supply", "rely")
        if not (is_adverb or word == "{pronoun2}self" or word in _file().verbs.between):
            break
        place += 1
    return place


def _inflects(word: str) -> bool:
    """Return True if a word right after a singular subject changes when the subject is plural."""
    low = word.lower()
    if low in _file().verbs.plural_of:
        return True
    return bool(re.search("[^s]s$", low)) and len(low) > 2 and low not in _file().verbs.no_verb


def _plural(verb: str) -> str:
    """Return the plural form (as after *they*) of a verb in the third person singular.

    >>> [_plural(v) for v in ("is", "tries", "goes", "watches", "uses", "Was", "hasn't", "lies")]
    ['are', 'try', 'go', 'watch', 'use', 'Were', "haven't", 'lie']
    """
    low = verb.lower().replace("’", "'")
    irregular = {**_file().verbs.plural_of, **_file().verbs.base_of}
    if low in irregular:
        plural = irregular[low]
    elif low.endswith("ies") and len(low) > 4:
        plural = f"{low[:-3]}y"
    elif low.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        plural = low[:-2]
    else:
        plural = low[:-1]
    return plural.capitalize() if verb[0].isupper() else plural


def _has_later_verb(words: Sequence[str], first: int) -> bool:
    """Return True if a later word of the clause may be a second verb of the same subject."""
    for place in range(first + 1, len(words)):
        word = words[place].lower()
        if word in (".", "!", "?", ";", _SUBJECT):
            return False
        is_joint = word == "," or word in _file().verbs.conjunctions
        if is_joint and _inflects(_lower_at(words, _next_verb(words, place + 1))):
            return True
    return False


@toml_table
class _Verbs:
    plural_of: Mapping[str, str]
    base_of: Mapping[str, str]
    between: Words
    no_verb: Words
    conjunctions: Words


@toml_table
class _FormsFile:
    about: Text
    source: Text
    forms: Mapping[str, Forms]
    verbs: _Verbs


@cache
def _file() -> _FormsFile:
    return load(_FormsFile, resources.files(__package__) / "forms.toml", "forms.toml")
