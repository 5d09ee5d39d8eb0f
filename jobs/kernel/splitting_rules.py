"""The English splitting rules on one whitespace-free chunk of code points, compiled.

A chunk is cut into consecutive pieces, so a split is a rising list of end positions. The rules are
those of spaCy's English tokenizer. Exceptions come first, then one prefix and one suffix at a time;
exceptions are looked up again after each. Then come URLs, then infixes. Finally exceptions are
reassembled from neighbouring pieces.

Positions a, b, k are indices of code points in the chunk ``s.cps``.
"""

from __future__ import annotations

import numpy as np

from plumbline.jobs.kernel.cache import compiled
from plumbline.jobs.kernel.language_tables import (
    ALNUM,
    ALPHA,
    BEFORE_DOT,
    CURRENCY,
    DIGIT,
    ICON,
    JOINER,
    LOWER,
    MAX_SPECIAL,
    OPENER,
    PREFIX,
    QUOTE,
    RUN_BITS,
    RUN_HASH,
    SUFFIX,
    UPPER,
)
from plumbline.jobs.kernel.memory import get32, get64, get_int, low_bytes, put64

_DOT, _PLUS, _MINUS, _COMMA, _COLON = ord("."), ord("+"), ord("-"), ord(","), ord(":")
_SLASH, _AT, _QUESTION, _HASH, _LOW_LINE = ord("/"), ord("@"), ord("?"), ord("#"), ord("_")
_APOSTROPHE, _RIGHT_QUOTE, _ELLIPSIS, _DEGREE = 0x27, 0x2019, 0x2026, 0xB0
_LESS, _EQUAL, _MORE, _DOLLAR = ord("<"), ord("="), ord(">"), ord("$")
_EN_DASH, _EM_DASH, _TILDE, _STAR, _CARET = 0x2013, 0x2014, 0x7E, 0x2A, 0x5E
_A, _C, _S, _U, _SMALL_S = ord("A"), ord("C"), ord("S"), ord("U"), ord("s")
_SMALL_C, _SMALL_F, _SMALL_K = ord("c"), ord("f"), ord("k")
_ZERO, _ONE, _TWO, _FIVE, _NINE = ord("0"), ord("1"), ord("2"), ord("5"), ord("9")
_CASE_BITS = np.uint64(0x2020202020202020)
_FNV, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


class SplitState:
    """Addresses of the tables of ``language_tables.Tables``, and of scratch memory for a chunk."""

    flags: int
    lower: int
    slots: int
    slot_mask: int
    starts: int
    codes: int
    cuts: int
    parts: int
    unit_starts: int
    n_units: int
    unit_codes: int
    runs: int
    cps: int  # code points of the chunk, 32-bit
    ends: int  # where the chunk's pieces end, 64-bit
    tail: int  # scratch of `split_chunk`, 64-bit
    word: int  # a piece in lowercase
    n_answered: int  # chunks that spaCy has split, see ``chunks.Answers``; 0 for English
    answer_starts: int  # index in ``answers`` of each such chunk's first piece, 64-bit
    answers: int  # where these chunks' pieces end, in characters, 64-bit


@compiled
def _point(s: SplitState, k: int) -> int:
    """Code point k of the chunk."""
    return get32(s.cps, k)


@compiled
def _kind(s: SplitState, k: int) -> int:
    """The flags of code point k of the chunk."""
    return get32(s.flags, get32(s.cps, k))


@compiled
def _is_digit(s: SplitState, k: int) -> bool:
    """True if code point k is an ASCII digit."""
    return _ZERO <= get32(s.cps, k) <= _NINE


@compiled
def _are_equal(one: int, other: int, n: int) -> bool:
    """True if n 32-bit items at two addresses are equal."""
    k = 0
    while k < n and get32(one, k) == get32(other, k):
        k += 1
    return k == n


@compiled
def _n_dots(s: SplitState, a: int, b: int) -> int:
    """Number of dots from a on, before b."""
    k = a
    while k < b and _point(s, k) == _DOT:
        k += 1
    return k - a


