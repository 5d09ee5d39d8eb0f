"""Text to kept word ids, compiled: find chunks, look them up, split and intern the new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from jobs.bits import blanks_or_high, load64, low_bytes, trailing_zeros, unowned
from jobs.memory import (
    ARENA_USED,
    AT,
    CACHE_USED,
    CHUNK_END,
    CHUNK_SLOT,
    DONE,
    GROW_ARENA,
    GROW_CACHE,
    GROW_CHUNK,
    GROW_IDS,
    GROW_WORDS,
    KEEP_STOPS,
    MAX_CHUNK,
    N_IDS,
    N_TARGETS,
    N_TOKENS,
    N_WORDS,
    NEED,
    NEW_CHUNK,
    SEQ_USED,
    add_word,
    borrowed,
    borrowed_tables,
    chunk_slot,
    find_word,
)
from jobs.plain import plain_words
from jobs.rules import split_chunk
from jobs.tables import ALNUM, CASED, IGNORABLE, MARK, SPACE

_CACHED_BYTES = 23
_SIGMA, _SMALL_SIGMA, _FINAL_SIGMA = 0x3A3, 0x3C3, 0x3C2
_DOTTED_I, _DOT_ABOVE = 0x130, 0x307


@njit(cache=True)
def code_point(buf: Any, i: int) -> int:
    """Code point of the valid UTF-8 sequence at i."""
    c = np.int64(buf[i])
    if c < 0x80:
        return c
    if c < 0xE0:
        return ((c & 0x1F) << 6) | np.int64(buf[i + 1] & 0x3F)
    if c < 0xF0:
        middle = np.int64(buf[i + 1] & 0x3F) << 6
        return ((c & 0x0F) << 12) | middle | np.int64(buf[i + 2] & 0x3F)
    upper = np.int64(buf[i + 1] & 0x3F) << 12 | np.int64(buf[i + 2] & 0x3F) << 6
    return ((c & 0x07) << 18) | upper | np.int64(buf[i + 3] & 0x3F)


@njit(cache=True)
def code_length(lead: int) -> int:
    """Bytes of the UTF-8 sequence with this lead byte."""
    return 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


@njit(cache=True)
def _blank_length(flags: Any, buf: Any, i: int) -> int:
    """Bytes of the whitespace character at i, 0 when it is none. NUL separates like a blank."""
    c = np.int64(buf[i])
    if c < 0x80:
        return 1 if c == 0 or flags[c] & SPACE else 0
    # Whitespace beyond ASCII starts with one of these bytes.
    if c == 0xE2 or c == 0xC2 or c == 0xE3 or c == 0xE1:
        if flags[code_point(buf, i)] & SPACE:
            return code_length(c)
    return 0


@njit(cache=True)
def _chunk_end(flags: Any, buf: Any, i: int, b: int) -> int:
    """End of the chunk that starts at i: the next whitespace, or b."""
    limit = min(b, i + MAX_CHUNK)
    while i < limit:
        stops = blanks_or_high(load64(buf, i))
        if stops == np.uint64(0):
            i += 8
            continue
        i += np.int64(trailing_zeros(stops)) >> 3
        if i >= limit or buf[i] == 32 or _blank_length(flags, buf, i):
            break
        i += code_length(np.int64(buf[i]))
    if i < b and i >= limit:
        i = limit
        while buf[i] & 0xC0 == 0x80:
            i -= 1
    return min(i, b)


@njit(cache=True)
def _known_chunks(
    flags: Any, cache: Any, seqs: Any, ids: Any, counts: Any, regs: Any, buf: Any, b: int
) -> int:
    """Go through buf[regs[AT]:b] as long as chunks are in the cache.

    Returns DONE at the end, GROW_IDS, or NEW_CHUNK with the chunk in regs[AT:CHUNK_END] and its
    place in the cache in regs[CHUNK_SLOT]. This is where the time goes, so it has little at hand.
    """
    mask = cache.size // 4 - 1
    i, n_ids, tokens = regs[AT], regs[N_IDS], np.int64(0)
    room = ids.size - MAX_CHUNK - 2 if ids.size > 4 * MAX_CHUNK else 0
    code = DONE
    while i < b:
        # Nearly all chunks end with a space or newline and hold ASCII, typographic quotes and
        # dashes (E2 80 90..A7) or Latin letters (C3): found here without a call.
        e = i
        known = False
        while e < b:
            stops = blanks_or_high(load64(buf, e))
            if stops == np.uint64(0):
                e += 8
                continue
            e += np.int64(trailing_zeros(stops)) >> 3
            c = buf[e]
            if c == 32 or c == 10:
                known = True
                break
            if c == 0xE2 and buf[e + 1] == 0x80 and 0x90 <= buf[e + 2] < 0xA8:
                e += 3
            elif c == 0xC3:
                e += 2
            else:
                break
        if known and e == i:
            i += 1
            continue
        if not known or e >= b or e - i > MAX_CHUNK:
            blank = 0 if 32 < buf[i] < 0x80 else _blank_length(flags, buf, i)
            if blank:
                i += blank
                continue
            e = _chunk_end(flags, buf, i, b)
        n = e - i
        if n_ids >= room and n_ids + n + 2 > ids.size:
            code = GROW_IDS
            regs[NEED] = n
            break
        at = np.int64(0)
        if n <= _CACHED_BYTES:
            k0 = load64(buf, i)
            k1 = np.uint64(0)
            k2 = np.uint64(n) << np.uint64(56)
            if n <= 8:
                k0 &= low_bytes(n)
            elif n <= 16:
                k1 = load64(buf, i + 8) & low_bytes(n - 8)
            else:
                k1 = load64(buf, i + 8)
                k2 |= load64(buf, i + 16) & low_bytes(n - 16)
            at = chunk_slot(k0, k1, k2) & mask
            while cache[4 * at + 2] and not (
                cache[4 * at] == k0 and cache[4 * at + 1] == k1 and cache[4 * at + 2] == k2
            ):
                at = (at + 1) & mask
        if n > _CACHED_BYTES or cache[4 * at + 2] == np.uint64(0):
            code = NEW_CHUNK
            regs[NEED], regs[CHUNK_END], regs[CHUNK_SLOT] = n, e, at
            break
        value = cache[4 * at + 3]
        tokens += np.int64(value >> np.uint64(56))
        kept = np.int64(value >> np.uint64(48)) & 0xFF
        first = np.int64(value) & 0xFFFFFFFF
        if kept <= 1:
            # Written in any case and kept by moving on: no branch to guess wrong.
            ids[n_ids] = first
            counts[first] += kept
            n_ids += kept
        else:
            for k in range(first, first + kept):
                ids[n_ids] = seqs[k]
                counts[seqs[k]] += 1
                n_ids += 1
        i = e
    regs[N_IDS] = n_ids
    regs[N_TOKENS] += tokens
    regs[AT] = i
    return code


@njit(cache=True)
def scan_text(t: Any, m: Any, buf: Any, a: int, b: int) -> int:
    """:func:`scan` for callers outside compiled code."""
    return scan(borrowed_tables(t), borrowed(m), unowned(buf), a, b)


@njit(cache=True)
def scan(t: Any, m: Any, buf: Any, a: int, b: int) -> int:
    """Append the kept word ids of the UTF-8 text buf[a:b] to ``m.ids`` and count them.

    Returns DONE, or a GROW_* code with ``regs[AT]`` at the chunk to go on from. The text must be
    valid UTF-8 and have SLACK readable bytes after it.
    """
    regs, ids, counts, cache, seqs = m.regs, m.ids, m.counts, m.cache, m.seqs
    flags, lower, lang, stop_keys = t.flags, t.lower, t.lang, t.stop_keys
    cps, ends, tail, wbuf = m.cps, m.ends, m.tail, m.wbuf
    slots, offsets, arena = m.slots, m.offsets, m.arena
    regs[AT] = a
    while True:
        code = _known_chunks(flags, cache, seqs, ids, counts, regs, buf, b)
        if code != NEW_CHUNK:
            return code
        i, e = regs[AT], regs[CHUNK_END]
        code = _room(regs, cps, counts, arena, cache, seqs, e - i)
        if code != DONE:
            return code
        first = regs[N_IDS]
        found = 0
        n = _decode(buf, i, e, cps)
        pieces = plain_words(flags, lang, cps, n, ends)
        plain = pieces >= 0
        if not plain:
            pieces = split_chunk(flags, lang, cps, n, ends, tail)
        start = np.int64(0)
        for k in range(pieces):
            # Plain pieces come with their start, others follow each other.
            if plain:
                start = np.int64(ends[2 * k])
            stop = np.int64(ends[2 * k + 1] if plain else ends[k])
            found += _count_token(
                flags,
                lower,
                stop_keys,
                regs,
                cps,
                wbuf,
                slots,
                offsets,
                arena,
                ids,
                counts,
                start,
                stop,
            )
            start = stop
        if e - i <= _CACHED_BYTES:
            _remember(regs, ids, cache, seqs, buf, i, found, first)
        regs[N_TOKENS] += found
        regs[AT] = e


@njit(cache=True)
def _room(regs: Any, cps: Any, counts: Any, arena: Any, cache: Any, seqs: Any, n: int) -> int:
    """DONE when a chunk of n bytes can be split, interned and cached without growing anything."""
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
def _remember(
    regs: Any, ids: Any, cache: Any, seqs: Any, buf: Any, i: int, found: int, first: int
) -> None:
    """Put the chunk at i into the cache: it had ``found`` words and kept ids[first:]."""
    n, at = regs[NEED], 4 * regs[CHUNK_SLOT]
    kept = regs[N_IDS] - first
    payload = np.int64(0)
    if kept == 1:
        payload = np.int64(ids[first])
    elif kept > 1:
        payload = regs[SEQ_USED]
        for k in range(kept):
            seqs[payload + k] = ids[first + k]
        regs[SEQ_USED] += kept
    cache[at] = load64(buf, i) & low_bytes(n)
    cache[at + 1] = load64(buf, i + 8) & low_bytes(max(n - 8, 0))
    cache[at + 2] = load64(buf, i + 16) & low_bytes(max(n - 16, 0)) | (
        np.uint64(n) << np.uint64(56)
    )
    value = np.uint64(found) << np.uint64(56) | np.uint64(kept) << np.uint64(48)
    cache[at + 3] = value | np.uint64(payload)
    regs[CACHE_USED] += 1


@njit(cache=True)
def _decode(buf: Any, i: int, e: int, cps: Any) -> int:
    """Code points of buf[i:e] to ``cps``; returns their number."""
    n = 0
    while i < e:
        c = np.int64(buf[i])
        if c < 0x80:
            cps[n] = c
            i += 1
        else:
            cps[n] = code_point(buf, i)
            i += code_length(c)
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
    counts: Any,
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
    if (word < 0 or word >= regs[N_TARGETS]) and not regs[KEEP_STOPS]:
        if is_stop(stop_keys, wbuf, ws, we) or (n != we - ws and is_stop(stop_keys, wbuf, 0, n)):
            return 1
    if word < 0:
        word = add_word(regs, slots, offsets, arena, -1 - word, wbuf, ws, we)
    ids[regs[N_IDS]] = word
    counts[word] += 1
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
