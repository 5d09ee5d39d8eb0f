"""The kernel's memory as it grows, and how large it may become, compiled where it moves tables."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from plumbline.jobs.kernel.bits import mix
from plumbline.jobs.kernel.memory import (
    ALL_PAIRS,
    ARENA_USED,
    CACHE_USED,
    FOLD,
    FOLD_AT,
    GROW_ARENA,
    GROW_CHUNK,
    GROW_PAIRS,
    GROW_WORDS,
    N_IDS,
    N_LATE,
    N_STOPS,
    N_TARGETS,
    N_TOKENS,
    N_WORDS,
    PAIRS_USED,
    RULE,
    SEQ_USED,
    WINDOW,
    Memory,
    chunk_arrays,
    chunk_slot,
    fold_every,
    intern,
)

#: Smallest cap of a task's memory that can be kept.
LEAST_MEMORY = 512 << 20


@dataclass(frozen=True)
class Limits:
    """Bounds of the kernel's memory.

    Attributes:
        cache_slots: places of the chunk cache, which may be emptied without losing counts.
        n_bytes: size of all arrays at which counts are handed over before any array grows on.
        n_pair_bytes: the same for all arrays and the pairs of any two words together.
    """

    cache_slots: int = 1 << 20
    n_bytes: int = 1 << 62
    n_pair_bytes: int = 1 << 62


def limits_within(memory_bytes: int) -> Limits:
    """Limits under which this process stays below ``memory_bytes``.

    Two fifths of what it did not use from the start go to the kernel: tables made of its counts
    take as much again, and writing them some more. Pairs of any two words are handed over in
    smaller tables, so half may be taken with them. Below :data:`LEAST_MEMORY` no bound is promised.
    """
    left = max(memory_bytes - _bytes_at_first(), 1 << 27)
    share = 2 * left // 5
    cache_slots = min(1 << 20, 1 << (share // 128).bit_length())
    return Limits(cache_slots, n_bytes=share, n_pair_bytes=left // 2)


@cache
def _bytes_at_first() -> int:
    """Memory of this process when first asked for, before any count; a guess where unknown.

    Later it would hold the kernel's own, which is kept from shard to shard.
    """
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 300 << 20
    return pages * resource.getpagesize()


def n_bytes(memory: Memory) -> int:
    """Bytes of all arrays."""
    return sum(array.nbytes for array in memory)


def fits(memory: Memory, code: int, need: int, limits: Limits) -> bool:
    """Whether the structure named by ``code`` can grow within the limits, old and new at once."""
    m = memory
    grown = {
        GROW_WORDS: (m.slots, m.offsets, m.counts),
        GROW_ARENA: (m.arena,),
        GROW_PAIRS: (m.pairs,),
    }
    extra = sum(2 * array.nbytes for array in grown.get(code, ())) + 32 * need
    return code not in grown or n_bytes(m) + extra <= limits.n_bytes


def empty(memory: Memory, fixed: list[bytes]) -> None:
    """Forget all words and counts, but keep the words ``fixed`` and those of the ids at hand."""
    m, regs = memory, memory.regs
    pending = m.ids[: int(regs[N_IDS])]
    known, places = np.unique(pending, return_inverse=True)
    words = [m.arena[m.offsets[k] : m.offsets[k + 1]].tobytes() for k in known.tolist()]
    for array in (m.slots, m.counts, m.cache, m.dense, m.folded, m.pairs):
        array[:] = 0
    regs[[N_WORDS, ARENA_USED, CACHE_USED, SEQ_USED, PAIRS_USED, N_LATE]] = 0
    intern(m, fixed)
    if words:
        pending[:] = intern(m, words)[places]


def renew(memory: Memory, fixed: list[bytes]) -> None:
    """Make memory as good as new, keeping its arrays: the system is slow to hand out fresh ones."""
    kept = memory.regs[[N_TARGETS, N_STOPS, WINDOW, RULE, ALL_PAIRS]]
    memory.regs[:] = 0
    memory.regs[[N_TARGETS, N_STOPS, WINDOW, RULE, ALL_PAIRS]] = kept
    memory.regs[FOLD_AT] = fold_every(int(memory.regs[WINDOW]))
    empty(memory, fixed)


def _longer(array: NDArray[Any], n: int) -> NDArray[Any]:
    grown = np.zeros(n, array.dtype)
    grown[: array.size] = array
    return grown


def grow(memory: Memory, code: int, need: int, limits: Limits) -> Memory:
    """Memory with the structure named by ``code`` enlarged to hold at least ``need`` more."""
    m, regs = memory, memory.regs
    if code == FOLD:
        regs[FOLD_AT] = regs[N_TOKENS] + fold_every(int(regs[WINDOW]))
        folded = m.folded + m.dense if m.folded.size else m.dense.astype(np.int64)
        m.dense[:] = 0
        return m._replace(folded=folded)
    if code == GROW_CHUNK:
        return m._replace(**chunk_arrays(2 * need + 64))
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
        return m._replace(arena=_longer(m.arena, 2 * m.arena.size + 4 * need))
    if code == GROW_PAIRS:
        pairs = np.zeros(4 * m.pairs.size, np.uint64)
        rehash_pairs(m.pairs, pairs)
        return m._replace(pairs=pairs)
    if m.cache.size // 4 >= limits.cache_slots or n_bytes(m) + 2 * m.cache.nbytes > limits.n_bytes:
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