@compiled
def find_special(s: SplitState, a: int, b: int) -> int:
    """Index of the exception that equals the code points a..b, or -1."""
    n = b - a
    if n > MAX_SPECIAL or n <= 0:
        return -1
    h = _FNV
    for k in range(a, b):
        h = (h ^ np.uint64(_point(s, k))) * _FNV_PRIME
    at = np.int64(h >> np.uint64(40)) & s.slot_mask
    while get32(s.slots, at):
        index = get32(s.slots, at) - 1
        start = get32(s.starts, index)
        is_as_long = get32(s.starts, index + 1) - start == n
        if is_as_long and _are_equal(s.codes + 4 * start, s.cps + 4 * a, n):
            return index
        at = (at + 1) & s.slot_mask
    return -1


@compiled
def may_split(s: SplitState, at: int, n: int) -> bool:
    """True if an exception may split the n bytes of letters and apostrophes at an address."""
    first = (get64(at, 0) | _CASE_BITS) & low_bytes(min(n, 8))
    bit = np.int64(first * RUN_HASH >> np.uint64(64 - RUN_BITS))
    return (get32(s.runs, bit >> 5) >> (bit & 31)) & 1 != 0


@compiled
def _long_currency(s: SplitState, a: int, b: int) -> int:
    """Length of "US$", "C$" or "A$" at a; 0 for anything else."""
    if a + 1 < b and _point(s, a + 1) == _DOLLAR and _point(s, a) != _U:
        return 2
    is_us = a + 2 < b and _point(s, a) == _U and _point(s, a + 1) == _S
    return 3 if is_us and _point(s, a + 2) == _DOLLAR else 0


@compiled
def prefix_length(s: SplitState, a: int, b: int) -> int:
    """Number of characters at the start of a..b that split off as a prefix; 0 for none."""
    c = _point(s, a)
    if c == _DOT:
        n = _n_dots(s, a, b)
        return n if n >= 2 else 0
    if c == _PLUS:
        return 0 if a + 1 < b and _is_digit(s, a + 1) else 1
    if _kind(s, a) & PREFIX:
        return 1
    return _long_currency(s, a, b) if c in (_U, _C, _A) else 0


@compiled
def _final_dots(s: SplitState, a: int, b: int) -> int:
    k = b - 1
    while k > a and _point(s, k - 1) == _DOT:
        k -= 1
    if b - k >= 2:
        return b - k
    if b - a < 2:
        return 0
    if _kind(s, b - 2) & BEFORE_DOT:
        return 1
    if b - a < 3:
        return 0
    if _kind(s, b - 2) & UPPER and _kind(s, b - 3) & UPPER:
        return 1
    is_temperature = (_point(s, b - 2) | 32) in (_SMALL_F, _SMALL_C, _SMALL_K)
    return 1 if is_temperature and _point(s, b - 3) == _DEGREE else 0


@compiled
def _final_unit(s: SplitState, a: int, b: int) -> int:
    """Longest unit or long currency sign at the end that follows an ASCII digit."""
    best = 0
    for unit in range(s.n_units):
        first = get32(s.unit_starts, unit)
        n = get32(s.unit_starts, unit + 1) - first
        at = b - n
        if n > best and at > a and _is_digit(s, at - 1):
            if _are_equal(s.unit_codes + 4 * first, s.cps + 4 * at, n):
                best = n
    return best


@compiled
def suffix_length(s: SplitState, a: int, b: int) -> int:
    """Number of characters at the end of a..b that split off as a suffix; 0 for none."""
    if a >= b:
        return 0
    c = _point(s, b - 1)
    if c == _DOT:
        return _final_dots(s, a, b)
    if c in (_SMALL_S, _S) and b - a >= 2 and _point(s, b - 2) in (_APOSTROPHE, _RIGHT_QUOTE):
        return 2
    best = 0
    if _kind(s, b - 1) & SUFFIX:
        is_double = c == _ELLIPSIS and b - a >= 2 and _point(s, b - 2) == _ELLIPSIS
        best = 2 if is_double else 1
    elif b - a >= 2 and _is_digit(s, b - 2) and (c == _PLUS or _kind(s, b - 1) & CURRENCY):
        best = 1
    for k in range(max(a, b - 6), b - 1):
        if _is_digit(s, k):
            return max(best, _final_unit(s, a, b))
    return best


