"""A block of JSON lines to counts, compiled: the loop that joins records, scan and windows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from plumbline.jobs.kernel.bits import load64, trailing_zeros, unowned
from plumbline.jobs.kernel.chunks import begin, hash_spans
from plumbline.jobs.kernel.memory import (
    ASK,
    DONE,
    ESCAPED,
    FILLED,
    FULL,
    LINE_END,
    LINE_START,
    N_DOCUMENTS,
    N_LINES,
    NEXT_START,
    P_BLOCK,
    P_TEXT,
    PIECE,
    SCAN_FINAL,
    SCAN_OPEN,
    STAGE,
    TEXT_END,
    TEXT_START,
    borrowed,
    borrowed_tables,
    point,
)
from plumbline.jobs.kernel.records import find_text, unescape, utf8_length
from plumbline.jobs.kernel.scan import scan
from plumbline.jobs.kernel.windows import count_ids

# regs[STAGE]: what is to be done next.
NEXT_LINE, PARSE, FILL, SCAN, COUNT_FULL, COUNT = range(6)


@njit(cache=True)
def _line_end(buf: Any, i: int, b: int) -> int:
    newlines, ones = np.uint64(0x0A0A0A0A0A0A0A0A), np.uint64(0x0101010101010101)
    while i < b:
        x = load64(buf, i) ^ newlines
        hit = (x - ones) & ~x & np.uint64(0x8080808080808080)
        if hit:
            return min(i + (np.int64(trailing_zeros(hit)) >> 3), b)
        i += 8
    return b


@njit(cache=True)
def _parse(m: Any, buf: Any, found: Any) -> int:
    """Line to text: DONE with the text's place in the registers, or ASK."""
    regs = m.regs
    if not find_text(buf, regs[LINE_START], regs[LINE_END], found):
        return ASK
    regs[TEXT_START], regs[TEXT_END], regs[ESCAPED] = found[0], found[1], found[2]
    regs[FILLED] = 0
    return DONE


@njit(cache=True)
def _fill(m: Any, buf: Any) -> None:
    """Set the scan to the next piece of the text, or to all of it when it needs no unescaping."""
    regs, text = m.regs, m.text
    if regs[ESCAPED] != 1:
        base = regs[P_TEXT] if regs[ESCAPED] else regs[P_BLOCK]
        begin(regs, base + regs[TEXT_START], base + regs[TEXT_END], True)
        regs[TEXT_START] = regs[TEXT_END]
        return
    left = regs[SCAN_OPEN] - regs[P_TEXT] if regs[FILLED] else 0
    n = regs[FILLED] - left
    for k in range(n):
        text[k] = text[left + k]
    at, n = unescape(buf, regs[TEXT_START], regs[TEXT_END], text, n, n + PIECE)
    final = at == regs[TEXT_END]
    regs[TEXT_START], regs[FILLED] = at, n
    if not final:
        # The last character may not be whole yet.
        while n and text[n - 1] & 0xC0 == 0x80:
            n -= 1
        n -= 1 if n and text[n - 1] >= 0xC0 else 0
    begin(regs, regs[P_TEXT], regs[P_TEXT] + n, final)


@njit(cache=True)
def _document(t: Any, m: Any, buf: Any) -> int:
    """Count the text at hand, going on from the registers: DONE at its end, or a GROW_* code."""
    regs = m.regs
    while True:
        if regs[STAGE] == FILL:
            _fill(m, buf)
            regs[STAGE] = SCAN
        if regs[STAGE] == SCAN:
            code = scan(t, m)
            if code == FULL:
                regs[STAGE] = COUNT_FULL
            elif code != DONE:
                return code
            else:
                regs[STAGE] = COUNT if regs[SCAN_FINAL] else FILL
        if regs[STAGE] == COUNT_FULL:
            code = count_ids(m, False)
            if code != DONE:
                return code
            regs[STAGE] = SCAN
        if regs[STAGE] == COUNT:
            code = count_ids(m, True)
            if code == DONE:
                regs[N_DOCUMENTS] += 1
                regs[STAGE] = NEXT_LINE
            return code


@njit(cache=True)
def run_block(t: Any, m: Any, buf: Any, end: int, found: Any) -> int:
    """Count the lines of buf[:end], going on from the registers.

    Lines end with a newline; the last one may end with ``end``. Returns DONE when all lines are
    done, ASK when the line in regs[LINE_START:LINE_END] needs a verdict, or a GROW_* code. After a
    GROW_* code call again with more memory; after ASK, either set the stage to NEXT_LINE to pass
    the line over or put its text in ``m.text``, its end in regs[TEXT_END], 0 in regs[TEXT_START],
    2 in regs[ESCAPED] and set the stage to FILL.
    """
    t, m, buf = borrowed_tables(t), borrowed(m), unowned(buf)
    regs = m.regs
    point(t, m, buf)
    hash_spans(regs)
    while True:
        if regs[STAGE] == NEXT_LINE:
            start = regs[NEXT_START]
            if start >= end:
                return DONE
            regs[LINE_START], regs[LINE_END] = start, _line_end(buf, start, end)
            regs[NEXT_START] = regs[LINE_END] + 1
            regs[N_LINES] += 1
            regs[STAGE] = PARSE
        if regs[STAGE] == PARSE:
            code = _parse(m, buf, found)
            if code != DONE:
                return code
            regs[STAGE] = FILL
        code = _document(t, m, buf)
        if code != DONE:
            return code


@njit(cache=True)
def _is_utf8(buf: Any, i: int, b: int) -> bool:
    while i < b:
        if buf[i] < 0x80:
            i += 1
            continue
        n = utf8_length(buf, i, b)
        if n == 0:
            return False
        i += n
    return True


@njit(cache=True)
def run_texts(t: Any, m: Any, data: Any, offsets: Any, valid: Any) -> int:
    """Count the texts data[offsets[k]:offsets[k + 1]], going on from regs[NEXT_START].

    Returns DONE, a GROW_* code, or ASK when text regs[NEXT_START] - 1 is NULL (valid[k] == 0) or
    no UTF-8; set the stage to NEXT_LINE to pass it over.
    """
    t, m, data = borrowed_tables(t), borrowed(m), unowned(data)
    regs = m.regs
    point(t, m, data)
    hash_spans(regs)
    while True:
        if regs[STAGE] == NEXT_LINE:
            k = regs[NEXT_START]
            if k >= valid.size:
                return DONE
            regs[NEXT_START] = k + 1
            regs[STAGE], regs[ESCAPED] = FILL, 0
            regs[TEXT_START], regs[TEXT_END] = offsets[k], offsets[k + 1]
            if not valid[k] or not _is_utf8(data, offsets[k], offsets[k + 1]):
                return ASK
        code = _document(t, m, data)
        if code != DONE:
            return code
