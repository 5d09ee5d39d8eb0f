"""The English splitting rules on one whitespace-free chunk of code points, compiled.

A chunk is always cut into consecutive pieces, so a split is a rising list of end positions. The
rules are those that spaCy's English tokenizer applies: exceptions first, then one prefix and one
suffix at a time with exceptions looked up again after each, then URLs, then infixes, and at last
exceptions put together again from neighbouring pieces. Facts about characters come from
``tables.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

import plumbline.jobs.kernel.cache  # noqa: F401  (before the first compiled function)
from plumbline.jobs.kernel.tables import (
    ALPHA,
    BEFORE_DOT,
    CODES,
    CURRENCY,
    CUTS,
    ICON,
    JOINER,
    LOWER,
    MAX_SPECIAL,
    OPENER,
    PARTS,
    PREFIX,
    QUOTE,
    SLOT_MASK,
    SLOTS,
    STARTS,
    SUFFIX,
    UNIT_CODES,
    UNIT_STARTS,
    UPPER,
)
from plumbline.jobs.kernel.urls import is_ascii_digit, is_url

_DOT, _PLUS, _MINUS, _COMMA, _COLON = ord("."), ord("+"), ord("-"), ord(","), ord(":")
_SLASH = ord("/")
_APOSTROPHE, _RIGHT_QUOTE, _ELLIPSIS, _DEGREE = 0x27, 0x2019, 0x2026, 0xB0
_DOLLAR = ord("$")
_EN_DASH, _EM_DASH, _TILDE, _STAR, _CARET = 0x2013, 0x2014, 0x7E, 0x2A, 0x5E
_FNV, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@njit(cache=True)
def find_special(lang: Any, cps: Any, a: int, b: int) -> int:
    """Index of the exception that equals cps[a:b], or -1."""
    n = b - a
    if n > MAX_SPECIAL or n <= 0:
        return -1
    h = _FNV
    for k in range(a, b):
        h = (h ^ np.uint64(cps[k])) * _FNV_PRIME
    mask = lang[SLOT_MASK]
    at = np.int64(h >> np.uint64(40)) & mask
    while lang[lang[SLOTS] + at]:
        index = lang[lang[SLOTS] + at] - 1
        start = lang[lang[STARTS] + index]
        if lang[lang[STARTS] + index + 1] - start == n:
            start += lang[CODES]
            k = 0
            while k < n and lang[start + k] == cps[a + k]:
                k += 1
            if k == n:
                return np.int64(index)
        at = (at + 1) & mask
    return -1


@njit(cache=True)
def _long_currency(cps: Any, a: int, b: int) -> int:
    """Length of "US$", "C$" or "A$" at a."""
    if a + 1 < b and cps[a + 1] == _DOLLAR and cps[a] != 85:
        return 2
    if a + 2 < b and cps[a] == 85 and cps[a + 1] == 83 and cps[a + 2] == _DOLLAR:
        return 3
    return 0


@njit(cache=True)
def prefix_length(flags: Any, cps: Any, a: int, b: int) -> int:
    """How many characters at the start of cps[a:b] split off as a prefix; 0 for none."""
    c = cps[a]
    if c == _DOT:
        k = a + 1
        while k < b and cps[k] == _DOT:
            k += 1
        return k - a if k - a >= 2 else 0
    if c == _PLUS:
        return 0 if a + 1 < b and is_ascii_digit(cps[a + 1]) else 1
    if flags[c] & PREFIX:
        return 1
    if c == 85 or c == 67 or c == 65:
        return _long_currency(cps, a, b)
    return 0


@njit(cache=True)
def _final_dots(flags: Any, cps: Any, a: int, b: int) -> int:
    k = b - 1
    while k > a and cps[k - 1] == _DOT:
        k -= 1
    if b - k >= 2:
        return b - k
    if b - a < 2:
        return 0
    before = cps[b - 2]
    if flags[before] & BEFORE_DOT:
        return 1
    if b - a < 3:
        return 0
    if flags[before] & UPPER and flags[cps[b - 3]] & UPPER:
        return 1
    temperature = before | 32
    if cps[b - 3] == _DEGREE and (temperature == 102 or temperature == 99 or temperature == 107):
        return 1
    return 0


@njit(cache=True)
def _final_unit(lang: Any, cps: Any, a: int, b: int) -> int:
    """Longest unit or long currency sign at the end that follows an ASCII digit."""
    best = 0
    for unit in range(lang[lang[UNIT_STARTS]]):
        first = np.int64(lang[lang[UNIT_STARTS] + 1 + unit])
        n = np.int64(lang[lang[UNIT_STARTS] + 2 + unit]) - first
        at = b - n
        if n > best and at > a and is_ascii_digit(cps[at - 1]):
            k = 0
            while k < n and lang[lang[UNIT_CODES] + first + k] == cps[at + k]:
                k += 1
            if k == n:
                best = n
    return best


@njit(cache=True)
def suffix_length(flags: Any, lang: Any, cps: Any, a: int, b: int) -> int:
    """How many characters at the end of cps[a:b] split off as a suffix; 0 for none."""
    if a >= b:
        return 0
    c = cps[b - 1]
    if c == _DOT:
        return _final_dots(flags, cps, a, b)
    if (c == 115 or c == 83) and b - a >= 2:
        if cps[b - 2] == _APOSTROPHE or cps[b - 2] == _RIGHT_QUOTE:
            return 2
    best = 0
    if flags[c] & SUFFIX:
        best = 1
        if c == _ELLIPSIS and b - a >= 2 and cps[b - 2] == _ELLIPSIS:
            best = 2
    elif b - a >= 2 and is_ascii_digit(cps[b - 2]) and (c == _PLUS or flags[c] & CURRENCY):
        best = 1
    for k in range(max(a, b - 6), b - 1):
        if is_ascii_digit(cps[k]):
            return max(best, _final_unit(lang, cps, a, b))
    return best


@njit(cache=True)
def _hyphen_length(flags: Any, cps: Any, p: int, b: int) -> int:
    c = cps[p]
    longest = 3 if c == _MINUS else 2 if c == _EM_DASH else 1
    for n in range(1, longest + 1):
        if p + n >= b or (n > 1 and cps[p + n - 1] != c):
            return 0
        if flags[cps[p + n]] & ALPHA:
            return n
    return 0


@njit(cache=True)
def infix_length(flags: Any, cps: Any, a: int, b: int, p: int) -> int:
    """Length of the infix at position p of cps[a:b]; 0 for none."""
    c = cps[p]
    kind = flags[c]
    if c == _DOT:
        k = p + 1
        while k < b and cps[k] == _DOT:
            k += 1
        if k - p >= 2:
            return k - p
    elif c == _ELLIPSIS or kind & ICON:
        return 1
    elif kind & ALPHA:
        return 0
    if p == a or p + 1 >= b:
        return 0
    before, after = cps[p - 1], cps[p + 1]
    if c == _PLUS or c == _MINUS or c == _STAR or c == _CARET:
        if is_ascii_digit(before) and (is_ascii_digit(after) or after == _MINUS):
            return 1
    if c == _DOT:
        sentence = flags[before] & (LOWER | QUOTE) and flags[after] & (UPPER | QUOTE)
        return 1 if sentence else 0
    if c == _COMMA:
        return 1 if flags[before] & ALPHA and flags[after] & ALPHA else 0
    if not (flags[before] & ALPHA or is_ascii_digit(before)):
        return 0
    if c == _MINUS or c == _EN_DASH or c == _EM_DASH or c == _TILDE:
        return _hyphen_length(flags, cps, p, b)
    if c == _COLON or c == 60 or c == 62 or c == 61 or c == _SLASH:
        return 1 if flags[after] & ALPHA else 0
    return 0


@njit(cache=True)
def split_chunk(flags: Any, lang: Any, cps: Any, n: int, ends: Any, tail: Any) -> int:
    """Cut cps[0:n] into pieces; write their end positions to ``ends`` and return how many.

    ``ends`` and ``tail`` hold at least n + 2 entries; ``tail`` is scratch.
    """
    a, b, n_ends, n_tail, last = 0, n, 0, 0, -1
    while b > a and b - a != last:
        if find_special(lang, cps, a, b) >= 0:
            break
        last = b - a
        pre = prefix_length(flags, cps, a, b)
        if pre and a + pre < b and find_special(lang, cps, a + pre, b) >= 0:
            a += pre
            ends[n_ends] = a
            n_ends += 1
            break
        suf = suffix_length(flags, lang, cps, a + pre, b)
        if suf and b - suf > a and find_special(lang, cps, a, b - suf) >= 0:
            tail[n_tail] = b
            n_tail += 1
            b -= suf
            break
        if pre:
            a += pre
            ends[n_ends] = a
            n_ends += 1
        if suf:
            tail[n_tail] = b
            n_tail += 1
            b -= suf
    special = find_special(lang, cps, a, b)
    if special >= 0:
        n_ends = _write_cuts(lang[lang[CUTS] + special], a, ends, n_ends)
    else:
        n_ends = _split_core(flags, cps, a, b, ends, n_ends)
    for k in range(n_tail - 1, -1, -1):
        ends[n_ends] = tail[k]
        n_ends += 1
    return n_ends if n_ends < 2 else _reassemble(flags, lang, cps, ends, n_ends, tail)


@njit(cache=True)
def _split_core(flags: Any, cps: Any, a: int, b: int, ends: Any, n_ends: int) -> int:
    if a >= b:
        return n_ends
    if not is_url(flags, cps, a, b):
        start, p = a, a
        while p < b:
            if flags[cps[p]] & (ALPHA | ICON) == ALPHA:
                p += 1
                continue
            n = infix_length(flags, cps, a, b, p)
            # An infix at the very start stays part of the word that follows it.
            if n and p != a:
                if p != start:
                    ends[n_ends] = p
                    n_ends += 1
                ends[n_ends] = p + n
                n_ends += 1
                start = p + n
            p += max(n, 1)
        if start >= b:
            return n_ends
    ends[n_ends] = b
    return n_ends + 1


@njit(cache=True)
def _write_cuts(cuts: int, a: int, ends: Any, n_ends: int) -> int:
    for k in range(1, MAX_SPECIAL + 1):
        if (cuts >> k) & 1:
            ends[n_ends] = a + k
            n_ends += 1
    return n_ends


@njit(cache=True)
def _parts_of(lang: Any, cps: Any, ends: Any, first: int, count: int) -> int:
    """Exception whose pieces are exactly the ``count`` pieces from ``first``, or -1."""
    a = ends[first - 1] if first else 0
    b = ends[first + count - 1]
    if b - a > MAX_SPECIAL:
        return -1
    special = find_special(lang, cps, a, b)
    if special < 0 or lang[lang[PARTS] + special] == 0:
        return -1
    cuts = 0
    for k in range(first, first + count):
        cuts |= 1 << (ends[k] - a)
    return special if cuts == lang[lang[PARTS] + special] else -1


@njit(cache=True)
def _reassemble(flags: Any, lang: Any, cps: Any, ends: Any, n: int, tail: Any) -> int:
    """Put exceptions together again from neighbouring pieces, longest first, leftmost first.

    ``tail[k]`` becomes: -1 piece untouched, -2 inside a match, else exception starting at k.
    """
    found = False
    longest = 1
    for k in range(n):
        tail[k] = -1
        # Nothing to do unless some piece can be the second of an exception.
        if k and flags[cps[ends[k - 1]]] & JOINER:
            longest = MAX_SPECIAL
    for count in range(min(n, longest), 1, -1):
        for first in range(n - count + 1):
            if not flags[cps[ends[first - 1] if first else 0]] & OPENER:
                continue
            if tail[first] != -1 or tail[first + count - 1] != -1:
                continue
            special = _parts_of(lang, cps, ends, first, count)
            if special >= 0:
                found = True
                tail[first] = special
                for k in range(first + 1, first + count):
                    tail[k] = -2
    return _rewrite(lang, ends, n, tail) if found else n


@njit(cache=True)
def _rewrite(lang: Any, ends: Any, n: int, tail: Any) -> int:
    # An exception never has more tokens than the pieces it replaces here, so writing in place
    # never overtakes reading.
    out, a, k = 0, 0, 0
    while k < n:
        if tail[k] < 0:
            a = ends[k]
            ends[out] = a
            out += 1
            k += 1
            continue
        cuts = lang[lang[CUTS] + tail[k]]
        last = k + 1
        while last < n and tail[last] == -2:
            last += 1
        b = ends[last - 1]
        out = _write_cuts(cuts, a, ends, out)
        a, k = b, last
    return out
