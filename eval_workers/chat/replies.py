"""Sentences and verdicts parsed from replies of chat models."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_THOUGHT = re.compile(r"<(think(?:ing)?)>.*?(?:</\1>|\Z)|\A.*?</think(?:ing)?>", re.S | re.I)
_QUOTED_LINE = re.compile(r"^[ \t]*>[ \t]?", re.M)
_ESCAPED = re.compile(r"\\([.()\[\]*_#`>-])")
_LIST_AFTER_COLON = re.compile(r":[ \t]+(?=\(?1[.)]\s)")
_TABLE_ROW = re.compile(r"^\s*\|(.*)\|\s*$")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.M)
_INVISIBLE = re.compile("[\u200b\u200c\u200d\u2060\ufeff]")
# At most 400 characters: the search from each stray mark would else run to the reply's end.
_EMPHASIS = re.compile(
    r"(\*\*|__|\*|`)(?=\S)(.{1,400}?)(?<=\S)\1|(?<!\w)_(?=\S)(.{1,400}?)(?<=\S)_(?!\w)"
)
_NUMBER = (
    r"(?:\(\s*\d{1,3}\s*\)|\[\d{1,3}\]|#?\d{1,3}\s*[.):\]．、）]|#\d{1,3}\b|[①-⑳]\s*[.):]?|[a-h]\))"
)
_LABEL = r"(?:sentence|example|option|version)\s*(?:#\s*)?(?:\d{1,3}|[①-⑳])?\s*[:.)]"
_NUMBERED = re.compile(
    rf"^\s*[-*•]?\s*[*_]{{0,2}}(?:{_NUMBER}|{_LABEL})[*_]{{0,2}}(?:\s+|$|(?=[^\d\s]))", re.I
)
_BULLET = re.compile(r"^\s*(?:[-*+•▪◦‣·●–—]\s+|[•▪◦‣●])")
_NEXT = re.compile(r"(?<=\s)(?:\((\d{1,3})\)|(\d{1,3})[.)])(?=\s+\S)")
_FIRST_NUMBER = re.compile(r"^\s*\(?(\d{1,3})[.)]")
_ENDS = re.compile(r"[.!?…][\"'”’»)\]*_`]*,?$")
_PREAMBLE = re.compile(
    r"^(?:(?:sure|certainly|absolutely|of course|okay|ok|great|yes)\b[!,.:]*\s*"
    r"(?:thing[!,.]*\s*)?)?"
    r"(?:(?:here(?:['’]s| is| are)|below (?:is|are)|(?:my |the )?(?:revised|rewritten|corrected|"
    r"updated|new|changed)\s+(?:sentence|version|draft))[^:\n]{0,120}:|answer\s*:)\s*",
    re.I,
)
_CHATTER = re.compile(
    r"^(?:#{1,6}\s|(?:sure|certainly|absolutely|of course|okay|ok|great)\b[!,.:]|here (?:is|are)\b|"
    r"here['’]s\b|\(?notes?\b\s*[:)]|i hope (?:this|these|that)\b|let me know\b|feel free\b|"
    r"(?:each|all) of (?:these|the) sentences\b|(?:these|the) sentences\b|"
    r"(?:do|would) you (?:want|like)\b|explanation\s*:|if you(?:['’]d like| need| want)\b)",
    re.I,
)
_REFUSAL = re.compile(
    r"^(?:(?:i['’]?m|i am|my)?\s*(?:so |very |really )?(?:sorry|apolog)|i (?:can(?:no|['’])t|"
    r"could ?n['’]t|won['’]t|will not|must decline|do not|don['’]t) |i(?:['’]m| am) (?:not able|"
    r"unable|not comfortable)|as an? (?:ai|language model|assistant)\b|unfortunately,? i\b)",
    re.I,
)
_COUNT = re.compile(
    r"(?<!\s)\s*[(\[](?:\d+\s+words?|word count[^)\]]*|notes?:[^)\]]*)[)\]]\.?$", re.I
)
_CUT_JSON = re.compile(r'\[\s*"')
_STRING = re.compile(r'"(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’", "«": "»", "„": "“"}


def sentences(reply: str) -> list[str]:
    """The sentences of a reply in order, without numbers, markup and surrounding talk.

    The reply may be a numbered or bulleted list, JSON, a table, or one sentence per line. A refusal
    gives an empty list.

    >>> sentences("Sure! Here are two:\\n\\n1. **She** ran.\\n2) 'He is\\n   here.'\\n\\nEnjoy!")
    ['She ran.', 'He is here.']
    >>> sentences("I'm sorry, but I can't help with that.")
    []
    """
    text = _INVISIBLE.sub("", "\n".join(_without_reasoning(reply).splitlines()))
    text = _FENCE.sub("", text).strip()
    listed = _from_json(text)
    items = listed if listed is not None else _from_lines(_plain(text))
    return [clean for clean in map(_clean, items) if any(c.isalnum() for c in clean)]


def _without_reasoning(reply: str) -> str:
    return _THOUGHT.sub("", reply)


def _plain(text: str) -> str:
    """The text without Markdown's ``>`` and backslashes; a list after a colon gets a new line."""
    return _LIST_AFTER_COLON.sub(":\n", _ESCAPED.sub(r"\1", _QUOTED_LINE.sub("", text)))


