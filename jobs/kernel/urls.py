"""URLs and e-mail addresses among chunks of code points, compiled.

The rule is that of spaCy's English tokenizer: an optional scheme and user, then a public IPv4
address or a name with a lowercase last label, then an optional port and path.
"""

from __future__ import annotations

from plumbline.jobs.kernel.cache import compiled
from plumbline.jobs.kernel.language_tables import ALNUM, DIGIT, LOWER
from plumbline.jobs.kernel.memory import get32

_DOT, _PLUS, _MINUS, _COLON = ord("."), ord("+"), ord("-"), ord(":")
_SLASH, _AT, _QUESTION, _HASH, _LOW_LINE = ord("/"), ord("@"), ord("?"), ord("#"), ord("_")


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