@compiled
def _hyphen_length(s: SplitState, p: int, b: int) -> int:
    c = _point(s, p)
    longest = 3 if c == _MINUS else 2 if c == _EM_DASH else 1
    for n in range(1, longest + 1):
        if p + n >= b or (n > 1 and _point(s, p + n - 1) != c):
            return 0
        if _kind(s, p + n) & ALPHA:
            return n
    return 0


@compiled
def infix_length(s: SplitState, a: int, b: int, p: int) -> int:
    """Length of the infix at position p of a..b; 0 for none."""
    c, kind = _point(s, p), _kind(s, p)
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
    before, after = _kind(s, p - 1), _kind(s, p + 1)
    is_after_digit = _is_digit(s, p - 1)
    if c in (_PLUS, _MINUS, _STAR, _CARET) and is_after_digit:
        if _is_digit(s, p + 1) or _point(s, p + 1) == _MINUS:
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
    """Cut the chunk of n code points; writes ends of pieces to ``s.ends``, returns how many."""
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
    """Cut a..b at its infixes; returns the new number of ends."""
    if a >= b:
        return n_ends
    if not is_url(s, a, b):
        start, p = a, a
        while p < b:
            if _kind(s, p) & (ALPHA | ICON) == ALPHA:
                p += 1
                continue
            n = infix_length(s, a, b, p)
            # An infix at the very start stays part of the word that follows it.
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
    """Where a piece starts."""
    return get_int(s.ends, piece - 1) if piece else 0


@compiled
def _parts_of(s: SplitState, first: int, count: int) -> int:
    """Index of the exception whose pieces are the ``count`` pieces from ``first`` on, or -1."""
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
    """Reassemble exceptions from neighbouring pieces, longest first, leftmost first.

    ``s.tail[k]`` becomes the index of the exception that starts with piece k, -2 for its other
    pieces, and -1 for a piece outside exceptions.
    """
    any_match, longest, tail = False, 1, s.tail
    for k in range(n):
        put64(tail, k, -1)
        # Nothing is reassembled unless a piece can be the second of an exception.
        if k and _kind(s, _start(s, k)) & JOINER:
            longest = MAX_SPECIAL
    for count in range(min(n, longest), 1, -1):
        for first in range(n - count + 1):
            is_taken = get_int(tail, first) != -1 or get_int(tail, first + count - 1) != -1
            if is_taken or not _kind(s, _start(s, first)) & OPENER:
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
    """Replace the ends of the pieces by those of the exceptions in ``s.tail``."""
    # An exception never has more tokens than the pieces that it replaces here, so ``ends`` is never
    # overwritten before it is read.
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


# URLs and e-mail addresses, by the rule of spaCy's English tokenizer: an optional scheme and user,
# then a public IPv4 address or a name with a lowercase last label, then an optional port and path.


@compiled
def _port_and_path(s: SplitState, r: int, b: int) -> bool:
    """True if r..b is empty, or a port, a path, or both."""
    if r < b and _point(s, r) == _COLON:
        k = r + 1
        while k < b and k - r <= 5 and _kind(s, k) & DIGIT:
            k += 1
        if k - r - 1 < 2:
            return False
        r = k
    return r >= b or _point(s, r) in (_SLASH, _QUESTION, _HASH)


@compiled
def _is_host_char(c: int) -> bool:
    is_ascii_letter = 65 <= c <= 90 or 97 <= c <= 122
    return _ZERO <= c <= _NINE or is_ascii_letter or 0xA1 <= c <= 0xFFFF


@compiled
def _is_label(s: SplitState, a: int, b: int) -> bool:
    if b - a < 1 or b - a > 64:
        return False
    if not (_is_host_char(_point(s, a)) and _is_host_char(_point(s, b - 1))):
        return False
    for k in range(a + 1, b - 1):
        c = _point(s, k)
        if not (_is_host_char(c) or c == _LOW_LINE or c == _MINUS):
            return False
    return True


