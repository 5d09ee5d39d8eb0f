"""The texts in lines of JSON, compiled.

The compiled parser accepts only lines that are certainly valid: strict UTF-8, strict JSON, an
object whose text field (``ReaderState.field``; if repeated, the last) is a string without lone
surrogates. Python decides on all others (:func:`judge`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from plumbline.jobs.kernel.cache import EntryPoint, compiled
from plumbline.jobs.kernel.memory import (
    get8,
    get64,
    get_int,
    put8,
    put64,
    range_bits,
    trailing_zeros,
)
from plumbline.jobs.kernel.words import WordState, add_word, find_word, put_utf8
from plumbline.warehouse.input.shards import MISSING, field_value

_QUOTE, _BACKSLASH = ord('"'), ord("\\")
#: What may follow a backslash, besides u: quote, backslash, slash, b, f, n, r, t.
_ESCAPED = (34, 92, 47, 98, 102, 110, 114, 116)
_MAX_DEPTH = 60
#: Longest number in bytes; Python decides on longer ones, and refuses integers of over 4,300
#: digits.
_MAX_NUMBER = 4000
#: States of the parser inside a container: the part that it expects next.
_FIRST_KEY, _KEY, _VALUE, _FIRST_VALUE, _COMMA = range(5)
#: Longest name of a source, in bytes as JSON writes it.
MAX_SOURCE = 200
#: Reserved source ids: of names that are too long or had no room, and of documents without a
#: source.
OTHER, NO_SOURCE = range(2)
#: Longest line, in bytes, that Python parses; parsing takes many times as much memory. A longer
#: line is rejected unless the compiled parser accepts it.
LONGEST_JUDGED = 1 << 25
#: Results of :func:`read_lines`.
DONE, FULL, DOUBT = range(3)


class ReaderState:
    """The buffer of texts and the position in a block of lines; fields are addresses or numbers."""

    texts: int
    n: int  # bytes in the buffer
    limit: int  # bytes in the buffer at which reading stops
    next: int  # where the next line starts
    line: int  # the current line
    line_end: int
    n_lines: int  # lines read, including the current one
    has_text: int  # 1 while a text is copied; at..end, still escaped, is not copied yet
    at: int
    end: int
    field: int  # name of the text field, in UTF-8
    n_field: int
    path: int  # the n_path names on the path to the source's field, in UTF-8
    path_ends: int  # 0, then where each name ends, 64-bit
    n_path: int
    source: int  # start of the source's string, as JSON writes it; 0 for none
    source_end: int
    first_row: int  # rows before the block
    documents: int  # for each text that began in the buffer: its row, from 1, and its source id
    n_documents: int
    documents_room: int


@compiled
def _stops(at: int) -> int:
    """Mask of the bytes at..at+63 that are controls, quotes, backslashes, or 0x80 and above."""
    marks = range_bits(at, _QUOTE, 1) | range_bits(at, _BACKSLASH, 1)
    return marks | range_bits(at, 0, 0x20) | range_bits(at, 0x80, 0x80)


@compiled
def _utf8_length(i: int, b: int) -> int:
    """Length of the UTF-8 sequence at i, whose first byte is >= 0x80; 0 if it is malformed."""
    c = get8(i, 0)
    n = 2 if 0xC2 <= c < 0xE0 else 3 if 0xE0 <= c < 0xF0 else 4 if 0xF0 <= c < 0xF5 else 0
    if n == 0 or i + n > b:
        return 0
    second = get8(i, 1)
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
        if get8(i, k) & 0xC0 != 0x80:
            return 0
    return n


@compiled
def _hex4(i: int, b: int) -> int:
    """Value of four hexadecimal digits at i, -1 when malformed."""
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
def _escaped_code(i: int, e: int) -> int:
    """Code point of the \\u escape at i; from 0x10000 on it takes two escapes, twelve bytes.

    -1 when it is malformed or a lone surrogate.
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
def _string_end(i: int, b: int) -> int:
    """Address of the closing quote of the string whose content starts at i, -1 if malformed."""
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
                point = _escaped_code(i, b)
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
def _number_end(i: int, b: int) -> int:
    """End of the JSON number at i, -1 if malformed or longer than ``_MAX_NUMBER``."""
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
def _literal_end(i: int, b: int) -> int:
    """End of true, false or null at i, -1 for anything else."""
    if i + 4 <= b:
        four = get64(i, 0) & np.uint64(0xFFFFFFFF)
        if four == np.uint64(0x65757274) or four == np.uint64(0x6C6C756E):
            return i + 4
        if four == np.uint64(0x736C6166) and i + 5 <= b and get8(i, 4) == 101:
            return i + 5
    return -1


@compiled
def _skip(i: int, b: int) -> int:
    while i < b and (get8(i, 0) == 32 or get8(i, 0) == 9 or get8(i, 0) == 10 or get8(i, 0) == 13):
        i += 1
    return i


@compiled
def _is_plain(s: int, e: int) -> bool:
    for k in range(s, e):
        if get8(k, 0) == _BACKSLASH:
            return False
    return True


