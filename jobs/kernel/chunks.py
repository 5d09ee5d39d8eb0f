"""Text to kept word ids, compiled: find chunks 64 bytes at a time, look them up in batches.

A chunk is a run without whitespace. A batch of them is found first, then hashed, with a prefetch of
each one's place in the cache, then looked up: three short loops that keep the processor busy where
a single one would wait for memory at every chunk. Addresses, as in ``plain.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from plumbline.jobs.kernel.bits import (
    get8,
    get32,
    get64,
    prefetch,
    put32,
    put64,
    range_bits,
    trailing_zeros,
)
from plumbline.jobs.kernel.memory import (
    ARENA_ROOM,
    ARENA_USED,
    BATCH,
    CACHE_MASK,
    CACHE_ROOM,
    CACHE_USED,
    CACHED_BYTES,
    DONE,
    FULL,
    FULL_AT,
    GROW_ARENA,
    GROW_CACHE,
    GROW_WORDS,
    MAX_CHUNK,
    N_IDS,
    N_SPANS,
    N_STARTS,
    N_TOKENS,
    N_WORDS,
    NEED,
    NEW_CHUNK,
    P_CACHE,
    P_IDS,
    P_SEQS,
    P_SPANS,
    SCAN_AT,
    SCAN_CARRY,
    SCAN_END,
    SCAN_FINAL,
    SCAN_INSIDE,
    SCAN_OPEN,
    SEQ_ROOM,
    SEQ_USED,
    SPAN,
    WORDS_ROOM,
    chunk_slot,
)
from plumbline.jobs.kernel.plain import plain_chunk

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
#: Byte masks of the three key words of a chunk of n bytes, at 3 * n.
_MASKS = np.array(
    [
        (1 << 8 * min(max(n - 8 * word, 0), 8)) - 1
        for n in range(CACHED_BYTES + 2)
        for word in range(3)
    ],
    np.uint64,
)
# Layout of the scratch array: starts, ends, then per chunk three key words and its slot.
ENDS, RECORDS = 8 * N_STARTS, 16 * N_STARTS
_PIECES = 48 * N_STARTS


@njit(cache=True)
def begin(regs: Any, a: int, b: int, final: bool) -> None:
    """Set the registers to scan the text at the addresses a..b.

    Args:
        final: whether the text ends at b. If not, a chunk that reaches b is left, and
            ``regs[SCAN_OPEN]`` is where it starts (b when there is none).
    """
    regs[SCAN_AT], regs[SCAN_END], regs[SCAN_FINAL] = a, b, int(final)
    regs[SCAN_OPEN] = regs[SCAN_INSIDE] = regs[SCAN_CARRY] = 0
    regs[SPAN] = regs[N_SPANS] = 0


@njit(cache=True)
def _wide_blanks(at: int) -> Any:
    """Bits of the bytes at..at+63 that start whitespace of two and of three bytes."""
    second = at + 1
    two = range_bits(at, 0xC2, 1) & (range_bits(second, 0x85, 1) | range_bits(second, 0xA0, 1))
    third = at + 2
    ends_80, mid_80 = range_bits(third, 0x80, 1), range_bits(second, 0x80, 1)
    general = mid_80 & (
        range_bits(third, 0x80, 11) | range_bits(third, 0xA8, 2) | range_bits(third, 0xAF, 1)
    )
    general |= range_bits(second, 0x81, 1) & range_bits(third, 0x9F, 1)
    three = range_bits(at, 0xE2, 1) & general
    three |= range_bits(at, 0xE3, 1) & mid_80 & ends_80
    three |= range_bits(at, 0xE1, 1) & range_bits(second, 0x9A, 1) & ends_80
    return two, three


@njit(cache=True)
def _find_spans(regs: Any) -> None:
    """Find the chunks of the next batch of bytes; starts and ends to the scratch array."""
    starts, ends = regs[P_SPANS], regs[P_SPANS] + ENDS
    at, end = regs[SCAN_AT], regs[SCAN_END]
    inside, carry = np.uint64(regs[SCAN_INSIDE]), np.uint64(regs[SCAN_CARRY])
    n_starts, n_ends = 0, 0
    if regs[SCAN_OPEN]:
        put64(starts, np.uint64(regs[SCAN_OPEN]))
        n_starts = 1
    stop = min(at + BATCH, end)
    one = np.uint64(1)
    while at < stop:
        # Space, 28..31, tab..carriage return, and NUL, which separates like a blank.
        blank = range_bits(at, 28, 5) | range_bits(at, 9, 5) | range_bits(at, 0, 1) | carry
        carry = np.uint64(0)
        if range_bits(at, 0xC2, 0x22):
            two, three = _wide_blanks(at)
            wide = two | three
            blank |= wide | wide << one | three << np.uint64(2)
            carry = wide >> np.uint64(63) | three >> np.uint64(62)
        left = end - at
        if left < 64:
            blank |= _ALL << np.uint64(left)
        shifted = ~blank << one | inside
        first, last = ~blank & ~shifted, blank & shifted
        inside = ~blank >> np.uint64(63)
        while first:
            put64(starts + 8 * n_starts, np.uint64(at + np.int64(trailing_zeros(first))))
            n_starts += 1
            first &= first - one
        while last:
            put64(ends + 8 * n_ends, np.uint64(at + np.int64(trailing_zeros(last))))
            n_ends += 1
            last &= last - one
        at += 64
    at = min(at, end)
    if at == end:
        if regs[SCAN_FINAL] and n_starts > n_ends:
            put64(ends + 8 * n_ends, np.uint64(end))
            n_ends += 1
        elif not regs[SCAN_FINAL] and n_ends and np.int64(get64(ends + 8 * (n_ends - 1))) == end:
            # Only the text's end closed it. (Where a blank ends there, it has its own bit.)
            n_ends -= 1
    regs[SCAN_OPEN] = np.int64(get64(starts + 8 * n_ends)) if n_starts > n_ends else 0
    regs[SCAN_AT], regs[SCAN_INSIDE], regs[SCAN_CARRY] = at, np.int64(inside), np.int64(carry)
    regs[SPAN], regs[N_SPANS] = 0, n_ends
    if at == end and not regs[SCAN_FINAL]:
        _leave(regs, starts, ends, n_ends)


@njit(cache=True)
def _leave(regs: Any, starts: int, ends: int, n: int) -> None:
    """Of an unfinished chunk at the end of the text, count all that must be cut off anyway."""
    open_, end = regs[SCAN_OPEN], regs[SCAN_END]
    if not open_:
        regs[SCAN_OPEN] = end
        return
    while end - open_ > MAX_CHUNK:
        cut = cut_chunk(open_, end)
        put64(starts + 8 * n, np.uint64(open_))
        put64(ends + 8 * n, np.uint64(cut))
        n += 1
        open_ = cut
    regs[SCAN_OPEN], regs[N_SPANS] = open_, n


@njit(cache=True)
def cut_chunk(s: int, e: int) -> int:
    """Where a chunk s..e is cut: at its end, or at the last character within MAX_CHUNK bytes."""
    if e - s <= MAX_CHUNK:
        return e
    cut = s + MAX_CHUNK
    while get8(cut) & 0xC0 == 0x80:
        cut -= 1
    return cut


@njit(cache=True)
def hash_spans(regs: Any) -> None:
    """Key words and place in the cache of the chunks from ``regs[SPAN]`` on."""
    starts, ends = regs[P_SPANS], regs[P_SPANS] + ENDS
    records, cache, mask = regs[P_SPANS] + RECORDS, regs[P_CACHE], regs[CACHE_MASK]
    for k in range(regs[SPAN], regs[N_SPANS]):
        s = np.int64(get64(starts + 8 * k))
        n = min(np.int64(get64(ends + 8 * k)) - s, CACHED_BYTES + 1)
        k0 = get64(s) & _MASKS[np.uint64(3 * n)]
        k1 = get64(s + 8) & _MASKS[np.uint64(3 * n + 1)]
        k2 = (get64(s + 16) & _MASKS[np.uint64(3 * n + 2)]) | np.uint64(n) << np.uint64(56)
        slot = cache + 32 * (chunk_slot(k0, k1, k2) & mask)
        prefetch(slot)
        record = records + 32 * k
        put64(record, k0)
        put64(record + 8, k1)
        put64(record + 16, k2)
        put64(record + 24, np.uint64(slot))


@njit(cache=True)
def _room(regs: Any) -> int:
    """DONE when any chunk that fits the cache can be counted without growing anything."""
    if regs[N_WORDS] + CACHED_BYTES >= regs[WORDS_ROOM]:
        return GROW_WORDS
    if regs[ARENA_USED] >= regs[ARENA_ROOM]:
        return GROW_ARENA
    if regs[CACHE_USED] >= regs[CACHE_ROOM] or regs[SEQ_USED] >= regs[SEQ_ROOM]:
        return GROW_CACHE
    return DONE


@njit(cache=True)
def _look_up(regs: Any) -> int:
    """Go through the batch: DONE at its end, NEW_CHUNK at one for the rules, or a GROW_* code."""
    records, cache = regs[P_SPANS] + RECORDS, regs[P_CACHE]
    cache_end = cache + 32 * (regs[CACHE_MASK] + 1)
    ids, seqs = regs[P_IDS], regs[P_SEQS]
    n_ids, tokens, k, n = regs[N_IDS], 0, regs[SPAN], regs[N_SPANS]
    code = DONE
    while k < n:
        record = records + 32 * k
        k0, k1, k2 = get64(record), get64(record + 8), get64(record + 16)
        slot = np.int64(get64(record + 24))
        used = get64(slot + 16)
        while used and not (used == k2 and get64(slot) == k0 and get64(slot + 8) == k1):
            slot += 32
            if slot == cache_end:
                slot = cache
            used = get64(slot + 16)
        if not used:
            put64(record + 24, np.uint64(slot))
            regs[N_IDS] = n_ids
            s = np.int64(get64(regs[P_SPANS] + 8 * k))
            e = np.int64(get64(regs[P_SPANS] + ENDS + 8 * k))
            regs[NEED] = e - s
            if e - s > CACHED_BYTES:
                code = NEW_CHUNK
                break
            code = _room(regs)
            if code != DONE:
                break
            if not plain_chunk(regs, s, e, record, regs[P_SPANS] + _PIECES):
                code = NEW_CHUNK
                break
            n_ids = regs[N_IDS]
            k += 1
            continue
        value = get64(slot + 24)
        tokens += np.int64(value >> np.uint64(56))
        kept = np.int64(value >> np.uint64(48)) & 0xFF
        first = np.int64(value) & 0xFFFFFFFF
        if kept <= 1:
            # Written in any case and kept by moving on: no branch to guess wrong.
            put32(ids + 4 * n_ids, first)
            n_ids += kept
        else:
            for i in range(first, first + kept):
                put32(ids + 4 * n_ids, get32(seqs + 4 * i))
                n_ids += 1
        k += 1
    regs[N_IDS], regs[SPAN] = n_ids, k
    regs[N_TOKENS] += tokens
    return code


@njit(cache=True)
def known_chunks(regs: Any) -> int:
    """Scan on from the registers as long as chunks are in the cache or plain.

    Returns DONE at the end of the text, FULL when the ids have to be taken before going on,
    NEW_CHUNK with chunk ``regs[SPAN]`` of the batch to be counted by the rules, or a GROW_* code.
    """
    while True:
        if regs[SPAN] >= regs[N_SPANS]:
            if regs[SCAN_AT] >= regs[SCAN_END]:
                return DONE
            if regs[N_IDS] >= FULL_AT:
                return FULL
            _find_spans(regs)
            hash_spans(regs)
        code = _look_up(regs)
        if code != DONE:
            return code
