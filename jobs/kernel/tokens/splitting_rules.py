"""Split an English chunk (a piece of text without whitespace) into pieces, in compiled code.

Each piece starts where the last piece ends, so only the ends of pieces are stored. The rules are
those of spaCy's English tokenizer. First, the chunk is looked up in the table of exceptions. Then
prefixes and suffixes are split off one by one, and the rest is looked up again after each step. If
the rest isn't a URL, it is cut at its infixes. Finally, neighbouring pieces that form an exception
are joined.

Positions a, b, k are indices of code points in the chunk ``s.cps``.
"""

from __future__ import annotations

import numpy as np

from plumbline.jobs.kernel.cache import compiled
from plumbline.jobs.kernel.memory import get32, get64, get_int, low_bytes, put64
from plumbline.jobs.kernel.tokens.language_tables import (
    ALPHA,
    BEFORE_DOT,
    CURRENCY,
    ICON,
    JOINER,
    LOWER,
    MAX_SPECIAL,
    MAX_UNIT,
    OPENER,
    PREFIX,
    QUOTE,
    RUN_BITS,
    RUN_HASH,
    SUFFIX,
    UPPER,
    SplitState,
    is_digit,
    kind_of,
    point,
)
from plumbline.jobs.kernel.tokens.urls import is_url
from plumbline.jobs.kernel.tokens.words import find_word

_DOT, _PLUS, _MINUS, _COMMA, _COLON = ord("."), ord("+"), ord("-"), ord(","), ord(":")
_SLASH, _APOSTROPHE, _RIGHT_QUOTE, _ELLIPSIS, _DEGREE = ord("/"), 0x27, 0x2019, 0x2026, 0xB0
_LESS, _EQUAL, _MORE, _DOLLAR = ord("<"), ord("="), ord(">"), ord("$")
_EN_DASH, _EM_DASH, _TILDE, _STAR, _CARET = 0x2013, 0x2014, 0x7E, 0x2A, 0x5E
_A, _C, _S, _U, _SMALL_S = ord("A"), ord("C"), ord("S"), ord("U"), ord("s")
_SMALL_C, _SMALL_F, _SMALL_K = ord("c"), ord("f"), ord("k")
_CASE_BITS = np.uint64(0x2020202020202020)


@compiled
def _n_dots(s: SplitState, a: int, b: int) -> int:
    k = a
    while k < b and point(s, k) == _DOT:
        k += 1
    return k - a


@compiled
def find_special(s: SplitState, a: int, b: int) -> int:
    """Return the id of the exception that equals the code points a..b, or -1 if none does."""
    if b - a > MAX_SPECIAL or b <= a:
        return -1
    word = find_word(s, s.cps + 4 * a, s.cps + 4 * b)
    return word if word >= 0 and get32(s.cuts, word) else -1


@compiled
def may_split(s: SplitState, at: int, n: int) -> bool:
    """Return False if the run of n bytes at ``at`` is surely one word (see ``Tables.runs``)."""
    first = (get64(at, 0) | _CASE_BITS) & low_bytes(min(n, 8))
    bit = np.int64(first * RUN_HASH >> np.uint64(64 - RUN_BITS))
    return (get32(s.runs, bit >> 5) >> (bit & 31)) & 1 != 0


@compiled
def _long_currency(s: SplitState, a: int, b: int) -> int:
    """Return the length of "US$", "C$" or "A$" at a, or 0 if there is no such sign."""
    if a + 1 < b and point(s, a + 1) == _DOLLAR and point(s, a) != _U:
        return 2
    is_us = a + 2 < b and point(s, a) == _U and point(s, a + 1) == _S
    return 3 if is_us and point(s, a + 2) == _DOLLAR else 0


@compiled
def prefix_length(s: SplitState, a: int, b: int) -> int:
    """Return the length of the prefix at the start of a..b, or 0 if there is no prefix."""
    c = point(s, a)
    if c == _DOT:
        n = _n_dots(s, a, b)
        return n if n >= 2 else 0
    if c == _PLUS:
        return 0 if a + 1 < b and is_digit(s, a + 1) else 1
    if kind_of(s, a) & PREFIX:
        return 1
    return _long_currency(s, a, b) if c in (_U, _C, _A) else 0


