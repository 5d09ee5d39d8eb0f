"""The English splitting rules on one whitespace-free chunk of code points, compiled.

A chunk is cut into consecutive pieces, so a split is a rising list of end positions. The rules are
those of spaCy's English tokenizer. Exceptions come first, then one prefix and one suffix at a time;
exceptions are looked up again after each. Then come URLs, then infixes. Finally exceptions are
reassembled from neighbouring pieces.

Arguments are addresses. ``flags`` and ``lang`` (see ``language_tables.Tables``) and ``cps`` (the
chunk's code points) have 32-bit items, ``ends`` and ``tail`` (positions) 64-bit items.
"""

from __future__ import annotations

import numpy as np

from plumbline.jobs.kernel.cache import compiled
from plumbline.jobs.kernel.language_tables import (
    ALNUM,
    ALPHA,
    BEFORE_DOT,
    CODES,
    CURRENCY,
    CUTS,
    DIGIT,
    ICON,
    JOINER,
    LOWER,
    MAX_SPECIAL,
    OPENER,
    PARTS,
    PREFIX,
    QUOTE,
    RUN_BITS,
    RUN_HASH,
    RUNS,
    SLOT_MASK,
    SLOTS,
    STARTS,
    SUFFIX,
    UNIT_CODES,
    UNIT_STARTS,
    UPPER,
)
from plumbline.jobs.kernel.memory import get32, get64, get_int, low_bytes, put64

_DOT, _PLUS, _MINUS, _COMMA, _COLON = ord("."), ord("+"), ord("-"), ord(","), ord(":")
_SLASH, _AT, _QUESTION, _HASH, _LOW_LINE = ord("/"), ord("@"), ord("?"), ord("#"), ord("_")
_APOSTROPHE, _RIGHT_QUOTE, _ELLIPSIS, _DEGREE = 0x27, 0x2019, 0x2026, 0xB0
_DOLLAR = ord("$")
_EN_DASH, _EM_DASH, _TILDE, _STAR, _CARET = 0x2013, 0x2014, 0x7E, 0x2A, 0x5E
_CASE_BITS = np.uint64(0x2020202020202020)
_FNV, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@compiled
def find_special(lang: int, cps: int, a: int, b: int) -> int:
    """Index of the exception that equals cps[a:b], or -1."""
    n = b - a
    if n > MAX_SPECIAL or n <= 0:
        return -1
    h = _FNV
    for k in range(a, b):
        h = (h ^ np.uint64(get32(cps, k))) * _FNV_PRIME
    mask = get32(lang, SLOT_MASK)
    at = np.int64(h >> np.uint64(40)) & mask
    while get32(lang, get32(lang, SLOTS) + at):
        index = get32(lang, get32(lang, SLOTS) + at) - 1
        start = get32(lang, get32(lang, STARTS) + index)
        if get32(lang, get32(lang, STARTS) + index + 1) - start == n:
            start += get32(lang, CODES)
            k = 0
            while k < n and get32(lang, start + k) == get32(cps, a + k):
                k += 1
            if k == n:
                return np.int64(index)
        at = (at + 1) & mask
    return -1


@compiled
def may_split(lang: int, s: int, n: int) -> bool:
    """True if an exception may split the n bytes of letters and apostrophes at the address s."""
    first = (get64(s, 0) | _CASE_BITS) & low_bytes(min(n, 8))
    bit = np.int64(first * RUN_HASH >> np.uint64(64 - RUN_BITS))
    return (get32(lang, get32(lang, RUNS) + (bit >> 5)) >> (bit & 31)) & 1 != 0


@compiled
def _long_currency(cps: int, a: int, b: int) -> int:
    """Length of "US$", "C$" or "A$" at a; 0 for anything else."""
    if a + 1 < b and get32(cps, a + 1) == _DOLLAR and get32(cps, a) != 85:
        return 2
    if (
        a + 2 < b
        and get32(cps, a) == 85
        and get32(cps, a + 1) == 83
        and get32(cps, a + 2) == _DOLLAR
    ):
        return 3
    return 0


