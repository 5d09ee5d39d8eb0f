"""Find where JSON strings, numbers and literals end, in compiled code.

Each function reads a value, or a part of a value, that starts at address ``i``. The line ends at
address ``b``. Most functions return -1 if the value is malformed.
"""

from __future__ import annotations

import numpy as np

from plumbline.jobs.kernel.cache import compiled
from plumbline.jobs.kernel.memory import get8, get64, range_bits, trailing_zeros

_QUOTE, _BACKSLASH = ord('"'), ord("\\")
#: Characters that may follow a backslash, except u: quote, backslash, slash, b, f, n, r, t.
_ESCAPED = (34, 92, 47, 98, 102, 110, 114, 116)
_WHITE_SPACE = (32, 9, 10, 13)
#: Longest number, in bytes, that is accepted here. Python checks lines with longer numbers. It
#: rejects integers with more than 4,300 digits.
_MAX_NUMBER = 4000


@compiled
def _stops(at: int) -> int:
    """Return a mask of control characters, quotes, backslashes and bytes > 0x7F in at..at+63."""
    stops = range_bits(at, _QUOTE, 1) | range_bits(at, _BACKSLASH, 1)
    return stops | range_bits(at, 0, 0x20) | range_bits(at, 0x80, 0x80)


@compiled
def _utf8_length(i: int, b: int) -> int:
    """Return the length of the UTF-8 sequence at i (first byte >= 0x80), or 0 if malformed."""
    c = get8(i, 0)
    n = 2 if 0xC2 <= c < 0xE0 else 3 if 0xE0 <= c < 0xF0 else 4 if 0xF0 <= c < 0xF5 else 0
    if n == 0 or i + n > b:
        return 0
    # Refuse overlong forms, surrogates and code points above U+10FFFF.
    low = 0xA0 if c == 0xE0 else 0x90 if c == 0xF0 else 0x80
    high = 0x9F if c == 0xED else 0x8F if c == 0xF4 else 0xBF
    if not low <= get8(i, 1) <= high:
        return 0
    for k in range(2, n):
        if get8(i, k) & 0xC0 != 0x80:
            return 0
    return n


@compiled
def _hex4(i: int, b: int) -> int:
    """Return the value of four hexadecimal digits at i, or -1 if malformed."""
    if i + 4 > b:
        return -1
    value = 0
    for k in range(i, i + 4):
        c = get8(k, 0)
        if 48 <= c <= 57:
            value = value * 16 + c - 48
        elif 97 <= (c | 32) <= 102:
            value = value * 16 + (c | 32) - 87
        else:
            return -1
    return value


@compiled
def escaped_code(i: int, e: int) -> int:
    """Return the code point of the \\u escape at i, or -1 if the escape is malformed.

    Code points above 0xFFFF take two escapes (twelve bytes). A lone surrogate is malformed.
    """
    c = _hex4(i + 2, e)
    if c < 0xD800 or c > 0xDFFF:
        return c
    if c > 0xDBFF or i + 8 > e or get8(i, 6) != _BACKSLASH or get8(i, 7) != 117:
        return -1
    low = _hex4(i + 8, e)
    if low < 0xDC00 or low > 0xDFFF:
        return -1
    return 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00)


@compiled
def string_end(i: int, b: int) -> int:
    """Return the address of the quote that ends the string at i, or -1 if malformed."""
    while i < b:
        stops = _stops(i)
        if stops == np.uint64(0):
            i += 64
            continue
        i += trailing_zeros(stops)
        if i >= b:
            return -1
        c = get8(i, 0)
        if c == _QUOTE:
            return i
        if c >= 0x80:
            n = _utf8_length(i, b)
            if n == 0:
                return -1
            i += n
        elif c == _BACKSLASH:
            e = get8(i, 1) if i + 1 < b else 0
            if e == 117:
                point = escaped_code(i, b)
                if point < 0:
                    return -1
                i += 6 if point < 0x10000 else 12
            elif e in _ESCAPED:
                i += 2
            else:
                return -1
        else:
            return -1
    return -1


@compiled
def _digits(i: int, b: int) -> int:
    while i < b and 48 <= get8(i, 0) <= 57:
        i += 1
    return i


@compiled
def number_end(i: int, b: int) -> int:
    """Return the end of the number at i, or -1 if malformed or longer than ``_MAX_NUMBER``."""
    start = i
    if get8(i, 0) == 45:
        i += 1
    first = i
    i = _digits(i, b)
    if i == first or (get8(first, 0) == 48 and i - first > 1):
        return -1
    if i < b and get8(i, 0) == 46:
        k = _digits(i + 1, b)
        if k == i + 1:
            return -1
        i = k
    if i < b and (get8(i, 0) | 32) == 101:
        i += 1
        if i < b and (get8(i, 0) == 43 or get8(i, 0) == 45):
            i += 1
        k = _digits(i, b)
        if k == i:
            return -1
        i = k
    return i if i - start <= _MAX_NUMBER else -1


@compiled
def literal_end(i: int, b: int) -> int:
    """Return the end of true, false or null at i, or -1 for anything else."""
    if i + 4 <= b:
        four = get64(i, 0) & np.uint64(0xFFFFFFFF)
        if four == np.uint64(0x65757274) or four == np.uint64(0x6C6C756E):
            return i + 4
        if four == np.uint64(0x736C6166) and i + 5 <= b and get8(i, 4) == 101:
            return i + 5
    return -1


@compiled
def skip(i: int, b: int) -> int:
    while i < b and get8(i, 0) in _WHITE_SPACE:
        i += 1
    return i