def _from_json(text: str) -> list[str] | None:
    """The strings of a JSON array or object in the text; ``None`` without any.

    An array at the text's start may be cut off.
    """
    for opening, closing in ("[]", "{}"):
        start, end = text.find(opening), text.rfind(closing)
        if start == -1 or end <= start:
            continue
        try:
            strings = list(_strings(json.loads(text[start : end + 1])))
        except (ValueError, RecursionError):
            continue
        if strings:
            return strings
    if _CUT_JSON.match(text):
        return [json.loads(whole, strict=False) for whole in _STRING.findall(text)]
    return None


def _strings(value: Any) -> Iterator[str]:
    """Strings in a JSON value.

    An object gives the strings nested in it; without these its ``sentence``, else its longest.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        nested = [item for item in value.values() if isinstance(item, (list, dict))]
        texts = [item for item in value.values() if isinstance(item, str)]
        if nested:
            for item in nested:
                yield from _strings(item)
        elif isinstance(value.get("sentence"), str):
            yield value["sentence"]
        elif texts:
            yield max(texts, key=len)


def _from_lines(text: str) -> list[str]:
    lines = [part for line in text.split("\n") for part in _split_numbers(line)]
    if cells := [match.group(1).split("|") for line in lines if (match := _TABLE_ROW.match(line))]:
        longest = (max(row, key=len).strip() for row in cells)
        return [cell for cell in longest if _ENDS.search(cell)]
    for mark in (_NUMBERED, _BULLET):
        if any(mark.match(line) for line in lines):
            return _marked(lines, mark)
    return _unmarked(lines)


def _split_numbers(line: str) -> list[str]:
    """Cut a line like `1. One. 2. Two.` before each number that is one more than the last."""
    first = _FIRST_NUMBER.match(line)
    if not first:
        return [line]
    cuts, number = [0], int(first.group(1))
    for match in _NEXT.finditer(line, first.end()):
        if int(match.group(1) or match.group(2)) == number + 1:
            cuts.append(match.start())
            number += 1
    return [line[a:b] for a, b in zip(cuts, [*cuts[1:], len(line)], strict=True)]


def _marked(lines: list[str], mark: re.Pattern[str]) -> list[str]:
    """Items of a list, each a line with a mark and the lines that continue it."""
    items: list[str] = []
    open_item = False
    for line in lines:
        if match := mark.match(line):
            items.append(line[match.end() :].strip())
            open_item = True
        elif not line.strip():
            # A blank line ends an item, unless the item has only a mark so far: its text follows.
            open_item = open_item and not items[-1].strip("*_ ")
        elif open_item and not _ENDS.search(items[-1]) and not _BULLET.match(line):
            items[-1] = f"{items[-1]} {line.strip()}".strip()
        else:
            open_item = False
    return items


def _unmarked(lines: list[str]) -> list[str]:
    """Lines of a reply without list marks, up to a refusal and without talk around sentences."""
    items: list[str] = []
    for line in (line.strip() for line in lines):
        bare = line.strip("*_ ")
        announced = _PREAMBLE.match(bare)
        rest = bare[announced.end() :] if announced else line
        if not rest or rest.endswith(":") or _CHATTER.match(rest):
            continue
        if _REFUSAL.match(rest):
            return items
        items.append(rest)
    return items


def _clean(item: str) -> str:
    text = " ".join(item.split())
    for _ in range(3):  # markup within quotes within markup
        before = text
        text = _EMPHASIS.sub(lambda m: m.group(2) or m.group(3), text)
        text = _COUNT.sub("", _unquoted(text.strip("*_` ").rstrip(",")))
        if text == before:
            break
    return text


def _unquoted(text: str) -> str:
    """The text without a pair of quotes that opens at its start and closes only at its end."""
    closing = _QUOTES.get(text[:1])
    if closing is None or len(text) < 2:
        return text
    inner = text[1:-1]
    if text[-1] != closing or text[0] in inner:
        return text
    # A single quote may be an apostrophe: it is dropped only if the quoted text ends a sentence.
    if closing in "'’":
        return inner.strip() if _ENDS.search(inner) else text
    return text if closing in inner else inner.strip()


#: A negation and up to three words between it and the word that it negates.
_NEGATION = (
    r"(?:\b(?:not|hardly|scarcely|barely|never|less|least|cannot|far\s+from)|n['’]t)\s+[\"“*]*"
    r"(?:(?!(?:and|but|or|only|just|merely|doubt)\b)[\w'’-]+\s+[\"“*]*){0,3}"
)
_VERDICT = re.compile(rf"({_NEGATION})?\b(un)?likely\b", re.I)


def verdict(reply: str) -> bool | None:
    """True for `likely`, False for `unlikely`; ``None`` when a reply says neither or both.

    The first clause with either word decides: explanations may follow. `Not likely` is False.

    >>> verdict("**Unlikely** - a door can't sing."), verdict("Likely.\\nNothing unlikely in it.")
    (False, True)
    >>> verdict("It is hard to say."), verdict("likely or unlikely"), verdict("Not very likely.")
    (None, None, False)
    """
    for clause in re.split(r"[.!?;\n]", _without_reasoning(reply)):
        negated = {(bool(m.group(1)), bool(m.group(2))) for m in _VERDICT.finditer(clause)}
        if not negated:
            continue
        if negated == {(False, False)}:
            return True
        return False if negated <= {(False, True), (True, False)} else None
    return None


_FIRST = re.compile(
    r"\W*(?:(?:my|the) )?(?:(?:answer|choice|sentence|option|number) ?(?:is|would be)? ?[:#]? ?)*"
    r"\(?\b([12])\b(?![.,]\d)",
    re.I,
)
_EITHER = re.compile(r"(?<![\w.,])([12])\b(?![.,]\d)")
_UNDECIDED = re.compile(r"\b(?:neither|both|equal(?:ly)?|either|not|or|can(?:no|['’])t)\b", re.I)
#: A clause that only lists numbers.
_LISTED = re.compile(
    r"(?:[\W\d]|\b(?:my|the|answer|choice|sentence|option|number|is|would|be|and|then|to)\b)*", re.I
)
_CLAUSE = re.compile(
    "[.!?;](?=\\s|$)|\\n|\\s[-–—]\\s|"
    "\\*\\*\\s(?!\\s*(?:is|does|reads?|sounds?|seems?|looks?|feels?|would)(?![^\\W_]))"
)
#: Marks and words that end the phrase about a number.
_ASIDE = re.compile(
    r"[^\w\s'’*-]|\b(?:because|since|as|while|whereas|but|(?:al)?though|than)\b", re.I
)
#: Words in this phrase that speak against the number's sentence.
_AGAINST = re.compile(
    r"n['’]t\b|\b(?:less|least|hardly|scarcely|barely|never|worse|worst|odd(?:er)?|strange(?:r)?|"
    r"awkward|weird|wrong|incorrect|unlikel\w*|unnatural|implausible|ungrammatical)\b",
    re.I,
)


def chosen(reply: str) -> int | None:
    """The sentence that a reply chooses, 1 or 2; ``None`` when it chooses neither or both.

    The first clause with a number decides, unless a later clause is just the other number. If it
    calls the sentence that it names first the worse one, neither is chosen.

    >>> chosen("2"), chosen("**Sentence 1** - it reads well, 2 does not."), chosen("(2).")
    (2, 1, 2)
    >>> chosen("I would say that 2 is the likelier one."), chosen("Sure! The answer is: 1")
    (2, 1)
    >>> chosen("Both 1 and 2 are fine."), chosen("1 or 2"), chosen("It is hard to say."), chosen("")
    (None, None, None, None)
    >>> chosen("1 2 1 2"), chosen("1 and 2"), chosen("1\\n2"), chosen("1 reads better than 2")
    (None, None, None, 1)
    >>> chosen("2 is less likely than 1"), chosen("1, since 2 is less likely")
    (None, 1)
    """
    clauses = [" ".join(part.split()) for part in _CLAUSE.split(_plain(_without_reasoning(reply)))]
    numbered = [clause for clause in clauses if _EITHER.search(clause)]
    alone = {n for clause in numbered if _LISTED.fullmatch(clause) for n in _EITHER.findall(clause)}
    if not numbered or len(alone) == 2 or _UNDECIDED.search(numbered[0]):
        return None
    first = numbered[0]
    if _is_against(first):
        return None
    numbers = set(_EITHER.findall(first))
    if len(numbers) == 1:
        return int(numbers.pop())
    start = _FIRST.match(first)
    if start is None or _LISTED.fullmatch(_EITHER.split(first[start.end() :])[0]):
        return None
    return int(start.group(1))


def _is_against(clause: str) -> bool:
    """True if a clause calls the sentence that it names first the worse one."""
    before, _, after = _EITHER.split(clause, 1)
    phrase = f"{_ASIDE.split(before)[-1]} {_ASIDE.split(_EITHER.split(after)[0])[0]}"
    return _AGAINST.search(phrase) is not None
