"""Read sentences, verdicts and choices from the replies of chat models.

Plumbline's prompts ask for JSON (see ``requests``), and the papers' prompts ask for prose. A server
may answer in prose even if a request asks for JSON. So sentences are read from JSON, lists and
lines. Small talk around the sentences is left out.
"""

from __future__ import annotations

import json
import re
from typing import Any

_THOUGHT = re.compile(r"<(think(?:ing)?)>.*?(?:</\1>|\Z)|\A.*?</think(?:ing)?>", re.S | re.I)
_INVISIBLE = re.compile("[\u200b\u200c\u200d\u2060\ufeff]")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.M)
_BULLET = re.compile(r"^\s*(?:[-*+•▪◦‣·●–—]\s+|[•▪◦‣●])")
_NUMBER = r"(?:\(\d{1,3}\)|\[\d{1,3}\]|\d{1,3}\s*[.):．])"
_LABEL = r"(?:sentence|example|option|version)\s*#?\d{0,3}\s*[:.)]"
_NUMBERED = re.compile(
    rf"^\s*[-*•]?\s*[*_]{{0,2}}(?:{_NUMBER}|{_LABEL})[*_]{{0,2}}(?:\s+|$|(?=[^\d\s]))", re.I
)
#: Blanks before a list item that doesn't start on a new line.
_NEXT_ITEM = re.compile(r"(?<=[.!?:])[ \t]+(?=\(?\d{1,3}[.)]\s)")
_ENDS = re.compile(r"[.!?…][\"'”’»)\]*_`]*,?$")
_POLITE = r"(?:sure|certainly|absolutely|of course|okay|ok|great)\b[!,.:]"
_ANNOUNCED = re.compile(
    rf"^(?:(?:{_POLITE}|yes[!,.:])\s*)?"
    r"(?:(?:here(?:['’]s| is| are)|below (?:is|are)|(?:my |the )?(?:revised|rewritten|corrected|"
    r"updated|new|changed)\s+(?:sentence|version|draft))[^:\n]{0,120}:|answer\s*:)\s*",
    re.I,
)
_REMARK = re.compile(
    rf"^(?:#{{1,6}}\s|{_POLITE}|feel free\b|i hope (?:this|these|that)\b|let me know\b|"
    r"(?:these|the) sentences\b|\(?notes?\b\s*[:)]|(?:do|would) you (?:want|like)\b|"
    r"explanation\s*:|if you(?:['’]d like| need| want)\b)",
    re.I,
)
_REFUSAL = re.compile(
    r"^(?:(?:i['’]?m|i am|my)?\s*(?:so |very |really )?(?:sorry|apolog)|i (?:can(?:no|['’])t|"
    r"could ?n['’]t|won['’]t|will not|must decline|do not|don['’]t) |i(?:['’]m| am) (?:not able|"
    r"unable|not comfortable)|as an? (?:ai|language model|assistant)\b|unfortunately,? i\b)",
    re.I,
)
# Search at most 400 characters for the closing emphasis mark, which may be missing.
_EMPHASIS = re.compile(
    r"(\*\*|__|\*|`)(?=\S)(.{1,400}?)(?<=\S)\1|(?<!\w)_(?=\S)(.{1,400}?)(?<=\S)_(?!\w)"
)
_WORD_COUNT = re.compile(r"(?<!\s)\s*[(\[](?:\d+\s+words?|word count[^)\]]*)[)\]]\.?$", re.I)
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’", "«": "»", "„": "“"}


def sentences(reply: str) -> list[str]:
    """Return the sentences of a reply in order, without numbers, markup or surrounding talk.

    The reply may be JSON, a numbered or bulleted list, or one sentence per line. If the model
    refuses, the result is empty.

    >>> sentences('{"sentences": ["She ran.", "He is here."]}')
    ['She ran.', 'He is here.']
    >>> sentences("Sure! Here are two:\\n\\n1. **She** ran.\\n2) 'He is\\n   here.'\\n\\nEnjoy!")
    ['She ran.', 'He is here.']
    >>> sentences("I'm sorry, but I can't help with that.")
    []
    """
    text = _INVISIBLE.sub("", "\n".join(_THOUGHT.sub("", reply).splitlines()))
    text = _FENCE.sub("", text).strip()
    items = _from_json(text) or _items(text)
    return [clean for clean in map(_without_markup, items) if any(c.isalnum() for c in clean)]


def _from_json(text: str) -> list[str]:
    """Return the strings of the JSON in a text. The list is empty if there is no JSON."""
    start = re.search(r"[\[{]", text)
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start.start() if start else 0)
    except (ValueError, RecursionError):
        return []
    return [_NUMBERED.sub("", string) for string in _strings(value)]


def _strings(value: Any) -> list[str]:
    """Return the strings in a JSON value. If an object has a `sentence`, ignore its other keys."""
    if isinstance(value, dict):
        nested = [item for item in value.values() if isinstance(item, (list, dict))]
        texts = [item for item in value.values() if isinstance(item, str)]
        value = value.get("sentence") or nested or texts
    if isinstance(value, list):
        return [string for item in value for string in _strings(item)]
    return [value] if isinstance(value, str) else []