@compiled
def prefix_length(flags: int, cps: int, a: int, b: int) -> int:
    """Number of characters at the start of cps[a:b] that split off as a prefix; 0 for none."""
    c = get32(cps, a)
    if c == _DOT:
        k = a + 1
        while k < b and get32(cps, k) == _DOT:
            k += 1
        return k - a if k - a >= 2 else 0
    if c == _PLUS:
        return 0 if a + 1 < b and is_ascii_digit(get32(cps, a + 1)) else 1
    if get32(flags, c) & PREFIX:
        return 1
    if c == 85 or c == 67 or c == 65:
        return _long_currency(cps, a, b)
    return 0


@compiled
def _final_dots(flags: int, cps: int, a: int, b: int) -> int:
    k = b - 1
    while k > a and get32(cps, k - 1) == _DOT:
        k -= 1
    if b - k >= 2:
        return b - k
    if b - a < 2:
        return 0
    before = get32(cps, b - 2)
    if get32(flags, before) & BEFORE_DOT:
        return 1
    if b - a < 3:
        return 0
    if get32(flags, before) & UPPER and get32(flags, get32(cps, b - 3)) & UPPER:
        return 1
    temperature = before | 32
    if get32(cps, b - 3) == _DEGREE and (
        temperature == 102 or temperature == 99 or temperature == 107
    ):
        return 1
    return 0


@compiled
def _final_unit(lang: int, cps: int, a: int, b: int) -> int:
    """Longest unit or long currency sign at the end that follows an ASCII digit."""
    best = 0
    for unit in range(get32(lang, get32(lang, UNIT_STARTS))):
        first = np.int64(get32(lang, get32(lang, UNIT_STARTS) + 1 + unit))
        n = np.int64(get32(lang, get32(lang, UNIT_STARTS) + 2 + unit)) - first
        at = b - n
        if n > best and at > a and is_ascii_digit(get32(cps, at - 1)):
            k = 0
            while k < n and get32(lang, get32(lang, UNIT_CODES) + first + k) == get32(cps, at + k):
                k += 1
            if k == n:
                best = n
    return best


@compiled
def suffix_length(flags: int, lang: int, cps: int, a: int, b: int) -> int:
    """Number of characters at the end of cps[a:b] that split off as a suffix; 0 for none."""
    if a >= b:
        return 0
    c = get32(cps, b - 1)
    if c == _DOT:
        return _final_dots(flags, cps, a, b)
    if (c == 115 or c == 83) and b - a >= 2:
        if get32(cps, b - 2) == _APOSTROPHE or get32(cps, b - 2) == _RIGHT_QUOTE:
            return 2
    best = 0
    if get32(flags, c) & SUFFIX:
        best = 1
        if c == _ELLIPSIS and b - a >= 2 and get32(cps, b - 2) == _ELLIPSIS:
            best = 2
    elif (
        b - a >= 2
        and is_ascii_digit(get32(cps, b - 2))
        and (c == _PLUS or get32(flags, c) & CURRENCY)
    ):
        best = 1
    for k in range(max(a, b - 6), b - 1):
        if is_ascii_digit(get32(cps, k)):
            return max(best, _final_unit(lang, cps, a, b))
    return best


@compiled
def _hyphen_length(flags: int, cps: int, p: int, b: int) -> int:
    c = get32(cps, p)
    longest = 3 if c == _MINUS else 2 if c == _EM_DASH else 1
    for n in range(1, longest + 1):
        if p + n >= b or (n > 1 and get32(cps, p + n - 1) != c):
            return 0
        if get32(flags, get32(cps, p + n)) & ALPHA:
            return n
    return 0


