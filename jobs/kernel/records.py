"""One line of JSON to the text in it, compiled.

The compiled parser accepts only lines that are certainly valid: strict UTF-8, strict JSON, an
object whose last top-level ``text`` is a string without lone surrogates. Everything else goes to
``jobs.kernel.json_lines.judge``, which decides as ``json.loads`` does and words the reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from plumbline.jobs.kernel.bits import json_stops, load64, store64, trailing_zeros

_QUOTE, _BACKSLASH = ord('"'), ord("\\")
_MAX_DEPTH = 60
#: Python refuses integers of more than 4,300 digits; longer literals are left to it.
_MAX_NUMBER = 4000


@njit(cache=True)
def utf8_length(buf: Any, i: int, b: int) -> int:
    """Bytes of the well-formed UTF-8 sequence at i (its lead is >= 0x80); 0 when malformed."""
    c = np.int64(buf[i])
    n = 2 if 0xC2 <= c < 0xE0 else 3 if 0xE0 <= c < 0xF0 else 4 if 0xF0 <= c < 0xF5 else 0
    if n == 0 or i + n > b:
        return 0
    second = np.int64(buf[i + 1])
    low, high = 0x80, 0xBF
    if c == 0xE0:
        low = 0xA0
    elif c == 0xED:
        high = 0x9F
    elif c == 0xF0:
        low = 0x90
    elif c == 0xF4:
        high = 0x8F
    if second < low or second > high:
        return 0
    for k in range(2, n):
        if buf[i + k] & 0xC0 != 0x80:
            return 0
    return n


@njit(cache=True)
def hex4(buf: Any, i: int, b: int) -> int:
    """Value of four hexadecimal digits at i, -1 when they are none."""
    if i + 4 > b:
        return -1
    value = 0
    for k in range(i, i + 4):
        c = np.int64(buf[k])
        if 48 <= c <= 57:
            value = value * 16 + c - 48
        elif 97 <= (c | 32) <= 102:
            value = value * 16 + (c | 32) - 87
        else:
            return -1
    return value


@njit(cache=True)
def _escaped_code(buf: Any, i: int, e: int) -> int:
    """Code point of the \\u escape at i (twelve bytes from 0x10000 on).

    -1 when it is malformed or a lone surrogate.
    """
    c = hex4(buf, i + 2, e)
    if c < 0xD800 or c > 0xDFFF:
        return c
    if c > 0xDBFF or i + 8 > e or buf[i + 6] != _BACKSLASH or buf[i + 7] != 117:
        return -1
    low = hex4(buf, i + 8, e)
    if low < 0xDC00 or low > 0xDFFF:
        return -1
    return 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00)


@njit(cache=True)
def _string_end(buf: Any, i: int, b: int, out: Any) -> int:
    """Index of the quote that closes the string whose content starts at i, -1 when malformed.

    Sets out[2] to 1 when the string holds a backslash.
    """
    while i < b:
        stops = json_stops(load64(buf, i))
        if stops == np.uint64(0):
            i += 8
            continue
        i += np.int64(trailing_zeros(stops)) >> 3
        if i >= b:
            return -1
        c = np.int64(buf[i])
        if c == _QUOTE:
            return i
        if c >= 0x80:
            n = utf8_length(buf, i, b)
            if n == 0:
                return -1
            i += n
        elif c == _BACKSLASH:
            out[2] = 1
            e = np.int64(buf[i + 1]) if i + 1 < b else 0
            if e == 117:
                point = _escaped_code(buf, i, b)
                if point < 0:
                    return -1
                i += 6 if point < 0x10000 else 12
            elif (
                e == 34
                or e == 92
                or e == 47
                or e == 98
                or e == 102
                or e == 110
                or e == 114
                or e == 116
            ):
                i += 2
            else:
                return -1
        else:
            return -1
    return -1


@njit(cache=True)
def _digits(buf: Any, i: int, b: int) -> int:
    while i < b and 48 <= buf[i] <= 57:
        i += 1
    return i


@njit(cache=True)
def _number_end(buf: Any, i: int, b: int) -> int:
    """End of the JSON number at i, -1 when malformed."""
    start = i
    if buf[i] == 45:
        i += 1
    first = i
    i = _digits(buf, i, b)
    if i == first or (buf[first] == 48 and i - first > 1):
        return -1
    if i < b and buf[i] == 46:
        k = _digits(buf, i + 1, b)
        if k == i + 1:
            return -1
        i = k
    if i < b and (buf[i] | 32) == 101:
        i += 1
        if i < b and (buf[i] == 43 or buf[i] == 45):
            i += 1
        k = _digits(buf, i, b)
        if k == i:
            return -1
        i = k
    return i if i - start <= _MAX_NUMBER else -1


@njit(cache=True)
def _literal_end(buf: Any, i: int, b: int) -> int:
    """End of true, false or null at i, -1 when it is none."""
    if i + 4 <= b:
        four = load64(buf, i) & np.uint64(0xFFFFFFFF)
        if four == np.uint64(0x65757274) or four == np.uint64(0x6C6C756E):
            return i + 4
        if four == np.uint64(0x736C6166) and i + 5 <= b and buf[i + 4] == 101:
            return i + 5
    return -1


@njit(cache=True)
def _skip(buf: Any, i: int, b: int) -> int:
    while i < b and (buf[i] == 32 or buf[i] == 9 or buf[i] == 10 or buf[i] == 13):
        i += 1
    return i


@njit(cache=True)
def _is_text_key(buf: Any, s: int, e: int) -> bool:
    return e - s == 4 and load64(buf, s) & np.uint64(0xFFFFFFFF) == np.uint64(0x74786574)


@njit(cache=True)
def find_text(buf: Any, a: int, b: int, out: Any) -> bool:
    """Find the content of the last top-level string ``text`` of the JSON object buf[a:b].

    Writes its start, end and whether it holds escapes to out[0..2] (out[3] is scratch) and returns
    True. False means that the line is malformed, has no text, or is too unusual to be sure: ask
    :func:`judge`.
    """
    i = _skip(buf, a, b)
    if i >= b or buf[i] != 123:
        return False
    i += 1
    # Bit d of `objects` says whether the container at depth d is an object.
    depth, objects = 1, np.uint64(2)
    out[0], out[3] = -1, 0
    state, text_next = 0, False  # 0 key or }, 1 key, 2 value, 3 value or ], 4 comma or end
    while depth:
        i = _skip(buf, i, b)
        if i >= b:
            return False
        c = np.int64(buf[i])
        in_object = (objects >> np.uint64(depth)) & np.uint64(1)
        if (c == 125 and in_object and (state == 0 or state == 4)) or (
            c == 93 and not in_object and (state == 3 or state == 4)
        ):
            depth -= 1
            state = 4
            i += 1
        elif state <= 1:
            if c != _QUOTE:
                return False
            out[2] = 0
            e = _string_end(buf, i + 1, b, out)
            if e < 0 or (depth == 1 and out[2]):
                return False
            text_next = depth == 1 and _is_text_key(buf, i + 1, e)
            i = _skip(buf, e + 1, b)
            if i >= b or buf[i] != 58:
                return False
            i += 1
            state = 2
        elif state == 4:
            if c != 44:
                return False
            i += 1
            state = 1 if in_object else 2
        else:
            if text_next and c != _QUOTE:
                return False
            state = 4
            if c == _QUOTE:
                out[2] = 0
                e = _string_end(buf, i + 1, b, out)
                if e < 0:
                    return False
                if text_next:
                    out[0], out[1], out[3] = i + 1, e, out[2]
                text_next = False
                i = e + 1
            elif c == 123 or c == 91:
                if depth >= _MAX_DEPTH:
                    return False
                depth += 1
                bit = np.uint64(1) << np.uint64(depth)
                objects = objects | bit if c == 123 else objects & ~bit
                state = 0 if c == 123 else 3
                i += 1
            else:
                i = _number_end(buf, i, b) if c == 45 or 48 <= c <= 57 else _literal_end(buf, i, b)
                if i < 0:
                    return False
    out[2] = out[3]
    return _skip(buf, i, b) == b and out[0] >= 0


@njit(cache=True)
def unescape(buf: Any, s: int, e: int, out: Any, n: int, limit: int) -> Any:
    """Write the JSON string content buf[s:e] to ``out`` as UTF-8, from out[n] on.

    The content has passed :func:`find_text`. ``out`` has SLACK bytes past ``limit``. Returns where
    in ``buf`` it stopped, ``e`` or as soon as ``limit`` is reached, and where in ``out``.
    """
    slashes = np.uint64(0x5C5C5C5C5C5C5C5C)
    ones, highs = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
    while s < e and n < limit:
        word = load64(buf, s)
        store64(out, n, word)
        x = word ^ slashes
        hit = (x - ones) & ~x & highs
        if hit == np.uint64(0):
            s += 8
            n += 8
            continue
        k = np.int64(trailing_zeros(hit)) >> 3
        if s + k >= e:
            n += e - s
            s = e
            break
        s += k
        n += k
        c = np.int64(buf[s + 1])
        if c == 117:
            point = _escaped_code(buf, s, e)
            n = _put_utf8(out, n, point)
            s += 6 if point < 0x10000 else 12
            continue
        out[n] = 10 if c == 110 else 9 if c == 116 else 13 if c == 114 else c
        if c == 98 or c == 102:
            out[n] = 8 if c == 98 else 12
        n += 1
        s += 2
    # The last step may have copied past the end.
    return min(s, e), n - max(s - e, 0)


@njit(cache=True)
def _put_utf8(out: Any, n: int, c: int) -> int:
    if c < 0x80:
        out[n] = c
        return n + 1
    if c < 0x800:
        out[n], out[n + 1] = 0xC0 | c >> 6, 0x80 | c & 0x3F
        return n + 2
    if c < 0x10000:
        out[n], out[n + 1], out[n + 2] = 0xE0 | c >> 12, 0x80 | c >> 6 & 0x3F, 0x80 | c & 0x3F
        return n + 3
    out[n], out[n + 1] = 0xF0 | c >> 18, 0x80 | c >> 12 & 0x3F
    out[n + 2], out[n + 3] = 0x80 | c >> 6 & 0x3F, 0x80 | c & 0x3F
    return n + 4
