"""Reads sentences, verdicts and choices in replies of chat models.

Our own wordings ask for JSON (``requests``). Wordings of the papers ask for prose, and a server may
answer in prose whatever the request asks for, so both are read here.
"""

from __future__ import annotations

import json
import re
from typing import Any

from plumbline.eval_workers.chat.prose import items_of, without_markup, without_number

_THOUGHT = re.compile(r"<(think(?:ing)?)>.*?(?:</\1>|\Z)|\A.*?</think(?:ing)?>", re.S | re.I)
_INVISIBLE = re.compile("[\u200b\u200c\u200d\u2060\ufeff]")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.M)
_CUT_JSON = re.compile(r'(?:\{\s*"sentences"\s*:\s*)?\[(?=\s*")')
_STRING = re.compile(r'"(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')


def sentences(reply: str) -> list[str]:
    """The sentences of a reply in order, without numbers, markup and surrounding talk.

    The reply may be JSON, a numbered or bulleted list, a table, or one sentence per line. A refusal
    gives an empty list.

    >>> sentences('{"sentences": ["She ran.", "He is here."]}')
    ['She ran.', 'He is here.']
    >>> sentences("Sure! Here are two:\\n\\n1. **She** ran.\\n2) 'He is\\n   here.'\\n\\nEnjoy!")
    ['She ran.', 'He is here.']
    >>> sentences("I'm sorry, but I can't help with that.")
    []
    """
    text = _INVISIBLE.sub("", "\n".join(_THOUGHT.sub("", reply).splitlines()))
    text = _FENCE.sub("", text).strip()
    items = _from_json(text) or items_of(text)
    return [clean for clean in map(without_markup, items) if any(c.isalnum() for c in clean)]


def _from_json(text: str) -> list[str]:
    """The strings of the JSON value in a text, the whole ones if it is cut off."""
    start = re.search(r"[\[{]", text)
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start.start() if start else 0)
    except (ValueError, RecursionError):
        cut = _CUT_JSON.match(text)
        whole = _STRING.findall(text, cut.end()) if cut else []
        value = [json.loads(string, strict=False) for string in whole]
    return list(map(without_number, _strings(value)))


def _strings(value: Any) -> list[str]:
    """Strings in a JSON value.

    An object gives the strings nested in it; without these its ``sentence``, else its longest.
    """
    if isinstance(value, dict):
        nested = [item for item in value.values() if isinstance(item, (list, dict))]
        texts = [item for item in value.values() if isinstance(item, str)]
        value = nested or [value.get("sentence") or max(texts, key=len, default="")]
    if isinstance(value, list):
        return [string for item in value for string in _strings(item)]
    return [value] if isinstance(value, str) else []


#: A negation and up to three words between it and the word that it negates.
_NEGATION = (
    r"(?:\b(?:not|hardly|scarcely|barely|never|less|least|cannot|far\s+from)|n['’]t)\s+[\"“*]*"
    r"(?:(?!(?:and|but|or|only|just|merely|doubt)\b)[\w'’-]+\s+[\"“*]*){0,3}"
)
_VERDICT = re.compile(rf"({_NEGATION})?\b(un)?likely\b", re.I)


def verdict(reply: str) -> bool | None:
    """True for `likely`, False for `unlikely`; ``None`` when a reply says neither or both.

    The first clause with either word decides: explanations may follow. `Not likely` is False.

    >>> verdict('{"verdict": "unlikely"}'), verdict("Likely.\\nNothing unlikely in it.")
    (False, True)
    >>> verdict("It is hard to say."), verdict("likely or unlikely"), verdict("Not very likely.")
    (None, None, False)
    """
    for clause in re.split(r"[.!?;\n]", _THOUGHT.sub("", reply)):
        negated = {(bool(m.group(1)), bool(m.group(2))) for m in _VERDICT.finditer(clause)}
        if not negated:
            continue
        if negated == {(False, False)}:
            return True
        return False if negated <= {(False, True), (True, False)} else None
    return None


#: Marks and words between the clauses of a choice.
_CLAUSE_END = re.compile(
    r"[.!?;:,](?=\s|$)|\n|\s[-–—]\s|[\"“]"
    r"|\b(?:because|since|as|while|whereas|but|(?:al)?though|than)\b",
    re.I,
)
_CHOICE = re.compile(r"(?<![\w.,])([12])\b(?![.,]\d)")
#: Words that speak against the sentence that a clause names, or for neither.
_AGAINST = re.compile(
    r"n['’]t\b|\b(?:not|cannot|neither|either|less|least|hardly|scarcely|barely|never|worse|worst|"
    r"odd(?:er)?|strange(?:r)?|awkward|weird|wrong|incorrect|unlikel\w*|unnatural|implausible|"
    r"ungrammatical)\b",
    re.I,
)


def chosen(reply: str) -> int | None:
    """The sentence that a reply chooses, 1 or 2; ``None`` when it chooses neither or both.

    The first clause with a number decides, unless it names both, or speaks against the sentence,
    or another clause is just the other number.

    >>> chosen("2"), chosen("**Sentence 1** - it reads well, 2 does not."), chosen("(2).")
    (2, 1, 2)
    >>> chosen("I would say that 2 is the likelier one."), chosen("1 reads better than 2")
    (2, 1)
    >>> chosen("Both 1 and 2 are fine."), chosen("1 or 2"), chosen("It is hard to say."), chosen("")
    (None, None, None, None)
    >>> chosen("1\\n2"), chosen("2 is less likely than 1"), chosen("1, since 2 is less likely")
    (None, None, 1)
    """
    clauses = _CLAUSE_END.split(_THOUGHT.sub("", reply))
    numbered = [clause for clause in clauses if _CHOICE.search(clause)]
    alone = {clause.strip("*()#`'> \t") for clause in numbered} & {"1", "2"}
    named = set(_CHOICE.findall(numbered[0])) if numbered else set()
    if len(named) != 1 or len(alone) == 2 or _AGAINST.search(numbered[0]):
        return None
    return int(named.pop())