@compiled
def infix_length(flags: int, cps: int, a: int, b: int, p: int) -> int:
    """Length of the infix at position p of cps[a:b]; 0 for none."""
    c = get32(cps, p)
    kind = get32(flags, c)
    if c == _DOT:
        k = p + 1
        while k < b and get32(cps, k) == _DOT:
            k += 1
        if k - p >= 2:
            return k - p
    elif c == _ELLIPSIS or kind & ICON:
        return 1
    elif kind & ALPHA:
        return 0
    if p == a or p + 1 >= b:
        return 0
    before, after = get32(cps, p - 1), get32(cps, p + 1)
    if c == _PLUS or c == _MINUS or c == _STAR or c == _CARET:
        if is_ascii_digit(before) and (is_ascii_digit(after) or after == _MINUS):
            return 1
    if c == _DOT:
        sentence = get32(flags, before) & (LOWER | QUOTE) and get32(flags, after) & (UPPER | QUOTE)
        return 1 if sentence else 0
    if c == _COMMA:
        return 1 if get32(flags, before) & ALPHA and get32(flags, after) & ALPHA else 0
    if not (get32(flags, before) & ALPHA or is_ascii_digit(before)):
        return 0
    if c == _MINUS or c == _EN_DASH or c == _EM_DASH or c == _TILDE:
        return _hyphen_length(flags, cps, p, b)
    if c == _COLON or c == 60 or c == 62 or c == 61 or c == _SLASH:
        return 1 if get32(flags, after) & ALPHA else 0
    return 0


