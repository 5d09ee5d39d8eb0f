"""A block of JSON lines to counts, compiled: the loop that joins records, scan and windows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from jobs.bits import SLACK, load64, trailing_zeros, unowned
from jobs.memory import (
    ASK,
    AT,
    DONE,
    GROW_TEXT,
    LINE_END,
    LINE_START,
    N_DOCUMENTS,
    N_IDS,
    N_KEPT,
    N_LINES,
    NEED,
    NEXT_START,
    STAGE,
    TEXT_COPIED,
    TEXT_END,
    TEXT_START,
    borrowed,
    borrowed_tables,
)
from jobs.records import find_text, unescape, utf8_length
from jobs.scan import scan
from jobs.windows import count_document

# regs[STAGE]: what is to be done next.
NEXT_LINE, PARSE, SCAN, COUNT = range(4)


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
    """Line to text: DONE with the text's place in the registers, ASK, or GROW_TEXT."""
    regs = m.regs
    if not find_text(buf, regs[LINE_START], regs[LINE_END], found):
        return ASK
    regs[TEXT_START], regs[TEXT_END], regs[TEXT_COPIED] = found[0], found[1], 0
    if found[2]:
        if m.text.size < found[1] - found[0] + 2 * SLACK:
            regs[NEED] = found[1] - found[0] + 2 * SLACK
            return GROW_TEXT
        n = unescape(buf, found[0], found[1], m.text)
        if n < 0:
            return ASK
        regs[TEXT_START], regs[TEXT_END], regs[TEXT_COPIED] = 0, n, 1
    return DONE


@njit(cache=True)
def run_block(t: Any, m: Any, buf: Any, end: int, found: Any) -> int:
    """Count the lines of buf[:end], going on from the registers.

    Lines end with a newline; the last one may end with ``end``. Returns DONE when all lines are
    done, ASK when the line in regs[LINE_START:LINE_END] needs a verdict, or a GROW_* code. After a
    GROW_* code call again with more memory; after ASK, either set the stage to NEXT_LINE to pass
    the line over or put its text in ``m.text`` and set the stage to SCAN.
    """
    t, m, buf = borrowed_tables(t), borrowed(m), unowned(buf)
    regs = m.regs
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
            regs[STAGE], regs[AT], regs[N_IDS] = SCAN, regs[TEXT_START], 0
        if regs[STAGE] == SCAN:
            text = m.text if regs[TEXT_COPIED] else buf
            code = scan(t, m, text, regs[AT], regs[TEXT_END])
            if code != DONE:
                return code
            regs[STAGE], regs[AT] = COUNT, 0
        code = _count(m)
        if code != DONE:
            return code


@njit(cache=True)
def _count(m: Any) -> int:
    """Count the document whose ids are complete, and close it."""
    regs = m.regs
    code = count_document(m, regs[AT])
    if code == DONE:
        regs[N_DOCUMENTS] += 1
        regs[N_KEPT] += regs[N_IDS]
        regs[N_IDS] = 0
        regs[STAGE] = NEXT_LINE
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
    while True:
        if regs[STAGE] == NEXT_LINE:
            k = regs[NEXT_START]
            if k >= valid.size:
                return DONE
            regs[NEXT_START] = k + 1
            regs[STAGE], regs[AT], regs[N_IDS] = SCAN, offsets[k], 0
            regs[TEXT_END] = offsets[k + 1]
            if not valid[k] or not _is_utf8(data, offsets[k], offsets[k + 1]):
                return ASK
        if regs[STAGE] == SCAN:
            code = scan(t, m, data, regs[AT], regs[TEXT_END])
            if code != DONE:
                return code
            regs[STAGE], regs[AT] = COUNT, 0
        code = _count(m)
        if code != DONE:
            return code
