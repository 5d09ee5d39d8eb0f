"""Reads sentences in prose: lists, tables and lines, and the talk of chat models around them."""

from __future__ import annotations

import re

#: Markdown's quotes and backslashes.
_MARKDOWN = re.compile(r"^[ \t]*>[ \t]?|\\(?=[.()\[\]*_#`>-])", re.M)
_BULLET = re.compile(r"^\s*(?:[-*+•▪◦‣·●–—]\s+|[•▪◦‣●])")
_NUMBER = r"(?:\(\d{1,3}\)|\[\d{1,3}\]|#?\d{1,3}\s*[.):．]|#\d{1,3}\b|[①-⑳]|[a-h]\))"
_LABEL = r"(?:sentence|example|option|version)\s*#?\d{0,3}\s*[:.)]"
_NUMBERED = re.compile(
    rf"^\s*[-*•]?\s*[*_]{{0,2}}(?:{_NUMBER}|{_LABEL})[*_]{{0,2}}(?:\s+|$|(?=[^\d\s]))", re.I
)
#: Blanks before an item of a list that follows another, or an announcement, on the same line.
_NEXT_ITEM = re.compile(r"(?<=[.!?:])[ \t]+(?=\(?\d{1,3}[.)]\s)")
_ENDS = re.compile(r"[.!?…][\"'”’»)\]*_`]*,?$")
_ANNOUNCED = re.compile(
    r"^(?:(?:sure|certainly|absolutely|of course|okay|ok|great|yes)\b[!,.:]*\s*)?"
    r"(?:(?:here(?:['’]s| is| are)|below (?:is|are)|(?:my |the )?(?:revised|rewritten|corrected|"
    r"updated|new|changed)\s+(?:sentence|version|draft))[^:\n]{0,120}:|answer\s*:)\s*",
    re.I,
)
_REMARK = re.compile(
    r"^(?:#{1,6}\s|(?:sure|certainly|absolutely|of course|okay|ok|great)\b[!,.:]|feel free\b|"
    r"i hope (?:this|these|that)\b|let me know\b|(?:these|the) sentences\b|\(?notes?\b\s*[:)]|"
    r"(?:do|would) you (?:want|like)\b|explanation\s*:|if you(?:['’]d like| need| want)\b)",
    re.I,
)
_REFUSAL = re.compile(
    r"^(?:(?:i['’]?m|i am|my)?\s*(?:so |very |really )?(?:sorry|apolog)|i (?:can(?:no|['’])t|"
    r"could ?n['’]t|won['’]t|will not|must decline|do not|don['’]t) |i(?:['’]m| am) (?:not able|"
    r"unable|not comfortable)|as an? (?:ai|language model|assistant)\b|unfortunately,? i\b)",
    re.I,
)
# At most 400 characters: the search from each stray mark would else run to the reply's end.
_EMPHASIS = re.compile(
    r"(\*\*|__|\*|`)(?=\S)(.{1,400}?)(?<=\S)\1|(?<!\w)_(?=\S)(.{1,400}?)(?<=\S)_(?!\w)"
)
_WORD_COUNT = re.compile(r"(?<!\s)\s*[(\[](?:\d+\s+words?|word count[^)\]]*)[)\]]\.?$", re.I)
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’", "«": "»", "„": "“"}


def without_number(item: str) -> str:
    """An item of a list without its number, letter or label.

    >>> without_number("1. She ran."), without_number("3 of them ran.")
    ('She ran.', '3 of them ran.')
    """
    return _NUMBERED.sub("", item)


def items_of(text: str) -> list[str]:
    """The items of a table or list, or else the lines up to a refusal, without talk around them.

    >>> items_of("Here are two: 1. She ran. 2. He is\\n   here.")
    ['She ran.', 'He is here.']
    """
    text = _NEXT_ITEM.sub("\n", _MARKDOWN.sub("", text))
    lines = [line.strip() for line in text.split("\n")]
    if rows := [line.strip("|").split("|") for line in lines if line[:1] == line[-1:] == "|"]:
        longest = (max(row, key=len).strip() for row in rows)
        return [cell for cell in longest if _ENDS.search(cell)]
    for mark in (_NUMBERED, _BULLET):
        if any(mark.match(line) for line in lines):
            return _marked(lines, mark)
    items: list[str] = []
    for line in lines:
        bare = line.strip("*_ ")
        announced = _ANNOUNCED.match(bare)
        rest = bare[announced.end() :] if announced else line
        if not rest or rest.endswith(":") or _REMARK.match(rest):
            continue
        if _REFUSAL.match(rest):
            return items
        items.append(rest)
    return items


def _marked(lines: list[str], mark: re.Pattern[str]) -> list[str]:
    """Items of a list, each a line with a mark and the lines that continue it."""
    items: list[str] = []
    open_item = False
    for line in lines:
        if match := mark.match(line):
            items.append(line[match.end() :])
            open_item = True
        elif not line:
            # A blank line ends an item, unless the item has only a mark so far: its text follows.
            open_item = open_item and not items[-1].strip("*_ ")
        elif open_item and not _ENDS.search(items[-1]) and not _BULLET.match(line):
            items[-1] = f"{items[-1]} {line}".strip()
        else:
            open_item = False
    return items


def without_markup(item: str) -> str:
    """An item on one line, without emphasis, quotes around it, and a count of its words.

    >>> without_markup('*"She **ran**."* (2 words)')
    'She ran.'
    """
    text = " ".join(item.split())
    for _ in range(3):  # markup within quotes within markup
        text = _EMPHASIS.sub(lambda m: m.group(2) or m.group(3), text)
        text = _WORD_COUNT.sub("", _unquoted(text.strip("*_` ").rstrip(",")))
    return text


def _unquoted(text: str) -> str:
    """The text without a pair of quotes that opens at its start and closes only at its end."""
    closing, inner = _QUOTES.get(text[:1]), text[1:-1]
    if text[1:][-1:] != closing or text[0] in inner:
        return text
    # A single quote may be an apostrophe: it is dropped only if the quoted text ends a sentence.
    if closing in ("'", "’"):
        return inner.strip() if _ENDS.search(inner) else text
    return text if closing in inner else inner.strip()