@compiled
def split_chunk(flags: int, lang: int, cps: int, n: int, ends: int, tail: int) -> int:
    """Cut cps[0:n] into pieces; writes their ends to ``ends`` and returns the number of pieces.

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
            put64(ends, n_ends, a)
            n_ends += 1
            break
        suf = suffix_length(flags, lang, cps, a + pre, b)
        if suf and b - suf > a and find_special(lang, cps, a, b - suf) >= 0:
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
    special = find_special(lang, cps, a, b)
    if special >= 0:
        n_ends = _write_cuts(get32(lang, get32(lang, CUTS) + special), a, ends, n_ends)
    else:
        n_ends = _split_core(flags, cps, a, b, ends, n_ends)
    for k in range(n_tail - 1, -1, -1):
        put64(ends, n_ends, get_int(tail, k))
        n_ends += 1
    return n_ends if n_ends < 2 else _reassemble(flags, lang, cps, ends, n_ends, tail)


@compiled
def _split_core(flags: int, cps: int, a: int, b: int, ends: int, n_ends: int) -> int:
    if a >= b:
        return n_ends
    if not is_url(flags, cps, a, b):
        start, p = a, a
        while p < b:
            if get32(flags, get32(cps, p)) & (ALPHA | ICON) == ALPHA:
                p += 1
                continue
            n = infix_length(flags, cps, a, b, p)
            # An infix at the very start stays part of the word that follows it.
            if n and p != a:
                if p != start:
                    put64(ends, n_ends, p)
                    n_ends += 1
                put64(ends, n_ends, p + n)
                n_ends += 1
                start = p + n
            p += max(n, 1)
        if start >= b:
            return n_ends
    put64(ends, n_ends, b)
    return n_ends + 1


@compiled
def _write_cuts(cuts: int, a: int, ends: int, n_ends: int) -> int:
    for k in range(1, MAX_SPECIAL + 1):
        if (cuts >> k) & 1:
            put64(ends, n_ends, a + k)
            n_ends += 1
    return n_ends


@compiled
def _parts_of(lang: int, cps: int, ends: int, first: int, count: int) -> int:
    """Index of the exception whose pieces are the ``count`` pieces from ``first`` on, or -1."""
    a = get_int(ends, first - 1) if first else 0
    b = get_int(ends, first + count - 1)
    if b - a > MAX_SPECIAL:
        return -1
    special = find_special(lang, cps, a, b)
    if special < 0 or get32(lang, get32(lang, PARTS) + special) == 0:
        return -1
    cuts = 0
    for k in range(first, first + count):
        cuts |= 1 << (get_int(ends, k) - a)
    return special if cuts == get32(lang, get32(lang, PARTS) + special) else -1


@compiled
def _reassemble(flags: int, lang: int, cps: int, ends: int, n: int, tail: int) -> int:
    """Reassemble exceptions from neighbouring pieces, longest first, leftmost first.

    ``tail[k]`` becomes the index of the exception that starts with piece k, -2 for its other
    pieces, and -1 for a piece outside exceptions.
    """
    any_match = False
    longest = 1
    for k in range(n):
        put64(tail, k, -1)
        # Nothing is reassembled unless a piece can be the second of an exception.
        if k and get32(flags, get32(cps, get_int(ends, k - 1))) & JOINER:
            longest = MAX_SPECIAL
    for count in range(min(n, longest), 1, -1):
        for first in range(n - count + 1):
            if not get32(flags, get32(cps, get_int(ends, first - 1) if first else 0)) & OPENER:
                continue
            if get_int(tail, first) != -1 or get_int(tail, first + count - 1) != -1:
                continue
            special = _parts_of(lang, cps, ends, first, count)
            if special >= 0:
                any_match = True
                put64(tail, first, special)
                for k in range(first + 1, first + count):
                    put64(tail, k, -2)
    return _rewrite(lang, ends, n, tail) if any_match else n


@compiled
def _rewrite(lang: int, ends: int, n: int, tail: int) -> int:
    # An exception never has more tokens than the pieces that it replaces here, so ``ends`` is never
    # overwritten before it is read.
    out, a, k = 0, 0, 0
    while k < n:
        if get_int(tail, k) < 0:
            a = get_int(ends, k)
            put64(ends, out, a)
            out += 1
            k += 1
            continue
        cuts = get32(lang, get32(lang, CUTS) + get_int(tail, k))
        last = k + 1
        while last < n and get_int(tail, last) == -2:
            last += 1
        b = get_int(ends, last - 1)
        out = _write_cuts(cuts, a, ends, out)
        a, k = b, last
    return out


# URLs and e-mail addresses, by the rule of spaCy's English tokenizer: an optional scheme and user,
# then a public IPv4 address or a name with a lowercase last label, then an optional port and path.


@compiled
def is_ascii_digit(c: int) -> bool:
    return 48 <= c <= 57


@compiled
def _port_and_path(flags: int, cps: int, r: int, b: int) -> bool:
    """True if cps[r:b] is empty, or a port, a path, or both."""
    if r < b and get32(cps, r) == _COLON:
        k = r + 1
        while k < b and k - r <= 5 and get32(flags, get32(cps, k)) & DIGIT:
            k += 1
        if k - r - 1 < 2:
            return False
        r = k
    return r >= b or get32(cps, r) == _SLASH or get32(cps, r) == _QUESTION or get32(cps, r) == _HASH


@compiled
def _is_host_char(c: int) -> bool:
    return 48 <= c <= 57 or 65 <= c <= 90 or 97 <= c <= 122 or 0xA1 <= c <= 0xFFFF


@compiled
def _is_label(cps: int, a: int, b: int) -> bool:
    if (
        b - a < 1
        or b - a > 64
        or not (_is_host_char(get32(cps, a)) and _is_host_char(get32(cps, b - 1)))
    ):
        return False
    for k in range(a + 1, b - 1):
        if not (
            _is_host_char(get32(cps, k)) or get32(cps, k) == _LOW_LINE or get32(cps, k) == _MINUS
        ):
            return False
    return True


@compiled
def _is_octet(flags: int, cps: int, a: int, b: int, part: int) -> bool:
    """True if cps[a:b] can be number ``part`` (0 to 3) of a public IPv4 address.

    Numbers of three digits start with 1 or 2 and are below 224, 256, 256 or 255 in part 0, 1, 2 or
    3. Shorter ones start with 1 to 9 in parts 0 and 3, with any digit in parts 1 and 2. Digits
    whose value isn't tested may be of any script.
    """
    if not 1 <= b - a <= 3:
        return False
    for k in range(a, b):
        if not get32(flags, get32(cps, k)) & DIGIT:
            return False
    if b - a < 3:
        return part == 1 or part == 2 or 49 <= get32(cps, a) <= 57
    if get32(cps, a) != 50:
        return get32(cps, a) == 49
    tens = 50 if part == 0 else 53
    ones = 51 if part == 0 else 52 if part == 3 else 53
    if get32(cps, a + 1) == tens:
        return 48 <= get32(cps, a + 2) <= ones
    return 48 <= get32(cps, a + 1) < tens


@compiled
def _value(cps: int, a: int, b: int) -> int:
    """The number cps[a:b] in ASCII digits, or -1."""
    value = 0
    for k in range(a, b):
        if not is_ascii_digit(get32(cps, k)):
            return -1
        value = value * 10 + get32(cps, k) - 48
    return value


@compiled
def _is_address(flags: int, cps: int, h: int, r: int) -> bool:
    """True if cps[h:r] is a public IPv4 address in dotted notation."""
    part, a, first, second = 0, h, 0, 0
    for k in range(h, r + 1):
        if k < r and get32(cps, k) != _DOT:
            continue
        if part > 3 or not _is_octet(flags, cps, a, k, part):
            return False
        if part == 0:
            first = _value(cps, a, k)
        elif part == 1:
            # All of 172.20 to 172.29 is private, so the second digit's value does not matter.
            second = 20 if k - a == 2 and get32(cps, a) == 50 else _value(cps, a, k)
        part, a = part + 1, k + 1
    if part != 4:
        return False
    private = first == 10 or first == 127 or (first == 172 and 16 <= second <= 31)
    return not (private or (first == 169 and second == 254) or (first == 192 and second == 168))


@compiled
def _is_host(flags: int, cps: int, h: int, b: int) -> bool:
    """True if cps[h:b] is a host with an optional port and path."""
    r, last_dot, label = h, -1, h
    names = True
    while r < b and not (
        get32(cps, r) == _COLON
        or get32(cps, r) == _SLASH
        or get32(cps, r) == _QUESTION
        or get32(cps, r) == _HASH
    ):
        if get32(cps, r) == _AT:
            return False
        if get32(cps, r) == _DOT:
            names = names and _is_label(cps, label, r)
            last_dot, label = r, r + 1
        r += 1
    if last_dot < 0 or not _port_and_path(flags, cps, r, b):
        return False
    if names and 2 <= r - label <= 63:
        k = label
        while k < r and get32(flags, get32(cps, k)) & LOWER:
            k += 1
        if k == r:
            return True
    return _is_address(flags, cps, h, r)


@compiled
def is_url(flags: int, cps: int, a: int, b: int) -> bool:
    """True if cps[a:b] is a URL or e-mail address as a whole."""
    dot = False
    for k in range(a + 1, b - 1):
        dot = dot or get32(cps, k) == _DOT
    if not dot:
        return False
    if _is_host(flags, cps, a, b):
        return True
    start = a
    k = a
    while k < b and (
        get32(flags, get32(cps, k)) & ALNUM
        or get32(cps, k) == _LOW_LINE
        or get32(cps, k) == _PLUS
        or get32(cps, k) == _MINUS
        or get32(cps, k) == _DOT
    ):
        k += 1
    if k - a >= 2 and k + 2 < b and get32(cps, k) == _COLON:
        if get32(cps, k + 1) == _SLASH and get32(cps, k + 2) == _SLASH:
            start = k + 3
            if _is_host(flags, cps, start, b):
                return True
    for k in range(a + 1, b - 1):
        if get32(cps, k) == _AT and _is_host(flags, cps, k + 1, b):
            return True
    return False