@compiled
def _is_name(s: int, e: int, name: int, n: int) -> bool:
    """True if the key s..e is the name of n bytes at an address."""
    if e - s != n:
        return False
    for k in range(n):
        if get8(s, k) != get8(name, k):
            return False
    return True


@compiled
def _is_on_path(r: ReaderState, member: int, s: int, e: int) -> bool:
    """True if the key s..e is name number ``member`` of the path to the source."""
    start = get_int(r.path_ends, member)
    return _is_name(s, e, r.path + start, get_int(r.path_ends, member + 1) - start)


@compiled
def find_text(r: ReaderState, a: int, b: int) -> bool:
    """Set ``r.at`` and ``r.end`` to the last top-level text field of the JSON object a..b.

    Set ``r.source`` and ``r.source_end`` to the string at the end of the path to the source, or
    ``r.source`` to 0. False if the line is malformed, has no text, or Python must decide on it.
    """
    i = _skip(a, b)
    if i >= b or get8(i, 0) != 123:
        return False
    i += 1
    # Bit d of `objects` says whether the container at depth d is an object.
    depth, objects = 1, np.uint64(2)
    r.at = r.source = 0
    expected, is_text = _FIRST_KEY, False
    # Open objects on the path to the source, besides the outermost; whether the last key is on it.
    on_path, is_next = 0, False
    while depth:
        i = _skip(i, b)
        if i >= b:
            return False
        c = get8(i, 0)
        in_object = (objects >> np.uint64(depth)) & np.uint64(1)
        if (c == 125 and in_object and (expected == _FIRST_KEY or expected == _COMMA)) or (
            c == 93 and not in_object and (expected == _FIRST_VALUE or expected == _COMMA)
        ):
            if on_path == depth - 1 and on_path:
                on_path -= 1
            depth -= 1
            expected = _COMMA
            i += 1
        elif expected <= _KEY:
            if c != _QUOTE:
                return False
            e = _string_end(i + 1, b)
            if e < 0 or (depth <= max(r.n_path, 1) and not _is_plain(i + 1, e)):
                return False
            is_text = depth == 1 and _is_name(i + 1, e, r.field, r.n_field)
            is_next = on_path == depth - 1 < r.n_path and _is_on_path(r, on_path, i + 1, e)
            if is_next:
                r.source = 0
            i = _skip(e + 1, b)
            if i >= b or get8(i, 0) != 58:
                return False
            i += 1
            expected = _VALUE
        elif expected == _COMMA:
            if c != 44:
                return False
            i += 1
            expected = _KEY if in_object else _VALUE
        else:
            if is_text and c != _QUOTE:
                return False
            expected = _COMMA
            if c == _QUOTE:
                e = _string_end(i + 1, b)
                if e < 0:
                    return False
                if is_text:
                    r.at, r.end = i + 1, e
                if is_next and depth == r.n_path:
                    r.source, r.source_end = i + 1, e
                is_text = is_next = False
                i = e + 1
            elif c == 123 or c == 91:
                if depth >= _MAX_DEPTH:
                    return False
                if is_next and c == 123 and depth < r.n_path:
                    on_path += 1
                is_next = False
                depth += 1
                bit = np.uint64(1) << np.uint64(depth)
                objects = objects | bit if c == 123 else objects & ~bit
                expected = _FIRST_KEY if c == 123 else _FIRST_VALUE
                i += 1
            else:
                is_next = False
                i = _number_end(i, b) if c == 45 or 48 <= c <= 57 else _literal_end(i, b)
                if i < 0:
                    return False
    return _skip(i, b) == b and r.at > 0


@compiled
def _unescape(r: ReaderState) -> None:
    """Append the rest of the current text to the buffer, up to the limit."""
    s, e, out = r.at, r.end, r.texts
    n, limit = r.n, r.limit
    while s < e and n < limit:
        for k in range(8):
            put64(out + n, k, get64(s, k))
        hit = range_bits(s, _BACKSLASH, 1)
        if hit == np.uint64(0):
            s += 64
            n += 64
            continue
        k = trailing_zeros(hit)
        s += k
        n += k
        if s >= e:
            break
        c = get8(s, 1)
        if c == 117:
            point = _escaped_code(s, e)
            n = put_utf8(out, n, point)
            s += 6 if point < 0x10000 else 12
            continue
        if c == 98 or c == 102:
            c = 8 if c == 98 else 12
        put8(out, n, 10 if c == 110 else 9 if c == 116 else 13 if c == 114 else c)
        n += 1
        s += 2
    # The last step may have copied past the end, and up to 63 bytes past the limit.
    r.at, r.n = min(s, e), n - max(s - e, 0)


@compiled
def _line_end(i: int, b: int) -> int:
    while i < b:
        hit = range_bits(i, 10, 1)
        if hit:
            return min(i + trailing_zeros(hit), b)
        i += 64
    return b


@compiled
def _source_id(r: ReaderState, sources: WordState) -> int:
    """Id of the source name at ``r.source``, which is added if new.

    OTHER if the name is too long or there is no room, NO_SOURCE without a name.
    """
    n = r.source_end - r.source
    if r.source == 0 or n == 0:
        return NO_SOURCE
    if n > MAX_SOURCE:
        return OTHER
    source = find_word(sources, r.source, r.source_end)
    if source >= 0:
        return source
    if sources.n >= sources.room or sources.n_bytes + n > sources.arena_room:
        return OTHER
    return add_word(sources, -1 - source, r.source, r.source_end)


