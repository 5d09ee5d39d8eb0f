"""Turn text into the ids of its kept words, in compiled code that looks up many chunks at a time.

A chunk is a piece of text without whitespace. Most chunks have occurred before, so a cache has the
ids of their kept words. Four short loops handle a batch of text. The first finds the chunks. The
second hashes them and prefetches their cache slots. The third reads the slots and prefetches the
words of new chunks. The fourth appends the ids. A single loop would wait for memory at every chunk.
"""

from __future__ import annotations

import numpy as np

from plumbline.jobs.kernel.cache import EntryPoint, compiled
from plumbline.jobs.kernel.memory import (
    get8,
    get32,
    get64,
    get_int,
    prefetch,
    put32,
    put64,
    put_first,
    range_bits,
    set_bits,
    trailing_zeros,
)
from plumbline.jobs.kernel.tokens.chunk_words import MAX_CHUNK, prefetch_first_word, split_words
from plumbline.jobs.kernel.tokens.language_tables import SplitState
from plumbline.jobs.kernel.tokens.words import IdState, WordState, add_word, find_word

#: Marks the end of a document in a buffer of texts. It is a chunk of one byte that isn't UTF-8.
END = b"\n\xff\n"
_END_BYTE = 0xFF
#: Longest chunk, in bytes, that is cached. The last of a cache key's 24 bytes is the
#: chunk's length. For a longer chunk, this byte is 24 or more, so the key is never found.
_MAX_CACHED = 23
#: Longest chunk, in bytes, that spaCy splits. Longer chunks are cut first, since spaCy's time grows
#: with the square of the length.
MAX_ASKED = 1 << 10
#: The chunks of a batch are looked up together. A batch has at most this many bytes and chunks.
_BATCH_BYTES = 2048
MAX_BATCH_CHUNKS = _BATCH_BYTES // 2 + 128

_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
#: Used as the value of a chunk that isn't in the cache.
_NEW = _ONES


class ChunkState:
    """The cache of chunks, and the current batch of chunks."""

    # Address of a hash table. An entry has a key of 24 bytes (the chunk and its length) and a value
    # of 8 bytes. The value's top byte is the chunk's number of words. The next byte is the number
    # of kept words. The low 32 bits are the id of the kept word. If several words are kept, these
    # bits are the index in ``kept`` at which the words' ids start.
    cache: int
    mask: int
    n: int
    capacity: int
    kept: int  # Address of the ids of chunks with several kept words.
    n_kept: int
    kept_capacity: int
    starts: int
    ends: int
    keys: int  # Address of the chunks' keys. Each key is followed by a cache slot's address.
    values: int  # Address of the chunks' cached values. A new chunk's value is _NEW.
    missing: int  # Address of 32-bit indices of chunks that the first searched slot doesn't hold.
    n_batch: int
    open: int  # Address of a chunk whose end has not been found yet, or 0.
    inside: int  # 1 if the last byte that was read belongs to a chunk.
    carry: int  # Mask of bytes that end a whitespace character begun in the previous 64 bytes.
    need: int  # Size in bytes of a batch whose words may not fit in the word table, or 0.
    is_asking: int  # 1 if spaCy splits new chunks, else 0. English doesn't need spaCy.
    unknown: int  # Address of the first chunk that spaCy must split, or 0.
    ids_before: int  # Number of ids that were stored before the chunk at ``unknown``.
    tokens_before: int


@compiled
def _wide_blanks(at: int) -> tuple[int, int]:
    """Return two masks that mark the starts of two-byte and three-byte blanks in at..at+63."""
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


@compiled
def _add_positions(positions: int, n: int, at: int, bits: int) -> int:
    """Append to ``positions`` the address of each byte whose bit is set. Return the new length.

    About 11 chunks start in 64 bytes of prose. The function always writes at least 16 addresses,
    because a loop of unpredictable length would be slower.
    """
    n_after, one = n + set_bits(bits), np.uint64(1)
    for k in range(16):
        put64(positions, n + k, at + trailing_zeros(bits))
        bits &= bits - one
    n += 16
    while bits:
        put64(positions, n, at + trailing_zeros(bits))
        n += 1
        bits &= bits - one
    return n_after


