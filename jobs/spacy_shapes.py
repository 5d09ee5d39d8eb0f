"""Classes of characters that spaCy's rules treat alike: chunks of one shape are cut alike.

The rules are regular expressions. For chunks of an alphabet such as letters, comma and full stop,
most branches of the rules can't match, since they need a digit or a bracket. The other branches
test characters by class (*a lowercase letter*). Letters that pass the same of these tests are
interchangeable: spaCy cuts *Haus,* where it cuts *qqqq,*. So spaCy cuts only one chunk per shape,
and each chunk without a shape: with other characters, or a run of letters of a spaCy exception.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Python's own parser of regular expressions.
_PARSER: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")

#: Code points that may have a shape.
N_SHAPED = 0x3000
#: Punctuation that may stand in a shape, in the order in which it is tried.
_PUNCTUATION = ",.;:!?()«»“”„\"…’'-–—"
_LOWER, _UPPER = 1, 2
#: A long character class outside another class; code point that replaces the first such class.
_LONG_CLASS = re.compile(r"(?<![\\\[])\[(?:[^\[\]\\]|\\[uU][0-9a-fA-F]{4}){200,}\]")
_PRIVATE = 0xE000
#: A set of code points: bit c is 1 if code point c is in it.
_Set = int
_ALL: _Set = (1 << N_SHAPED) - 1


@dataclass(frozen=True)
class Shapes:
    """Rules for a chunk's shape: a stand-in for each letter, other characters unchanged.

    Attributes:
        kinds: uint8[N_SHAPED], of each code point: 1 for a lowercase and 2 for an uppercase letter
            with a stand-in, 3 for a character that stands for itself, 0 if no shape can hold it.
        stand_ins: the letters that stand for letters of kind 1 and of kind 2.
        exceptions: runs of letters of kind 1 and 2, some with the character after them, from the
            language's exceptions; a chunk that has one of these runs has no shape.
    """

    kinds: NDArray[np.uint8]
    stand_ins: tuple[str, str]
    exceptions: tuple[str, ...]


@dataclass(frozen=True)
class _Pattern:
    """A part of a regular expression: a test of a character, or a combination of other parts.

    ``kind`` is ``test``, ``all`` (one after the other), ``any`` (one of them) or ``maybe`` (all or
    nothing).
    """

    kind: str
    test: _Set = 0
    parts: tuple[_Pattern, ...] = ()


class _Unsupported(Exception):
    """A regular expression holds parts that this module does not analyse."""


def shapes_of(rules: Sequence[Any], exceptions: Iterable[str]) -> Shapes:
    """The shapes under some rules: bound methods of compiled regular expressions, or ``None``.

    >>> import re
    >>> found = shapes_of([re.compile("(?<=[a-z])[,.]$|q$").search], ["etc."])
    >>> [int(found.kinds[ord(c)]) for c in "bBq,1"], found.stand_ins, found.exceptions
    ([1, 2, 0, 3, 0], ('a', 'A'), ('etc.',))
    """
    patterns = [getattr(rule, "__self__", rule) for rule in rules if rule is not None]
    try:
        kinds = _kinds([_tree(pattern) for pattern in patterns])
    except _Unsupported:
        kinds = np.zeros(N_SHAPED, np.uint8)
    exceptions = tuple(exceptions)
    stand_ins = _stand_ins(kinds, set().union(*exceptions))
    if not stand_ins:
        kinds[:] = 0
    marks = {mark for text in exceptions for mark in _marks(kinds, text)}
    return Shapes(kinds, stand_ins or ("", ""), tuple(sorted(marks)))


def _marks(kinds: NDArray[np.uint8], text: str) -> Iterator[str]:
    """The runs of plain letters of an exception, each with the next character, if any."""
    start = 0
    for is_plain, run in groupby(text, lambda c: _is_plain(kinds, c)):
        n = len(list(run))
        if is_plain:
            yield text[start : start + n + 1]
        start += n


def _is_plain(kinds: NDArray[np.uint8], character: str) -> bool:
    code = ord(character)
    return code < N_SHAPED and int(kinds[code]) in (_LOWER, _UPPER)


def _stand_ins(kinds: NDArray[np.uint8], taken: set[str]) -> tuple[str, str] | None:
    """A lowercase and an uppercase letter that occur in no exception; None without such letters."""
    for code in np.flatnonzero(kinds == _LOWER).tolist():
        lower, upper = chr(code), chr(code).upper()
        if len(upper) == 1 and _is_plain(kinds, upper) and not taken & {lower, upper}:
            return lower, upper
    return None


def _kinds(trees: Sequence[_Pattern]) -> NDArray[np.uint8]:
    """Kind of each code point, see ``Shapes``: 1 or 2 for letters that are alike, by case."""
    lower, upper = (
        _set(lambda c, case=case: c.isalpha() and getattr(c, case)())  # type: ignore[misc]
        for case in ("islower", "isupper")
    )
    alphabet, chosen = lower | upper, (0, 0)
    for more in ("", *_PUNCTUATION):
        wider = alphabet | sum(1 << ord(c) for c in more)
        tests: set[_Set] = set()
        for tree in trees:
            tests |= _reached(tree, wider)[1]
        alike = _alike(tests, lower, "a"), _alike(tests, upper, "A")
        n_usual = ((a & usual).bit_count() for a, usual in zip(alike, _ASCII, strict=True))
        if min(n_usual) >= 20:
            alphabet, chosen = wider, alike
    kinds = np.zeros(N_SHAPED, np.uint8)
    if any(chosen):
        others = alphabet & ~lower & ~upper
        for kind, letters in ((_LOWER, chosen[0]), (_UPPER, chosen[1]), (_UPPER + 1, others)):
            kinds[_codes(letters)] = kind
    return kinds


def _alike(tests: Iterable[_Set], letters: _Set, first: str) -> _Set:
    """The letters that pass the same tests as most of the 26 ASCII letters from ``first`` on."""
    ascii_letters = [ord(first) + k for k in range(26)]
    tests = [test for test in tests if test & letters and letters & ~test]
    passed = Counter(tuple(test >> c & 1 for test in tests) for c in ascii_letters)
    for test, is_passed in zip(tests, passed.most_common(1)[0][0], strict=True):
        letters &= test if is_passed else ~test
    return letters


def _reached(part: _Pattern, alphabet: _Set) -> tuple[bool, set[_Set]]:
    """True if a part can match text of an alphabet; the character tests that it then makes."""
    if part.kind == "test":
        return bool(part.test & alphabet), {part.test}
    tests: set[_Set] = set()
    can_match = part.kind != "any"
    for inner in part.parts:
        ok, inner_tests = _reached(inner, alphabet)
        if ok:
            tests |= inner_tests
        if ok and part.kind == "any":
            can_match = True
        elif not ok and part.kind != "any":
            return part.kind == "maybe", set()
    return can_match, tests


def _tree(pattern: Any) -> _Pattern:
    if not isinstance(pattern, re.Pattern) or not isinstance(pattern.pattern, str):
        raise _Unsupported
    # The French rules hold the class of all letters hundreds of times: parse each long class once.
    classes: list[str] = []

    def stand_in(match: re.Match[str]) -> str:
        if match[0] not in classes:
            classes.append(match[0])
        return chr(_PRIVATE + classes.index(match[0]))

    parsed = _PARSER.parse(_LONG_CLASS.sub(stand_in, pattern.pattern), pattern.flags)
    long = {_PRIVATE + k: _PARSER.parse(text, pattern.flags) for k, text in enumerate(classes)}
    return _sequence(parsed, bool(parsed.state.flags & re.IGNORECASE), long)


def _sequence(items: Any, fold: bool, long: Mapping[int, Any]) -> _Pattern:
    return _Pattern("all", parts=tuple(_part(str(op), value, fold, long) for op, value in items))


def _part(name: str, value: Any, fold: bool, long: Mapping[int, Any]) -> _Pattern:
    if name == "ANY":
        return _Pattern("test", _ALL)
    if name == "LITERAL" and value in long:
        return _sequence(long[value], fold, {})
    if name in ("LITERAL", "NOT_LITERAL"):
        test = _class((("LITERAL", value),), fold)
        return _Pattern("test", test if name == "LITERAL" else _ALL & ~test)
    if name == "IN":
        return _Pattern("test", _class(tuple((str(kind), what) for kind, what in value), fold))
    if name == "BRANCH":
        return _Pattern("any", parts=tuple(_sequence(branch, fold, long) for branch in value[1]))
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return _Pattern("all" if value[0] else "maybe", parts=(_sequence(value[2], fold, long),))
    if name == "SUBPATTERN":
        _, added, removed, inner = value
        return _sequence(inner, (fold or bool(added & re.I)) and not removed & re.I, long)
    if name == "ATOMIC_GROUP":
        return _sequence(value, fold, long)
    if name in ("ASSERT", "ASSERT_NOT"):
        return _Pattern(
            "all" if name == "ASSERT" else "maybe", parts=(_sequence(value[1], fold, long),)
        )
    if name == "AT":
        is_boundary = "BOUNDARY" in str(value)
        words = _Pattern("test", _category("WORD"))
        return _Pattern("maybe", parts=(words,)) if is_boundary else _Pattern("all")
    raise _Unsupported


@cache
def _class(items: tuple[tuple[str, Any], ...], fold: bool) -> _Set:
    """The characters that one test of a regular expression passes."""
    passed, is_negated = 0, False
    for kind, what in items:
        if kind == "NEGATE":
            is_negated = True
        elif kind == "LITERAL":
            passed |= 1 << what & _ALL if what < N_SHAPED else 0
        elif kind == "RANGE":
            low, high = what[0], min(what[1], N_SHAPED - 1)
            passed |= (1 << high + 1) - (1 << low) if low <= high else 0
        elif kind == "CATEGORY":
            bare = str(what).removeprefix("CATEGORY_").removeprefix("UNI_")
            category = _category(bare.removeprefix("NOT_"))
            passed |= _ALL & ~category if bare.startswith("NOT_") else category
        else:
            raise _Unsupported
    if fold:
        passed |= _other_cases(passed)
    return _ALL & ~passed if is_negated else passed


def _other_cases(characters: _Set) -> _Set:
    """The same letters in the other case; an extra letter only makes fewer alike."""
    others = 0
    for code in _codes(characters):
        for other in (chr(code).lower(), chr(code).upper()):
            if len(other) == 1 and ord(other) < N_SHAPED:
                others |= 1 << ord(other)
    return others


@cache
def _category(name: str) -> _Set:
    tests = {"WORD": r"\w", "DIGIT": r"\d", "SPACE": r"\s"}
    if name not in tests:
        raise _Unsupported
    pattern = re.compile(tests[name])
    return _set(lambda c: pattern.match(c) is not None)


def _set(passes: Callable[[str], bool]) -> _Set:
    bits = "".join("1" if passes(chr(c)) else "0" for c in reversed(range(N_SHAPED)))
    return int(bits, 2)


def _codes(characters: _Set) -> list[int]:
    bits = bin(characters)[:1:-1]
    return [code for code, bit in enumerate(bits) if bit == "1"]


#: a to z, and A to Z.
_ASCII = tuple(sum(1 << ord(first) + k for k in range(26)) for first in "aA")
