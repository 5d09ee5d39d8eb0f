"""Read the texts in lines of JSON, in compiled code.

The parser accepts only lines that are certainly valid. Such a line is strict UTF-8 and contains a
strict JSON object. The text field is a string without lone surrogates. Python checks all other
lines (see :func:`~plumbline.jobs.kernel.line_verdict.judge`).
"""

from __future__ import annotations

import numpy as np

from plumbline.jobs.kernel.cache import EntryPoint, compiled
from plumbline.jobs.kernel.json_values import (
    escaped_code,
    literal_end,
    number_end,
    skip,
    string_end,
)
from plumbline.jobs.kernel.memory import (
    get8,
    get64,
    get_int,
    put8,
    put64,
    put_utf8,
    range_bits,
    trailing_zeros,
)
from plumbline.jobs.kernel.tokens.words import WordState, add_word, find_word

_QUOTE, _BACKSLASH = ord('"'), ord("\\")
_MAX_DEPTH = 60
#: What the parser expects next inside a JSON object or array.
_FIRST_KEY, _KEY, _VALUE, _FIRST_VALUE, _COMMA = range(5)
#: Maximum length of a source's name, in bytes of JSON.
MAX_SOURCE = 200
#: Reserved source ids. OTHER is for sources whose names are too long or don't fit into memory.
#: NO_SOURCE is for documents without a source.
OTHER, NO_SOURCE = range(2)
#: Results of :func:`read_lines`.
DONE, FULL, DOUBT = range(3)


class ReaderState:
    """The buffer of texts, and the current position in a block of lines."""

    texts: int  # Address of the buffer.
    n: int  # Number of bytes in the buffer.
    limit: int  # Reading stops when the buffer has this many bytes.
    next: int  # Address of the next line.
    line: int  # Address of the current line.
    line_end: int
    n_lines: int  # Number of lines read, including the current line.
    has_text: int  # 1 while a text is being copied to the buffer.
    at: int  # Address of the next byte of the text to copy.
    end: int  # Address of the end of the text.
    field: int  # Address of the name of the text field, in UTF-8.
    n_field: int
    path: int  # Address of the source field's names (``a`` and ``b`` for ``a.b``), in UTF-8.
    path_ends: int  # Address of 64-bit offsets in ``path``: first 0, then the end of each name.
    n_path: int
    source: int  # Address of the source's name as written in JSON, or 0 if there is no name.
    source_end: int
    first_row: int  # Number of rows before the block.
    documents: int  # Address of the row (from 1) and source id of each text in the buffer.
    n_documents: int
    documents_capacity: int


@compiled
def _is_plain(s: int, e: int) -> bool:
    for k in range(s, e):
        if get8(k, 0) == _BACKSLASH:
            return False
    return True


@compiled
def _is_name(s: int, e: int, name: int, n: int) -> bool:
    if e - s != n:
        return False
    for k in range(n):
        if get8(s, k) != get8(name, k):
            return False
    return True


@compiled
def _is_on_path(r: ReaderState, member: int, s: int, e: int) -> bool:
    start = get_int(r.path_ends, member)
    return _is_name(s, e, r.path + start, get_int(r.path_ends, member + 1) - start)


@compiled
def find_text(r: ReaderState, a: int, b: int) -> bool:
    """Find the text and the source in the JSON object a..b.

    Set ``r.at`` and ``r.end`` to the start and end of the text. If the text field is repeated, use
    the last one. Set ``r.source`` and ``r.source_end`` to the start and end of the source. If there
    is no source, set ``r.source`` to 0. Return False if Python must check the line, for example
    because the line is malformed or has no text.
    """
    i = skip(a, b)
    if i >= b or get8(i, 0) != 123:
        return False
    i += 1
    # Bit d of `objects` says whether the container at depth d is an object.
    depth, objects = 1, np.uint64(2)
    r.at = r.source = 0
    expected, is_text = _FIRST_KEY, False
    # on_path: number of open objects on the path to the source, not counting the outermost.
    # is_next: True if the key just read is the next name on that path.
    on_path, is_next = 0, False
    while depth:
        i = skip(i, b)
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
            e = string_end(i + 1, b)
            if e < 0 or (depth <= max(r.n_path, 1) and not _is_plain(i + 1, e)):
                return False
            is_text = depth == 1 and _is_name(i + 1, e, r.field, r.n_field)
            is_next = on_path == depth - 1 < r.n_path and _is_on_path(r, on_path, i + 1, e)
            if is_next:
                r.source = 0
            i = skip(e + 1, b)
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
                e = string_end(i + 1, b)
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
                i = number_end(i, b) if c == 45 or 48 <= c <= 57 else literal_end(i, b)
                if i < 0:
                    return False
    return skip(i, b) == b and r.at > 0


@compiled
def _unescape(r: ReaderState) -> None:
    """Copy the rest of the text to the buffer, and decode escapes. Stop if the buffer is full."""
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
            point = escaped_code(s, e)
            n = put_utf8(out, n, point)
            s += 6 if point < 0x10000 else 12
            continue
        if c == 98 or c == 102:
            c = 8 if c == 98 else 12
        put8(out, n, 10 if c == 110 else 9 if c == 116 else 13 if c == 114 else c)
        n += 1
        s += 2
    # The last step may have copied bytes from beyond the text's end. Don't count these bytes in
    # ``r.n``, which may still exceed ``r.limit`` by up to 63 bytes.
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
    """Return the id of the current source. If its name is new, add the name to ``sources``.

    Return OTHER if the name is too long or ``sources`` is full, NO_SOURCE if there is no name.
    """
    n = r.source_end - r.source
    if r.source == 0 or n == 0:
        return NO_SOURCE
    if n > MAX_SOURCE:
        return OTHER
    source = find_word(sources, r.source, r.source_end)
    if source >= 0:
        return source
    if sources.n >= sources.capacity or sources.n_bytes + n > sources.arena_capacity:
        return OTHER
    return add_word(sources, -1 - source, r.source, r.source_end)


@EntryPoint
def read_lines(r: ReaderState, sources: WordState, end: int) -> int:
    """Read the lines from address ``r.next`` to ``end``. Append their texts to the buffer.

    Store each text's row and source id in ``r.documents``. Add new source names to ``sources``. The
    last line may end without a newline. ``memory.SLACK`` bytes after ``end`` must be readable.

    Return DONE if all lines were read. Return FULL if the buffer is full; call again once it is
    empty. Return DOUBT if Python must check the line ``r.line..r.line_end``; call again to read the
    next line.
    """
    while True:
        if r.n >= r.limit or r.n_documents >= r.documents_capacity:
            return FULL
        if r.has_text:
            _unescape(r)
            if r.at < r.end:
                return FULL
            # Append ``chunks.END``, which marks the end of a text.
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