@compiled
def _find_chunks(c: ChunkState, at: int, end: int) -> int:
    """Find the chunks that end in the batch that starts at ``at``. Return the batch's end."""
    inside, carry = np.uint64(c.inside), np.uint64(c.carry)
    starts, ends, n_starts, n_ends = c.starts, c.ends, 0, 0
    if c.open:
        put64(starts, 0, c.open)
        n_starts = 1
    stop, one = min(at + _BATCH_BYTES, end), np.uint64(1)
    while at < stop:
        # These bytes end a chunk: 28 to 32 (space), 9 (tab) to 13 (carriage return), and NUL.
        blank = range_bits(at, 28, 5) | range_bits(at, 9, 5) | range_bits(at, 0, 1) | carry
        carry = np.uint64(0)
        if range_bits(at, 0xC2, 0x22):
            two, three = _wide_blanks(at)
            wide = two | three
            blank |= wide | wide << one | three << np.uint64(2)
            carry = wide >> np.uint64(63) | three >> np.uint64(62)
        if end - at < 64:
            blank |= _ONES << np.uint64(end - at)
        shifted = ~blank << one | inside
        first, last = ~blank & ~shifted, blank & shifted
        inside = ~blank >> np.uint64(63)
        n_starts = _add_positions(starts, n_starts, at, first)
        n_ends = _add_positions(ends, n_ends, at, last)
        at += 64
    at = min(at, end)
    if at == end and n_ends and get_int(c.ends, n_ends - 1) == end:
        # The last chunk ends where the text ends, so later text may continue the chunk.
        n_ends -= 1
    c.open = get_int(c.starts, n_ends) if n_starts > n_ends else 0
    while at == end and c.open and end - c.open > MAX_CHUNK:
        # Cut a chunk that is already too long, although its end isn't known yet.
        put64(c.starts, n_ends, c.open)
        c.open = _cut(c.open, end, MAX_CHUNK)
        put64(c.ends, n_ends, c.open)
        n_ends += 1
    c.inside, c.carry, c.n_batch = np.int64(inside), np.int64(carry), n_ends
    return at


@compiled
def _cut(s: int, e: int, longest: int) -> int:
    """Return where to cut a chunk: after at most ``longest`` bytes, between two characters."""
    if e - s <= longest:
        return e
    cut = s + longest
    while get8(cut, 0) & 0xC0 == 0x80:
        cut -= 1
    return cut