def _items(text: str) -> list[str]:
    """Return the items of a list in the text. If there is no list, return the lines.

    Small talk around the items or lines is left out. Lines after a refusal are left out, too.
    """
    lines = [line.strip() for line in _NEXT_ITEM.sub("\n", text).split("\n")]
    for mark in (_NUMBERED, _BULLET):
        if any(mark.match(line) for line in lines):
            return _marked(lines, mark)
    items: list[str] = []
    for line in lines:
        bare = line.strip("*_ ")
        announced = _ANNOUNCED.match(bare)
        rest = bare[announced.end() :] if announced else line
        if _REFUSAL.match(rest):
            return items
        if rest and not rest.endswith(":") and not _REMARK.match(rest):
            items.append(rest)
    return items


def _marked(lines: list[str], mark: re.Pattern[str]) -> list[str]:
    """Return the items of a list. An item starts with ``mark`` and may go on in later lines."""
    items: list[str] = []
    open_item = False
    for line in lines:
        if match := mark.match(line):
            items.append(line[match.end() :])
            open_item = True
        elif not line:
            # A blank line ends an item, unless the item has no text yet.
            open_item = open_item and not items[-1].strip("*_ ")
        elif open_item and not _ENDS.search(items[-1]) and not _BULLET.match(line):
            items[-1] = f"{items[-1]} {line}".strip()
        else:
            open_item = False
    return items


def _without_markup(item: str) -> str:
    """Return an item as one line. Remove emphasis, enclosing quotes and notes like `(8 words)`."""
    text = " ".join(item.split())
    for _ in range(3):  # markup may contain quotes that contain markup
        text = _EMPHASIS.sub(lambda m: m.group(2) or m.group(3), text)
        text = _WORD_COUNT.sub("", _unquoted(text.strip("*_` ").rstrip(",")))
    return text


def _unquoted(text: str) -> str:
    """Remove the quotes around a text if they open at its start and close only at its end."""
    closing, inner = _QUOTES.get(text[:1]), text[1:-1]
    if text[1:][-1:] != closing or text[0] in inner:
        return text
    # A single quote may be an apostrophe. Drop it only if the quoted text ends a sentence.
    if closing in ("'", "’"):
        return inner.strip() if _ENDS.search(inner) else text
    return text if closing in inner else inner.strip()


_NEGATION = re.compile(r"\b(?:not|cannot|never|hardly|scarcely|less|least)\b|n['’]t\b", re.I)
_VERDICT = re.compile(r"\b(un)?likely\b", re.I)


def verdict(reply: str) -> bool | None:
    """Return True for `likely`, False for `unlikely`, and ``None`` if the reply isn't clear.

    The first clause with one of these words decides. Explanations may follow. A clause with both
    words, or with a negation, isn't clear.

    >>> verdict('{"verdict": "unlikely"}'), verdict("Likely.\\nNothing unlikely in it.")
    (False, True)
    >>> verdict("It is hard to say."), verdict("likely or unlikely"), verdict("Not very likely.")
    (None, None, None)
    """
    for clause in re.split(r"[.!?;\n]|\",", _THOUGHT.sub("", reply)):  # `",` ends a string in JSON
        if said := {prefix.lower() for prefix in _VERDICT.findall(clause)}:
            is_clear = len(said) == 1 and not _NEGATION.search(clause)
            return said == {""} if is_clear else None
    return None


#: A choice at the start of a reply: a number, alone or followed by words like `is more likely`.
_CHOICE = re.compile(
    r"(?:sentence\s+|answer:\W*)?([12])\b[*_`)]*"
    r"(?:[ \t]+(?:is|sounds) (?:the )?more (?:likely|natural)(?: one| sentence)?\b)?"
    r"(?![*_`)]*[ \t]*\w)",
    re.I,
)


def chosen(reply: str) -> int | None:
    """Return the number of the sentence that a reply chooses, 1 or 2; ``None`` if unclear.

    A clear reply begins with the number, perhaps after `Sentence` or `Answer:`, and contains no
    other number. If words follow directly after the number, they have to say that the sentence is
    more likely or more natural.

    >>> chosen("2"), chosen("**Sentence 1** - it reads well."), chosen("**Answer:** 2.")
    (2, 1, 2)
    >>> chosen("Sentence 1 is more likely."), chosen("2 sounds more natural, I think.")
    (1, 2)
    >>> chosen("1 or 2"), chosen("I would say 2"), chosen("1 reads worse"), chosen("")
    (None, None, None, None)
    """
    first = _CHOICE.match(_THOUGHT.sub("", reply).lstrip("*_`#>\"'( \n"))
    return int(first[1]) if first and {*re.findall(r"\d+", first.string)} == {first[1]} else None
