"""The kernel's memory: growing arrays, the registers that survive growth, the word table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from jobs.bits import SLACK, hash_bytes, load64, low_bytes, mix, unowned
from jobs.tables import Tables

#: A run of bytes without whitespace longer than this is cut here (at a character).
MAX_CHUNK = 1 << 16

#: Words with smaller ids than this have a row of their own in Memory.dense.
DENSE_WORDS = 1 << 16

# Registers: one int64 each in Memory.regs.
(
    N_IDS,  # kept tokens of the document so far
    N_WORDS,  # distinct words interned, targets among them
    ARENA_USED,  # bytes of the arena in use
    CACHE_USED,  # chunks in the cache
    SEQ_USED,  # entries of seqs in use
    N_TARGETS,  # words 0..N_TARGETS-1 are the targets
    PAIRS_USED,  # (word, target) entries
    N_TOKENS,  # word tokens before the stop filter, all documents
    N_KEPT,  # kept tokens, all documents
    N_PAIRS,  # all co-occurrences, all documents
    N_DOCUMENTS,  # documents counted
    WINDOW,  # width of the window in kept tokens
    RULE,  # 0 pairs, 1 windows
    STAGE,  # where a document was left: see sweep
    AT,  # offset (bytes or tokens) to go on from
    LINE_START,  # current line in the block
    LINE_END,
    TEXT_START,  # current text, in the block or in the unescaped copy
    TEXT_END,
    TEXT_COPIED,  # 1 when the text is in Memory.text
    N_LINES,  # lines of the block that are done, blank ones included
    KEEP_STOPS,  # 1 to keep stop words (for the words() function)
    NEXT_START,  # where the next line of the block starts
    NEED,  # bytes of the chunk that asked for growth
    CHUNK_END,  # end of a chunk that is not in the cache
    CHUNK_SLOT,  # free slot of the cache for it
    N_REGS,
) = range(27)

# What the kernel asks of its caller before it can go on.
DONE, GROW_CHUNK, GROW_WORDS, GROW_ARENA, GROW_IDS = range(5)
GROW_CACHE, GROW_PAIRS, GROW_TEXT, ASK, NEW_CHUNK = range(5, 10)


class Memory(NamedTuple):
    """Arrays the kernel works in. It never allocates: it returns a GROW_* code and is resumed.

    Attributes:
        regs: int64[N_REGS], registers named above.
        cps, ends, tail: int32, code points and pieces of the chunk at hand.
        wbuf: uint8, the token at hand, lowercase UTF-8.
        slots: uint64[2 * power of two], word table: key, id + 1. Words of up to 7 bytes are their
            own key; longer ones have a hash with a top byte of 255 and are compared in the arena.
        offsets: int64[words + 1], where each word's bytes start in the arena.
        arena: uint8, bytes of all words.
        counts: int64[words], occurrences.
        cache: uint64[4 * power of two], chunks seen: 24 bytes of chunk and length, then its value.
        seqs: int32, ids of chunks with several kept words.
        ids: int32, kept word ids of the document at hand.
        dense: int64[DENSE_WORDS * targets], co-occurrences of the words met first, which are the
            frequent ones: one row a word, so that a word's commonest targets share a cache line.
        pairs: uint64[2 * power of two], the same for later words: (word * targets + target) + 1
            and its count.
        text: uint8, unescaped text of the document at hand.
        last: int64[window], scratch of the windows rule.
    """

    regs: NDArray[np.int64]
    cps: NDArray[np.int32]
    ends: NDArray[np.int32]
    tail: NDArray[np.int32]
    wbuf: NDArray[np.uint8]
    slots: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    arena: NDArray[np.uint8]
    counts: NDArray[np.int64]
    cache: NDArray[np.uint64]
    seqs: NDArray[np.int32]
    ids: NDArray[np.int32]
    dense: NDArray[np.int64]
    pairs: NDArray[np.uint64]
    text: NDArray[np.uint8]
    last: NDArray[np.int64]


@dataclass(frozen=True)
class Limits:
    """Bounds of the structures that may be emptied without losing counts."""

    cache_slots: int = 1 << 20


def _chunk_arrays(n: int) -> dict[str, Any]:
    return {
        "cps": np.empty(n, np.int32),
        "ends": np.empty(2 * n + 8, np.int32),
        "tail": np.empty(2 * n + 8, np.int32),
        "wbuf": np.empty(4 * n + SLACK, np.uint8),
    }


def new_memory(targets: list[str], window: int, rule: int, keep_stops: bool = False) -> Memory:
    """Fresh memory with the targets interned as words 0..T-1.

    Args:
        targets: distinct lowercase words. window: at least 2. rule: 0 pairs, 1 windows.
    """
    regs = np.zeros(N_REGS, np.int64)
    regs[N_TARGETS], regs[WINDOW], regs[RULE] = len(targets), window, rule
    regs[KEEP_STOPS] = int(keep_stops)
    n_words = 1 << max(14, (4 * len(targets)).bit_length())
    memory = Memory(
        regs=regs,
        **_chunk_arrays(1 << 10),
        slots=np.zeros(2 * 2 * n_words, np.uint64),
        offsets=np.zeros(n_words + 1, np.int64),
        arena=np.empty(16 * n_words + 256 * len(targets), np.uint8),
        counts=np.zeros(n_words, np.int64),
        cache=np.zeros(4 << 17, np.uint64),
        seqs=np.empty(1 << 16, np.int32),
        ids=np.empty(1 << 14, np.int32),
        dense=np.zeros(DENSE_WORDS * len(targets), np.int64),
        pairs=np.zeros(2 << 14, np.uint64),
        text=np.empty(1 << 16, np.uint8),
        last=np.zeros(window, np.int64),
    )
    for target in targets:
        word = np.frombuffer(target.encode() + bytes(SLACK), np.uint8)
        n = len(word) - SLACK
        free = -1 - find_word(memory.slots, memory.offsets, memory.arena, word, 0, n)
        add_word(regs, memory.slots, memory.offsets, memory.arena, free, word, 0, n)
    return memory


def _longer(array: NDArray[Any], n: int) -> NDArray[Any]:
    grown = np.zeros(n, array.dtype)
    grown[: array.size] = array
    return grown


def grow(memory: Memory, code: int, need: int, limits: Limits) -> Memory:
    """Memory with the structure named by ``code`` enlarged to hold at least ``need`` more."""
    m, regs = memory, memory.regs
    if code == GROW_CHUNK:
        return m._replace(**_chunk_arrays(2 * need + 64))
    if code == GROW_WORDS:
        size = m.slots.size
        while size < 4 * (regs[N_WORDS] + need + 1):
            size *= 2
        slots = np.zeros(2 * size, np.uint64)
        rehash_words(m.slots, slots)
        n = size // 2
        return m._replace(
            slots=slots, offsets=_longer(m.offsets, n + 1), counts=_longer(m.counts, n)
        )
    if code == GROW_ARENA:
        return m._replace(arena=_longer(m.arena, 2 * m.arena.size + need))
    if code == GROW_IDS:
        return m._replace(ids=_longer(m.ids, 2 * m.ids.size + need))
    if code == GROW_PAIRS:
        pairs = np.zeros(4 * m.pairs.size, np.uint64)
        rehash_pairs(m.pairs, pairs)
        return m._replace(pairs=pairs)
    if code == GROW_TEXT:
        return m._replace(text=np.empty(need + need // 4 + SLACK, np.uint8))
    if m.cache.size // 4 >= limits.cache_slots:
        m.cache[:] = 0
        regs[CACHE_USED] = regs[SEQ_USED] = 0
        return m
    cache = np.zeros(2 * m.cache.size, np.uint64)
    rehash_cache(m.cache, cache)
    return m._replace(cache=cache, seqs=_longer(m.seqs, 2 * m.seqs.size))


@njit(cache=True)
def rehash_words(old: Any, new: Any) -> None:
    """Move a word table into a larger zeroed one."""
    mask = new.size // 2 - 1
    for i in range(old.size // 2):
        if old[2 * i + 1]:
            at = np.int64(mix(old[2 * i]) >> np.uint64(20)) & mask
            while new[2 * at + 1]:
                at = (at + 1) & mask
            new[2 * at], new[2 * at + 1] = old[2 * i], old[2 * i + 1]


@njit(cache=True)
def rehash_pairs(old: Any, new: Any) -> None:
    """Move a pair table into a larger zeroed one."""
    mask = new.size // 2 - 1
    for i in range(old.size // 2):
        if old[2 * i]:
            at = np.int64(mix(old[2 * i]) >> np.uint64(20)) & mask
            while new[2 * at]:
                at = (at + 1) & mask
            new[2 * at], new[2 * at + 1] = old[2 * i], old[2 * i + 1]


@njit(cache=True)
def chunk_slot(k0: int, k1: int, k2: int) -> int:
    """First slot (before masking) of a chunk in the cache."""
    h = k0 * np.uint64(0x9E3779B97F4A7C15) ^ k1 * np.uint64(0xC2B2AE3D27D4EB4F)
    h ^= k2 * np.uint64(0x165667B19E3779F9)
    h = (h ^ (h >> np.uint64(29))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64(h >> np.uint64(34))


@njit(cache=True)
def rehash_cache(old: Any, new: Any) -> None:
    """Move the chunk cache into a larger zeroed one."""
    mask = new.size // 4 - 1
    for i in range(0, old.size, 4):
        if old[i + 2]:
            at = chunk_slot(old[i], old[i + 1], old[i + 2]) & mask
            while new[4 * at + 2]:
                at = (at + 1) & mask
            for k in range(4):
                new[4 * at + k] = old[i + k]


@njit(cache=True)
def word_key(data: Any, s: int, e: int) -> int:
    """Key of the word data[s:e]: itself up to 7 bytes, else a hash with a top byte of 255."""
    n = e - s
    if n <= 7:
        return (load64(data, s) & low_bytes(n)) | (np.uint64(n) << np.uint64(56))
    return hash_bytes(data, s, e) | np.uint64(0xFF00000000000000)


@njit(cache=True)
def _same_word(offsets: Any, arena: Any, word: int, data: Any, s: int, e: int) -> bool:
    start = offsets[word]
    if offsets[word + 1] - start != e - s:
        return False
    for k in range(e - s):
        if arena[start + k] != data[s + k]:
            return False
    return True


@njit(cache=True)
def find_word(slots: Any, offsets: Any, arena: Any, data: Any, s: int, e: int) -> int:
    """Id of the word data[s:e], or -1 - its free slot."""
    key = word_key(data, s, e)
    mask = slots.size // 2 - 1
    at = np.int64(mix(key) >> np.uint64(20)) & mask
    while slots[2 * at + 1]:
        if slots[2 * at] == key:
            word = np.int64(slots[2 * at + 1]) - 1
            if e - s <= 7 or _same_word(offsets, arena, word, data, s, e):
                return word
        at = (at + 1) & mask
    return -1 - at


@njit(cache=True)
def add_word(
    regs: Any, slots: Any, offsets: Any, arena: Any, at: int, data: Any, s: int, e: int
) -> int:
    """Put the new word data[s:e] into the free slot ``at``; returns its id. There must be room."""
    word = regs[N_WORDS]
    slots[2 * at] = word_key(data, s, e)
    slots[2 * at + 1] = np.uint64(word + 1)
    start = regs[ARENA_USED]
    for k in range(e - s):
        arena[start + k] = data[s + k]
    regs[ARENA_USED] = start + e - s
    offsets[word + 1] = start + e - s
    regs[N_WORDS] = word + 1
    return word


@njit(cache=True)
def borrowed(m: Any) -> Any:
    """Memory whose arrays have no owner, see :func:`jobs.bits.unowned`; ``m`` must outlive it."""
    return Memory(
        unowned(m.regs),
        unowned(m.cps),
        unowned(m.ends),
        unowned(m.tail),
        unowned(m.wbuf),
        unowned(m.slots),
        unowned(m.offsets),
        unowned(m.arena),
        unowned(m.counts),
        unowned(m.cache),
        unowned(m.seqs),
        unowned(m.ids),
        unowned(m.dense),
        unowned(m.pairs),
        unowned(m.text),
        unowned(m.last),
    )


@njit(cache=True)
def borrowed_tables(t: Any) -> Any:
    """The same for the constant tables."""
    return Tables(unowned(t.flags), unowned(t.lower), unowned(t.lang), unowned(t.stop_keys))