@EntryPoint
def read_lines(r: ReaderState, sources: WordState, end: int) -> int:
    """Append to the buffer the texts of the lines between the addresses ``r.next`` and ``end``.

    ``r.documents`` gets the row and source id of each text, ``sources`` the names of sources. The
    last line may lack its newline; ``memory.SLACK`` bytes after ``end`` must be readable.

    Returns DONE at the end, FULL for a full buffer (call again once it is empty), or DOUBT when
    Python must decide on the line ``r.line..r.line_end`` (call again to read on after it).
    """
    while True:
        if r.n >= r.limit or r.n_documents >= r.documents_room:
            return FULL
        if r.has_text:
            _unescape(r)
            if r.at < r.end:
                return FULL
            # The bytes of ``chunks.END``, which ends a text.
            put8(r.texts, r.n, 10)
            put8(r.texts, r.n + 1, 0xFF)
            put8(r.texts, r.n + 2, 10)
            r.n += 3
            r.has_text = 0
            continue
        if r.next >= end:
            return DONE
        r.line, r.line_end = r.next, _line_end(r.next, end)
        r.next = r.line_end + 1
        r.n_lines += 1
        if not find_text(r, r.line, r.line_end):
            return DOUBT
        put64(r.documents, 2 * r.n_documents, r.first_row + r.n_lines)
        put64(r.documents, 2 * r.n_documents + 1, _source_id(r, sources))
        r.n_documents += 1
        r.has_text = 1


@dataclass(frozen=True)
class LineVerdict:
    """Python's verdict on a line: its text, the reason it is rejected, or neither (blank).

    ``source`` is the string in the source's field, or None.
    """

    text: str | None = None
    reason: str | None = None
    source: str | None = None


def judge(line: bytes, field: str = "text", source_field: str = "") -> LineVerdict:
    """Decide on one line as ``json.loads`` does.

    A line of JSON whitespace is not a document. Rejected are invalid UTF-8; invalid JSON, such as
    control characters in strings; numbers or nesting that Python refuses; a record that is not an
    object; a ``field`` that is missing, is not a string or contains a lone surrogate. A field
    ``a.b`` is the key of that name or else ``b`` in the object ``a``.

    >>> judge(b'{"text": "tea"}').text
    'tea'
    >>> judge(b'{"doc": {"body": "tea"}}', "doc.body").text
    'tea'
    >>> judge(b'["tea"]').reason
    'record is not an object but array'
    >>> judge(b"  ")
    LineVerdict(text=None, reason=None, source=None)
    """
    if not line.strip(b" \t\r\n"):
        return LineVerdict()
    try:
        record = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as e:
        return LineVerdict(reason=f"invalid UTF-8 at byte {e.start}: {e.reason}")
    except json.JSONDecodeError as e:
        nul = ", the line holds NUL bytes" if b"\0" in line else ""
        return LineVerdict(reason=f"not JSON: {e.msg} at character {e.pos}{nul}")
    except ValueError as e:
        return LineVerdict(reason=f"not JSON Python can hold: {e}")
    except RecursionError:
        return LineVerdict(reason="not JSON Python can hold: nested too deeply")
    if not isinstance(record, dict):
        return LineVerdict(reason=f"record is not an object but {_kind(record)}")
    text = field_value(record, field)
    if text is MISSING:
        return LineVerdict(reason=f"record has no `{field}`")
    if not isinstance(text, str):
        return LineVerdict(reason=f"`{field}` is not a string but {_kind(text)}")
    try:
        text.encode()
    except UnicodeEncodeError as e:
        return LineVerdict(reason=f"`{field}` holds a lone surrogate at character {e.start}")
    return LineVerdict(text=text, source=_source(record, source_field))


def _source(record: object, field: str) -> str | None:
    """The string at the end of a path a.b.c, or None."""
    for name in field.split(".") if field else ():
        record = record.get(name) if isinstance(record, dict) else None
    return record if isinstance(record, str) else None


def too_long(n_bytes: int, field: str = "text") -> LineVerdict:
    """The verdict on a line that is longer than LONGEST_JUDGED and not accepted by the parser.

    >>> too_long(40_000_000).reason
    'not strict JSON with a `text`, and 40,000,000 bytes are too long to say why'
    """
    why = f"not strict JSON with a `{field}`, and {n_bytes:,} bytes are too long to say why"
    return LineVerdict(reason=why)


def _kind(value: object) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")


def excerpt(line: bytes, limit: int = 120) -> str:
    """The start of a line, made printable: undecodable bytes and controls as escapes.

    >>> excerpt(bytes([97, 0, 255]))
    'a\\\\x00\\\\xff'
    """
    text = line[: 4 * limit].decode("utf-8", "backslashreplace")
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:limit])
    return shown + ("..." if len(text) > limit or len(line) > 4 * limit else "")
