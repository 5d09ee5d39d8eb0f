"""Recognize URLs and e-mail addresses as spaCy's English tokenizer does, in compiled code.

A URL or e-mail address starts with an optional scheme and user. Then comes a public IPv4 address,
or a name whose last label is lowercase. It ends with an optional port and path.
"""

from __future__ import annotations

from plumbline.jobs.kernel.cache import compiled
from plumbline.jobs.kernel.tokens.language_tables import (
    ALNUM,
    DIGIT,
    LOWER,
    SplitState,
    is_digit,
    kind_of,
    point,
)

_DOT, _PLUS, _MINUS, _COLON, _LOW_LINE = ord("."), ord("+"), ord("-"), ord(":"), ord("_")
_SLASH, _AT, _QUESTION, _HASH = ord("/"), ord("@"), ord("?"), ord("#")
_ZERO, _ONE, _TWO, _FIVE, _NINE = ord("0"), ord("1"), ord("2"), ord("5"), ord("9")


@compiled
def _port_and_path(s: SplitState, r: int, b: int) -> bool:
    """Return whether the text from ``r`` to ``b`` is empty, or is a port, a path or both."""
    if r < b and point(s, r) == _COLON:
        k = r + 1
        while k < b and k - r <= 5 and kind_of(s, k) & DIGIT:
            k += 1
        if k - r - 1 < 2:
            return False
        r = k
    return r >= b or point(s, r) in (_SLASH, _QUESTION, _HASH)


@compiled
def _is_host_char(c: int) -> bool:
    is_ascii_letter = 65 <= c <= 90 or 97 <= c <= 122
    return _ZERO <= c <= _NINE or is_ascii_letter or 0xA1 <= c <= 0xFFFF


@compiled
def _is_label(s: SplitState, a: int, b: int) -> bool:
    if b - a < 1 or b - a > 64:
        return False
    if not (_is_host_char(point(s, a)) and _is_host_char(point(s, b - 1))):
        return False
    for k in range(a + 1, b - 1):
        c = point(s, k)
        if not (_is_host_char(c) or c == _LOW_LINE or c == _MINUS):
            return False
    return True


@compiled
def _is_octet(s: SplitState, a: int, b: int, part: int) -> bool:
    """Return whether a..b can be a number in a public IPv4 address. ``part`` is its place, 0 to 3.

    A number of three digits starts with 1 or 2. It is below 224 at place 0, below 255 at place 3,
    and below 256 at other places. A shorter number starts with 1 to 9 at places 0 and 3, and with
    any digit at places 1 and 2. Digits whose value isn't tested may be of any script.
    """
    if not 1 <= b - a <= 3:
        return False
    for k in range(a, b):
        if not kind_of(s, k) & DIGIT:
            return False
    if b - a < 3:
        return part == 1 or part == 2 or _ONE <= point(s, a) <= _NINE
    if point(s, a) != _TWO:
        return point(s, a) == _ONE
    tens = _TWO if part == 0 else _FIVE
    ones = _FIVE - 2 if part == 0 else _FIVE - 1 if part == 3 else _FIVE
    if point(s, a + 1) == tens:
        return _ZERO <= point(s, a + 2) <= ones
    return _ZERO <= point(s, a + 1) < tens


@compiled
def _value(s: SplitState, a: int, b: int) -> int:
    """Return the value of the number a..b, or -1 if a character is not an ASCII digit."""
    value = 0
    for k in range(a, b):
        if not is_digit(s, k):
            return -1
        value = value * 10 + point(s, k) - _ZERO
    return value


@compiled
def _is_address(s: SplitState, h: int, r: int) -> bool:
    """Return whether h..r is a public IPv4 address in dotted notation."""
    part, a, first, second = 0, h, 0, 0
    for k in range(h, r + 1):
        if k < r and point(s, k) != _DOT:
            continue
        if part > 3 or not _is_octet(s, a, k, part):
            return False
        if part == 0:
            first = _value(s, a, k)
        elif part == 1:
            # All of 172.20 to 172.29 is private, so the second digit's value does not matter.
            second = 20 if k - a == 2 and point(s, a) == _TWO else _value(s, a, k)
        part, a = part + 1, k + 1
    if part != 4:
        return False
    private = first == 10 or first == 127 or (first == 172 and 16 <= second <= 31)
    return not (private or (first == 169 and second == 254) or (first == 192 and second == 168))


@compiled
def _is_host(s: SplitState, h: int, b: int) -> bool:
    """Return whether h..b is a host with an optional port and path."""
    r, last_dot, label = h, -1, h
    names = True
    while r < b and point(s, r) not in (_COLON, _SLASH, _QUESTION, _HASH):
        if point(s, r) == _AT:
            return False
        if point(s, r) == _DOT:
            names = names and _is_label(s, label, r)
            last_dot, label = r, r + 1
        r += 1
    if last_dot < 0 or not _port_and_path(s, r, b):
        return False
    if names and 2 <= r - label <= 63:
        k = label
        while k < r and kind_of(s, k) & LOWER:
            k += 1
        if k == r:
            return True
    return _is_address(s, h, r)


@compiled
def is_url(s: SplitState, a: int, b: int) -> bool:
    """Return whether a..b as a whole is a URL or e-mail address."""
    dot = False
    for k in range(a + 1, b - 1):
        dot = dot or point(s, k) == _DOT
    if not dot:
        return False
    if _is_host(s, a, b):
        return True
    k = a
    while k < b and (kind_of(s, k) & ALNUM or point(s, k) in (_LOW_LINE, _PLUS, _MINUS, _DOT)):
        k += 1
    if k - a >= 2 and k + 2 < b and point(s, k) == _COLON:
        is_scheme = point(s, k + 1) == _SLASH and point(s, k + 2) == _SLASH
        if is_scheme and _is_host(s, k + 3, b):
            return True
    for k in range(a + 1, b - 1):
        if point(s, k) == _AT and _is_host(s, k + 1, b):
            return True
    return False
