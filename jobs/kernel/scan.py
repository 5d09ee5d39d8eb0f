"""Text to kept word ids, compiled: chunks that are new and not plain go through the rules."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from plumbline.jobs.kernel.bits import get8, get64, load64, low_bytes, put64
from plumbline.jobs.kernel.chunks import ENDS, RECORDS, begin, cut_chunk, hash_spans, known_chunks
from plumbline.jobs.kernel.memory import (
    ARENA_USED,
    CACHE_USED,
    CACHED_BYTES,
    DONE,
    FULL,
    GROW_ARENA,
    GROW_CACHE,
    GROW_CHUNK,
    GROW_WORDS,
    MAX_IDS,
    N_IDS,
    N_STOPS,
    N_TARGETS,
    N_TOKENS,
    N_WORDS,
    NEED,
    NEW_CHUNK,
    P_BLOCK,
    P_SPANS,
    SEQ_USED,
    SPAN,
    add_word,
    borrowed,
    borrowed_tables,
    find_word,
    point,
)
from plumbline.jobs.kernel.plain import remember
from plumbline.jobs.kernel.rules import split_chunk
from plumbline.jobs.kernel.tables import ALNUM, CASED, IGNORABLE, MARK

_SIGMA, _SMALL_SIGMA, _FINAL_SIGMA = 0x3A3, 0x3C3, 0x3C2
_DOTTED_I, _DOT_ABOVE = 0x130, 0x307


@njit(cache=True)
def scan(t: Any, m: Any) -> int:
    """Append the kept word ids of the text the registers were set to, see ``chunks.begin``.

    Returns DONE, FULL when the ids must be taken before going on, or a GROW_* code. The text must
    be valid UTF-8 and have SLACK readable bytes after it.
    """
    regs, counts, arena, cps = m.regs, m.counts, m.arena, m.cps
    while True:
        code = known_chunks(regs)
        if code != NEW_CHUNK:
            return code
        span = regs[P_SPANS] + 8 * regs[SPAN]
        s, whole = np.int64(get64(span)), np.int64(get64(span + ENDS))
        e = cut_chunk(s, whole)
        code = _room(regs, cps, counts, arena, m.cache, m.seqs, e - s)
        if code != DONE:
            return code
        first = regs[N_IDS]
        n = _decode(s, e, cps)
        found = _split(t, m, n)
        if whole - s <= CACHED_BYTES:
            record = regs[P_SPANS] + RECORDS + 32 * regs[SPAN]
            remember(regs, record, found, first, regs[N_IDS])
        regs[N_TOKENS] += found
        if e < whole:
            put64(span, np.uint64(e))
        else:
            regs[SPAN] += 1


@njit(cache=True)
def _split(t: Any, m: Any, n: int) -> int:
    """Count the words of the chunk m.cps[:n]; returns their number, stop words among them."""
    regs, cps, ends = m.regs, m.cps, m.ends
    pieces = split_chunk(t.flags, t.lang, cps, n, ends, m.tail)
    found, start = 0, 0
    for k in range(pieces):
        stop = np.int64(ends[k])
        found += _count_token(
            t.flags,
            t.lower,
            t.stop_keys,
            regs,
            cps,
            m.wbuf,
            m.slots,
            m.offsets,
            m.arena,
            m.ids,
            start,
            stop,
        )
        start = stop
    return found


@njit(cache=True)
def _room(regs: Any, cps: Any, counts: Any, arena: Any, cache: Any, seqs: Any, n: int) -> int:
    """DONE when a chunk of n bytes can be split, interned and cached without growing anything."""
    regs[NEED] = n
    if regs[N_IDS] + n + 2 > MAX_IDS:
        return FULL
    if cps.size < n + 2:
        return GROW_CHUNK
    # The word table has at least twice as many slots as there are counts.
    if regs[N_WORDS] + n >= counts.size:
        return GROW_WORDS
    if regs[ARENA_USED] + 4 * n + 16 > arena.size:
        return GROW_ARENA
    if 16 * (regs[CACHE_USED] + 1) > 3 * cache.size or regs[SEQ_USED] + 32 > seqs.size:
        return GROW_CACHE
    return DONE


@njit(cache=True)
def scan_text(t: Any, m: Any, buf: Any, a: int, b: int, resume: bool) -> int:
    """:func:`scan` of buf[a:b] for callers outside compiled code; ``resume`` to go on."""
    t, m = borrowed_tables(t), borrowed(m)
    point(t, m, buf)
    if resume:
        hash_spans(m.regs)
    else:
        begin(m.regs, m.regs[P_BLOCK] + a, m.regs[P_BLOCK] + b, True)
    return scan(t, m)


@njit(cache=True)
def _decode(s: int, e: int, cps: Any) -> int:
    """Code points of the UTF-8 at the addresses s..e to ``cps``; returns their number."""
    n = 0
    while s < e:
        c = get8(s)
        if c < 0x80:
            s += 1
        elif c < 0xE0:
            c = (c & 0x1F) << 6 | get8(s + 1) & 0x3F
            s += 2
        elif c < 0xF0:
            c = (c & 0x0F) << 12 | (get8(s + 1) & 0x3F) << 6 | get8(s + 2) & 0x3F
            s += 3
        else:
            upper = (get8(s + 1) & 0x3F) << 12 | (get8(s + 2) & 0x3F) << 6
            c = (c & 0x07) << 18 | upper | get8(s + 3) & 0x3F
            s += 4
        cps[n] = c
        n += 1
    return n


@njit(cache=True)
def _count_token(
    flags: Any,
    lower: Any,
    stop_keys: Any,
    regs: Any,
    cps: Any,
    wbuf: Any,
    slots: Any,
    offsets: Any,
    arena: Any,
    ids: Any,
    a: int,
    b: int,
) -> int:
    """Count the piece cps[a:b] unless it is a stop word; 0 when it holds no letter or number.

    Arrays come one by one: handing over the named tuples would cost more than the work itself.
    """
    s, z = a, b
    while s < z and not flags[cps[s]] & ALNUM:
        s += 1
    if s == z:
        return 0
    while not flags[cps[z - 1]] & (ALNUM | MARK):
        z -= 1
    n, ws, we = 0, 0, 0
    for k in range(a, b):
        if k == s:
            ws = n
        c = np.int64(cps[k])
        if c < 0x80:
            wbuf[n] = lower[c]
            n += 1
        elif c == _SIGMA:
            n = _put(wbuf, n, _lower_sigma(flags, cps, a, b, k))
        else:
            n = _put(wbuf, n, np.int64(lower[c]))
            if c == _DOTTED_I:
                n = _put(wbuf, n, _DOT_ABOVE)
        if k == z - 1:
            we = n
    word = find_word(slots, offsets, arena, wbuf, ws, we)
    if (word < 0 or word >= regs[N_TARGETS]) and regs[N_STOPS]:
        if is_stop(stop_keys, wbuf, ws, we) or (n != we - ws and is_stop(stop_keys, wbuf, 0, n)):
            return 1
    if word < 0:
        word = add_word(regs, slots, offsets, arena, -1 - word, wbuf, ws, we)
    ids[regs[N_IDS]] = word
    regs[N_IDS] += 1
    return 1


@njit(cache=True)
def _lower_sigma(flags: Any, cps: Any, a: int, b: int, k: int) -> int:
    """Lowercase of the capital sigma cps[k] within cps[a:b]: final at the end of a word."""
    p = k - 1
    while p >= a and flags[cps[p]] & IGNORABLE:
        p -= 1
    if p < a or not flags[cps[p]] & CASED:
        return _SMALL_SIGMA
    p = k + 1
    while p < b and flags[cps[p]] & IGNORABLE:
        p += 1
    return _FINAL_SIGMA if p >= b or not flags[cps[p]] & CASED else _SMALL_SIGMA


@njit(cache=True)
def _put(out: Any, n: int, c: int) -> int:
    """Write a code point as UTF-8 at n; returns the end."""
    if c < 0x80:
        out[n] = c
        return n + 1
    if c < 0x800:
        out[n] = 0xC0 | c >> 6
        out[n + 1] = 0x80 | c & 0x3F
        return n + 2
    if c < 0x10000:
        out[n] = 0xE0 | c >> 12
        out[n + 1] = 0x80 | c >> 6 & 0x3F
        out[n + 2] = 0x80 | c & 0x3F
        return n + 3
    out[n] = 0xF0 | c >> 18
    out[n + 1] = 0x80 | c >> 12 & 0x3F
    out[n + 2] = 0x80 | c >> 6 & 0x3F
    out[n + 3] = 0x80 | c & 0x3F
    return n + 4


@njit(cache=True)
def is_stop(stop_keys: Any, data: Any, s: int, e: int) -> bool:
    """Whether data[s:e], lowercase UTF-8, is a stop word."""
    n = e - s
    if n > 15:
        return False
    k0 = load64(data, s) & low_bytes(n)
    k1 = np.uint64(n) << np.uint64(56)
    if n > 8:
        k1 |= load64(data, s + 8) & low_bytes(n - 8)
    mask = stop_keys.size // 2 - 1
    h = (k0 ^ (k1 >> np.uint64(7))) * np.uint64(0x9E3779B97F4A7C15)
    at = np.int64(h >> np.uint64(40)) & mask
    while stop_keys[2 * at + 1]:
        if stop_keys[2 * at] == k0 and stop_keys[2 * at + 1] == k1:
            return True
        at = (at + 1) & mask
    return False