@compiled
def _slot(k0: int, k1: int, k2: int, mask: int) -> int:
    h = k0 * np.uint64(0x9E3779B97F4A7C15) ^ k1 * np.uint64(0xC2B2AE3D27D4EB4F)
    h ^= k2 * np.uint64(0x165667B19E3779F9)
    h = (h ^ (h >> np.uint64(29))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64(h >> np.uint64(34)) & mask


@compiled
def _hash_chunks(c: ChunkState) -> None:
    """Fill ``c.keys`` with the key of each chunk in the batch and the address of its cache slot."""
    starts, ends, keys, cache, mask = c.starts, c.ends, c.keys, c.cache, c.mask
    for k in range(c.n_batch):
        s = get_int(starts, k)
        n = min(get_int(ends, k) - s, _MAX_CACHED + 1)
        put_first(keys + 32 * k, s, n)
        k2 = get64(keys, 4 * k + 2) | np.uint64(n) << np.uint64(56)
        slot = cache + 32 * _slot(get64(keys, 4 * k), get64(keys, 4 * k + 1), k2, mask)
        prefetch(slot)
        put64(keys, 4 * k + 2, k2)
        put64(keys, 4 * k + 3, slot)


@compiled
def _search(c: ChunkState, k: int) -> bool:
    """Write the slot of chunk k, or a free slot, to ``keys``. Return whether chunk k is cached."""
    k0, k1, k2 = get64(c.keys, 4 * k), get64(c.keys, 4 * k + 1), get64(c.keys, 4 * k + 2)
    slot, cache_end = get_int(c.keys, 4 * k + 3), c.cache + 32 * (c.mask + 1)
    used = get64(slot, 2)
    while used and not (used == k2 and get64(slot, 0) == k0 and get64(slot, 1) == k1):
        slot += 32
        if slot == cache_end:
            slot = c.cache
        used = get64(slot, 2)
    put64(c.keys, 4 * k + 3, slot)
    return used != np.uint64(0)


@compiled
def _fetch_values(c: ChunkState, split: SplitState, words: WordState) -> None:
    """Fill ``c.values`` with each chunk's value in the cache, or _NEW if the chunk isn't cached.

    Also prefetch the words of new chunks. Otherwise :func:`_append_ids` would wait for memory.
    """
    keys, values, missing, n_missing = c.keys, c.values, c.missing, 0
    for k in range(c.n_batch):
        slot = get_int(keys, 4 * k + 3)
        differences = get64(slot, 0) ^ get64(keys, 4 * k)
        differences |= get64(slot, 1) ^ get64(keys, 4 * k + 1)
        differences |= get64(slot, 2) ^ get64(keys, 4 * k + 2)
        put64(values, k, get64(slot, 3))
        # Always store k, because a branch would be unpredictable. If chunk k was found, the next
        # chunk's index overwrites k.
        put32(missing, n_missing, k)
        n_missing += np.int64(differences != np.uint64(0))
    for i in range(n_missing):
        k = get32(missing, i)
        if _search(c, k):
            put64(values, k, get64(get_int(keys, 4 * k + 3), 3))
        else:
            put64(values, k, _NEW)
            if not c.is_asking:
                prefetch_first_word(split, words, get_int(c.starts, k), get_int(c.ends, k))


@compiled
def _append_ids(
    c: ChunkState,
    split: SplitState,
    asked: WordState,
    words: WordState,
    ids: IdState,
) -> None:
    """Append the ids of all chunks of the batch, splitting those that are not in the cache."""
    kept_ids, values, to, n_ids, tokens = c.kept, c.values, ids.ids, ids.n, 0
    for k in range(c.n_batch):
        value = get64(values, k)
        if value == _NEW:
            # Search again. If the batch contains the chunk twice, the cache may have it by now.
            if not _search(c, k):
                ids.n = n_ids
                ids.n_tokens += tokens
                tokens = _new_chunk(c, split, asked, words, ids, k)
                n_ids = ids.n
                continue
            value = get64(get_int(c.keys, 4 * k + 3), 3)
        tokens += np.int64(value >> np.uint64(56))
        n_kept = np.int64(value >> np.uint64(48)) & 0xFF
        first = np.int64(value) & 0xFFFFFFFF
        if n_kept <= 1:
            # Always store ``first``, because a branch would be unpredictable. If no word is kept,
            # the next id overwrites ``first``.
            put32(to, n_ids, first)
            n_ids += n_kept
        else:
            for i in range(first, first + n_kept):
                put32(to, n_ids, get32(kept_ids, i))
                n_ids += 1
    ids.n = n_ids
    ids.n_tokens += tokens


@compiled
def _noted(asked: WordState, s: int, e: int) -> int:
    """Find or add a chunk. Return its id, or a number below 0 if there is no room to add it."""
    chunk = find_word(asked, s, e)
    if chunk < 0 and asked.n + 1 < asked.capacity and asked.n_bytes + e - s <= asked.arena_capacity:
        return add_word(asked, -1 - chunk, s, e)
    return chunk


@compiled
def _new_chunk(
    c: ChunkState,
    split: SplitState,
    asked: WordState,
    words: WordState,
    ids: IdState,
    k: int,
) -> int:
    """Append the ids of chunk k of the batch, and cache them. Return the chunk's number of words.

    If spaCy must split the chunk, only add the chunk to ``asked``. Later new chunks are also added
    there, so spaCy splits many chunks per call. :func:`scan` removes all ids that were appended
    after the first such chunk.
    """
    s, e = get_int(c.starts, k), get_int(c.ends, k)
    first, n = ids.n, 0
    if get8(s, 0) == _END_BYTE:
        put32(ids.ids, first, words.n_fixed - 1)
        ids.n += 1
    else:
        at, longest = s, MAX_ASKED if c.is_asking else MAX_CHUNK
        while at < e:
            cut, answer = _cut(at, e, longest), -1
            if c.is_asking:
                answer = _noted(asked, at, cut)
                if not 0 <= answer < split.n_answered and not c.unknown:
                    c.unknown, c.ids_before, c.tokens_before = s, first, ids.n_tokens
            if not c.unknown:
                n += split_words(split, words, ids, at, cut, answer)
            at = cut
        if c.unknown:
            ids.n = first
            return 0
    kept = ids.n - first
    if e - s > _MAX_CACHED or c.n >= c.capacity or c.n_kept + kept > c.kept_capacity:
        return n
    value = get32(ids.ids, first) if kept == 1 else c.n_kept
    if kept > 1:
        for i in range(kept):
            put32(c.kept, c.n_kept + i, get32(ids.ids, first + i))
        c.n_kept += kept
    slot = get_int(c.keys, 4 * k + 3)
    for i in range(3):
        put64(slot, i, get64(c.keys, 4 * k + i))
    put64(slot, 3, n << 56 | kept << 48 | value)
    c.n += 1
    return n


@EntryPoint
def scan(
    c: ChunkState,
    split: SplitState,
    asked: WordState,
    words: WordState,
    ids: IdState,
    at: int,
    end: int,
) -> int:
    """Read the UTF-8 text at the addresses at..end, and append the ids of its kept words.

    Return the address where scanning stopped:

    - ``end`` if all text was read. If later text may continue the last chunk, that chunk's start.
    - The start of a batch of ``c.need`` bytes if its words may not fit in the word table.
    - ``c.unknown``, the address of the first chunk that spaCy must split, if there is one.

    SLACK bytes after ``end`` must be readable. ``ids`` needs room for one id per byte.
    """
    c.open = c.inside = c.carry = c.need = c.unknown = 0
    while at < end:
        at = _find_chunks(c, at, end)
        if c.n_batch:
            first = get_int(c.starts, 0)
            n = get_int(c.ends, c.n_batch - 1) - first
            if words.n + n >= words.capacity or words.n_bytes + 4 * n > words.arena_capacity:
                if c.unknown:
                    break
                c.need = n
                return first
            _hash_chunks(c)
            _fetch_values(c, split, words)
            _append_ids(c, split, asked, words, ids)
    if c.unknown:
        ids.n, ids.n_tokens = c.ids_before, c.tokens_before
        return c.unknown
    return c.open if c.open else end


@EntryPoint
def move(old: int, n_old: int, new: int, mask: int) -> None:
    """Copy the chunks of a cache to a larger, empty cache with ``mask`` + 1 slots."""
    for k in range(n_old):
        at = old + 32 * k
        if get64(at, 2):
            slot = _slot(get64(at, 0), get64(at, 1), get64(at, 2), mask)
            while get64(new, 4 * slot + 2):
                slot = (slot + 1) & mask
            for i in range(4):
                put64(new, 4 * slot + i, get64(at, i))
