"""Rules that decide from the words around a "her" whether it would be "his" or "him" for a man.

The rules know function words and some groups of verbs; ``her_as_his_or_him.toml`` lists them.
If both readings are possible ("I saw her smile"), the answer is ``None``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Literal

from plumbline.warehouse.text.toml_file import read

Masculine = Literal["his", "him"]

#: A word with its inner hyphens, apostrophes and dots (Ph.D), or one punctuation mark.
TOKEN = re.compile(r"[^\W_]+(?:[-'’.&‐‑][^\W_]+)*|[^\w\s]|_")
_WORD = re.compile(r"[^\W_]")
_OPENING = frozenset("\"'“‘«([`*_„‚‹")
_CONTRACTED = re.compile(r"['’](?:s|re|ll|d|ve|m)$")
_ADJECTIVE = re.compile(r"\w{2,}(?:less|ous|able|ible|ish|ful|esque|[^e]ed)$")
_ROLE = re.compile(r"\w{3}(?:or|er|ist|ess|ent|ant|man|woman|person)$")
_CLOSED = ("determiners", "pronouns", "conjunctions", "prepositions", "auxiliaries", "adverbs")
#: If one of these follows a word in -ing, both his and him are possible: "heard her singing and".
_OPEN_ENDS = frozenset(["", ".", ",", "of", "in", "and", "is", "was"])


def stands_alone(after: Sequence[str]) -> bool:
    """Return True if a "his" before these tokens has no noun after it, as in "a friend of his".

    >>> stands_alone(["is", "better"]), stands_alone(["key"]), stands_alone([])
    (True, False, True)
    """
    word = after[0].lower() if after else ""
    if _WORD.match(word):
        return _is(word, "prepositions", "conjunctions", "auxiliaries")
    return word not in _OPENING


def decide_her(before: Sequence[str], after: Sequence[str]) -> Masculine | None:
    """Return "his" or "him", the form of a "her" for a man. Return ``None`` if both are possible.

    ``before`` and ``after`` are the sentence's tokens around the "her": matches of ``TOKEN``.

    >>> decide_her(["She", "lost"], ["key", "."])
    'his'
    >>> decide_her(["They", "gave"], ["a", "key", "."])
    'him'
    >>> decide_her(["I", "saw"], ["smile", "."]) is None
    True
    """
    earlier = ["", "", *(token.lower() for token in before)]
    rest = [*(token.lower() for token in after), "", "", ""]
    verb, word, next_word = earlier[-1], rest[0], rest[1]
    if word in _OPENING and _WORD.match(next_word):
        return None  # may be "his" (her "friend") or "him" (told her "stop")
    if _ends_phrase(verb, word, next_word):
        return "him"
    if _may_be_when(word, next_word):
        return None  # "him" in "saw her last night", "his" in "spent her last night there"
    if _may_be_called(verb, after[0], next_word):
        return None  # "him" in "elected her president", "his" in "called her mother"
    if _is(verb, "places") and _is(word, "bare", "stood"):
        return "him"  # as in "the man behind her came"
    if _is(verb, "making", "causative", "perception"):
        if _is(word, "bare"):
            return "him"  # as in "let her go" or "saw her leave"
        if _is(word, "either"):  # "him" in "made her smile", unclear in "saw her smile"
            return "him" if _closes(next_word) and not _is(verb, "perception") else None
    if word.endswith("ing") and len(word) > 4:
        if _is(verb, "leaving", "perception") and _closes(next_word):
            return None if next_word in _OPEN_ENDS else "him"  # as in "left her feeling the cold"
        if word in ("being", "having") or _is(next_word, "determiners", "pronouns"):
            return None  # "by her becoming the head" may be "him" or "his"
    place = 0
    while _is_adverb(rest[place]):
        place += 1
    if place and _ends_phrase(verb, rest[place], rest[place + 1]):
        return "him"  # as in "admired her deeply", unlike "her deeply held beliefs"
    is_adjective = _is_adjective(rest[place])
    while _is_adjective(rest[place]) or _is_adverb(rest[place]):
        is_list = rest[place + 1] in ("and", ",", "but", "yet", "or")
        place += 1 + (is_list and _is_adjective(rest[place + 2]))
    if is_adjective and _ends(rest[place]) and _is(verb, "complement", "places"):
        return "him"  # as in "left her speechless"
    giver = next(token for token in earlier[-2::-1] if not _is_adverb(token))
    if _is(verb, "giving") and _is(rest[place], "gifts") and _ends(rest[place + 1]):
        return None if giver in ("she", "and", "to") else "him"  # as in "brought her joy"
    if _is(verb, "handing") and giver not in ("she", "to"):
        return None  # in "gave her flowers", the flowers may be hers
    is_many = rest[place].endswith("s") and not rest[place].endswith("ss")
    is_given = is_many or _is(rest[place], "gifts", "dishes")
    if _is(verb, "making", "serving") and giver not in ("she", "to") and is_given:
        return None if _ends(rest[place + 1]) else "his"  # "made her tea" may be "him" or "his"
    if _is(verb, "giving") and giver not in ("she", "to") and _ends(rest[place + 1]):
        return None  # "him" in "taught her chess", "his" in "taught her class"
    return "his"


def _may_be_when(word: str, next_word: str) -> bool:
    """Return True if words after "her" may say when something happens: "met her last night"."""
    if word in ("last", "next", "first") and _ends(next_word):
        return True
    if word in ("last", "next"):
        return _is(next_word, "times", "dates")
    if _is(word, "numbers"):
        return _is(next_word, "times")
    return _is(word, "times", "dates") and (
        _is(next_word, "since") or (_is(word, "dates") and _ends(next_word))
    )


def _may_be_called(verb: str, written: str, next_word: str) -> bool:
    """Return True if the word after "her" may be a name or role given to her: "called her Ann"."""
    word = written.lower()
    if _is(verb, "naming"):
        return written[:1].isupper() or _ends(next_word)
    is_role = _is(word, "roles") or bool(_ROLE.search(word))
    return _is(verb, "making") and is_role and _ends(next_word)


def _ends_phrase(verb: str, word: str, next_word: str) -> bool:
    """Return True if the words after "her" can't name what she owns, as in "met her at home"."""
    if word in ("more", "less", "much") and _is(verb, "complement", "giving"):
        return True
    if (word == "one" or word.isdigit()) and _is(verb, "charging"):
        return True
    if _is(word, "ends_if_last"):
        return _ends(next_word)
    if word in ("back", "home"):
        return _is(verb, "moving") and (
            _ends(next_word) or _is_adverb(next_word) or next_word == "every"
        )
    if word in ("one", "every"):
        return _is(next_word, "times")
    return _ends(word) or (_is(word, "before_determiners") and _is(next_word, "determiners"))