@compiled
def _final_dots(s: SplitState, a: int, b: int) -> int:
    k = b - 1
    while k > a and point(s, k - 1) == _DOT:
        k -= 1
    if b - k >= 2:
        return b - k
    if b - a < 2:
        return 0
    if kind_of(s, b - 2) & BEFORE_DOT:
        return 1
    if b - a < 3:
        return 0
    if kind_of(s, b - 2) & UPPER and kind_of(s, b - 3) & UPPER:
        return 1
    is_temperature = (point(s, b - 2) | 32) in (_SMALL_F, _SMALL_C, _SMALL_K)
    return 1 if is_temperature and point(s, b - 3) == _DEGREE else 0


@compiled
def _final_unit(s: SplitState, a: int, b: int) -> int:
    """Return the length of the unit that ends a..b, such as km in "5km", or 0 if there is none."""
    for n in range(min(MAX_UNIT, b - a - 1), 0, -1):
        if is_digit(s, b - n - 1):
            word = find_word(s, s.cps + 4 * (b - n), s.cps + 4 * b)
            if word >= 0 and get32(s.is_unit, word):
                return n
    return 0


@compiled
def suffix_length(s: SplitState, a: int, b: int) -> int:
    """Return the length of the suffix at the end of a..b, or 0 if there is no suffix."""
    if a >= b:
        return 0
    c = point(s, b - 1)
    if c == _DOT:
        return _final_dots(s, a, b)
    if c in (_SMALL_S, _S) and b - a >= 2 and point(s, b - 2) in (_APOSTROPHE, _RIGHT_QUOTE):
        return 2
    best = 0
    if kind_of(s, b - 1) & SUFFIX:
        is_double = c == _ELLIPSIS and b - a >= 2 and point(s, b - 2) == _ELLIPSIS
        best = 2 if is_double else 1
    elif b - a >= 2 and is_digit(s, b - 2) and (c == _PLUS or kind_of(s, b - 1) & CURRENCY):
        best = 1
    return max(best, _final_unit(s, a, b))


@compiled
def _hyphen_length(s: SplitState, p: int, b: int) -> int:
    c = point(s, p)
    longest = 3 if c == _MINUS else 2 if c == _EM_DASH else 1
    for n in range(1, longest + 1):
        if p + n >= b or (n > 1 and point(s, p + n - 1) != c):
            return 0
        if kind_of(s, p + n) & ALPHA:
            return n
    return 0


@compiled
def infix_length(s: SplitState, a: int, b: int, p: int) -> int:
    """Return the length of the infix at position p of a..b, or 0 if there is no infix."""
    c, kind = point(s, p), kind_of(s, p)
    if c == _DOT:
        n = _n_dots(s, p, b)
        if n >= 2:
            return n
    elif c == _ELLIPSIS or kind & ICON:
        return 1
    elif kind & ALPHA:
        return 0
    if p == a or p + 1 >= b:
        return 0
    before, after = kind_of(s, p - 1), kind_of(s, p + 1)
    is_after_digit = is_digit(s, p - 1)
    if c in (_PLUS, _MINUS, _STAR, _CARET) and is_after_digit:
        if is_digit(s, p + 1) or point(s, p + 1) == _MINUS:
            return 1
    if c == _DOT:
        return 1 if before & (LOWER | QUOTE) and after & (UPPER | QUOTE) else 0
    if c == _COMMA:
        return 1 if before & ALPHA and after & ALPHA else 0
    if not (before & ALPHA or is_after_digit):
        return 0
    if c in (_MINUS, _EN_DASH, _EM_DASH, _TILDE):
        return _hyphen_length(s, p, b)
    return 1 if c in (_COLON, _LESS, _MORE, _EQUAL, _SLASH) and after & ALPHA else 0


@compiled
def split_chunk(s: SplitState, n: int) -> int:
    """Cut a chunk of n code points. Write the pieces' ends to ``s.ends``. Return their number."""
    a, b, n_ends, n_tail, last = 0, n, 0, 0, -1
    ends, tail = s.ends, s.tail
    while b > a and b - a != last:
        if find_special(s, a, b) >= 0:
            break
        last = b - a
        pre = prefix_length(s, a, b)
        if pre and a + pre < b and find_special(s, a + pre, b) >= 0:
            a += pre
            put64(ends, n_ends, a)
            n_ends += 1
            break
        suf = suffix_length(s, a + pre, b)
        if suf and b - suf > a and find_special(s, a, b - suf) >= 0:
            put64(tail, n_tail, b)
            n_tail += 1
            b -= suf
            break
        if pre:
            a += pre
            put64(ends, n_ends, a)
            n_ends += 1
        if suf:
            put64(tail, n_tail, b)
            n_tail += 1
            b -= suf
    special = find_special(s, a, b)
    if special >= 0:
        n_ends = _write_cuts(get32(s.cuts, special), a, ends, n_ends)
    else:
        n_ends = _split_core(s, a, b, n_ends)
    for k in range(n_tail - 1, -1, -1):
        put64(ends, n_ends, get_int(tail, k))
        n_ends += 1
    return n_ends if n_ends < 2 else _reassemble(s, n_ends)