@compiled
def _is_octet(s: SplitState, a: int, b: int, part: int) -> bool:
    """True if a..b can be number ``part`` (0 to 3) of a public IPv4 address.

    Numbers of three digits start with 1 or 2 and are below 224, 256, 256 or 255 in part 0, 1, 2 or
    3. Shorter ones start with 1 to 9 in parts 0 and 3, with any digit in parts 1 and 2. Digits
    whose value isn't tested may be of any script.
    """
    if not 1 <= b - a <= 3:
        return False
    for k in range(a, b):
        if not _kind(s, k) & DIGIT:
            return False
    if b - a < 3:
        return part == 1 or part == 2 or _ONE <= _point(s, a) <= _NINE
    if _point(s, a) != _TWO:
        return _point(s, a) == _ONE
    tens = _TWO if part == 0 else _FIVE
    ones = _FIVE - 2 if part == 0 else _FIVE - 1 if part == 3 else _FIVE
    if _point(s, a + 1) == tens:
        return _ZERO <= _point(s, a + 2) <= ones
    return _ZERO <= _point(s, a + 1) < tens


@compiled
def _value(s: SplitState, a: int, b: int) -> int:
    """The number a..b in ASCII digits, or -1."""
    value = 0
    for k in range(a, b):
        if not _is_digit(s, k):
            return -1
        value = value * 10 + _point(s, k) - _ZERO
    return value


@compiled
def _is_address(s: SplitState, h: int, r: int) -> bool:
    """True if h..r is a public IPv4 address in dotted notation."""
    part, a, first, second = 0, h, 0, 0
    for k in range(h, r + 1):
        if k < r and _point(s, k) != _DOT:
            continue
        if part > 3 or not _is_octet(s, a, k, part):
            return False
        if part == 0:
            first = _value(s, a, k)
        elif part == 1:
            # All of 172.20 to 172.29 is private, so the second digit's value does not matter.
            second = 20 if k - a == 2 and _point(s, a) == _TWO else _value(s, a, k)
        part, a = part + 1, k + 1
    if part != 4:
        return False
    private = first == 10 or first == 127 or (first == 172 and 16 <= second <= 31)
    return not (private or (first == 169 and second == 254) or (first == 192 and second == 168))


@compiled
def _is_host(s: SplitState, h: int, b: int) -> bool:
    """True if h..b is a host with an optional port and path."""
    r, last_dot, label = h, -1, h
    names = True
    while r < b and _point(s, r) not in (_COLON, _SLASH, _QUESTION, _HASH):
        if _point(s, r) == _AT:
            return False
        if _point(s, r) == _DOT:
            names = names and _is_label(s, label, r)
            last_dot, label = r, r + 1
        r += 1
    if last_dot < 0 or not _port_and_path(s, r, b):
        return False
    if names and 2 <= r - label <= 63:
        k = label
        while k < r and _kind(s, k) & LOWER:
            k += 1
        if k == r:
            return True
    return _is_address(s, h, r)


@compiled
def is_url(s: SplitState, a: int, b: int) -> bool:
    """True if a..b is a URL or e-mail address as a whole."""
    dot = False
    for k in range(a + 1, b - 1):
        dot = dot or _point(s, k) == _DOT
    if not dot:
        return False
    if _is_host(s, a, b):
        return True
    k = a
    while k < b and (_kind(s, k) & ALNUM or _point(s, k) in (_LOW_LINE, _PLUS, _MINUS, _DOT)):
        k += 1
    if k - a >= 2 and k + 2 < b and _point(s, k) == _COLON:
        is_scheme = _point(s, k + 1) == _SLASH and _point(s, k + 2) == _SLASH
        if is_scheme and _is_host(s, k + 3, b):
            return True
    for k in range(a + 1, b - 1):
        if _point(s, k) == _AT and _is_host(s, k + 1, b):
            return True
    return False