def _ends(word: str) -> bool:
    """Return True if "her" can't own the word: punctuation, a function word or ``""``."""
    return not _WORD.match(word) or _is(_CONTRACTED.sub("", word), *_CLOSED)


def _closes(word: str) -> bool:
    return _ends(word) or _is_adverb(word) or _is_adjective(word)


def _is_adverb(word: str) -> bool:
    ends_in_ly = word.endswith("ly") and len(word) > 3 and not _is(word, "ly")
    return ends_in_ly or _is(word, "transparent")


def _is_adjective(word: str) -> bool:
    comparative = word.endswith("er") and _is(word[:-2], "adjectives")
    return comparative or _is(word, "adjectives") or bool(_ADJECTIVE.match(word))


def _is(word: str, *kinds: str) -> bool:
    return any(word in _lists()[kind] for kind in kinds)


@cache
def _lists() -> Mapping[str, frozenset[str]]:
    """Read the word lists, and add all regular forms of verbs, such as those in -s and -ing."""
    content = read(resources.files(__package__) / "her_as_his_or_him.toml")
    lists = {name: frozenset(text.split()) for name, text in content["words"].items()}
    ends = ("", "s", "es", "d", "ed", "ing")
    for name, text in content["verbs"].items():
        stems = {stem for verb in text.split() for stem in (verb, verb.removesuffix("e"))}
        lists[name] = frozenset(stem + end for stem in stems for end in ends)
    return lists