@compiled
def _split_core(s: SplitState, a: int, b: int, n_ends: int) -> int:
    """Cut a..b at its infixes. Append the ends to ``s.ends``. Return the new number of ends."""
    if a >= b:
        return n_ends
    if not is_url(s, a, b):
        start, p = a, a
        while p < b:
            if kind_of(s, p) & (ALPHA | ICON) == ALPHA:
                p += 1
                continue
            n = infix_length(s, a, b, p)
            # Don't cut after an infix at the start of a..b. The infix stays with the text after it.
            if n and p != a:
                if p != start:
                    put64(s.ends, n_ends, p)
                    n_ends += 1
                put64(s.ends, n_ends, p + n)
                n_ends += 1
                start = p + n
            p += max(n, 1)
        if start >= b:
            return n_ends
    put64(s.ends, n_ends, b)
    return n_ends + 1


@compiled
def _write_cuts(cuts: int, a: int, ends: int, n_ends: int) -> int:
    for k in range(1, MAX_SPECIAL + 1):
        if (cuts >> k) & 1:
            put64(ends, n_ends, a + k)
            n_ends += 1
    return n_ends


@compiled
def _start(s: SplitState, piece: int) -> int:
    return get_int(s.ends, piece - 1) if piece else 0


@compiled
def _parts_of(s: SplitState, first: int, count: int) -> int:
    """If ``count`` pieces from ``first`` on form an exception, return its id. Else return -1."""
    a, b = _start(s, first), get_int(s.ends, first + count - 1)
    if b - a > MAX_SPECIAL:
        return -1
    special = find_special(s, a, b)
    if special < 0 or get32(s.parts, special) == 0:
        return -1
    cuts = 0
    for k in range(first, first + count):
        cuts |= 1 << (get_int(s.ends, k) - a)
    return special if cuts == get32(s.parts, special) else -1


@compiled
def _reassemble(s: SplitState, n: int) -> int:
    """Join neighbouring pieces that form an exception, and cut them into the exception's tokens.

    If exceptions overlap, choose the one with the most pieces. If these numbers are equal, choose
    the leftmost one. Set ``s.tail[k]`` to the id of the exception that starts with piece k. Set
    it to -2 for the exception's other pieces, and to -1 for pieces outside exceptions.
    """
    any_match, longest, tail = False, 1, s.tail
    for k in range(n):
        put64(tail, k, -1)
        # Skip the search below if no piece can be the second piece of an exception.
        if k and kind_of(s, _start(s, k)) & JOINER:
            longest = MAX_SPECIAL
    for count in range(min(n, longest), 1, -1):
        for first in range(n - count + 1):
            is_taken = get_int(tail, first) != -1 or get_int(tail, first + count - 1) != -1
            if is_taken or not kind_of(s, _start(s, first)) & OPENER:
                continue
            special = _parts_of(s, first, count)
            if special >= 0:
                any_match = True
                put64(tail, first, special)
                for k in range(first + 1, first + count):
                    put64(tail, k, -2)
    return _rewrite(s, n) if any_match else n


@compiled
def _rewrite(s: SplitState, n: int) -> int:
    """For each exception in ``s.tail``, replace the ends of its pieces with its tokens' ends."""
    # An exception in ``s.tail`` never has more tokens than pieces. So each end is read before it is
    # overwritten.
    out, a, k = 0, 0, 0
    while k < n:
        special, last = get_int(s.tail, k), k + 1
        while special >= 0 and last < n and get_int(s.tail, last) == -2:
            last += 1
        b = get_int(s.ends, last - 1)
        if special >= 0:
            out = _write_cuts(get32(s.cuts, special), a, s.ends, out)
        else:
            put64(s.ends, out, b)
            out += 1
        a, k = b, last
    return out
