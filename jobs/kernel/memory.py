"""The kernel's memory: growing arrays, the registers that survive growth, the word table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from plumbline.jobs.kernel.bits import SLACK, address, mix, unowned, word_key
from plumbline.jobs.kernel.tables import Tables, stop_words

#: A run of bytes without whitespace longer than this is cut here (at a character).
MAX_CHUNK = 1 << 16

#: Words with smaller ids than this have a place in Memory.dense.
DENSE_WORDS = 1 << 14

#: A text with escapes is unescaped in pieces of this many bytes.
PIECE = 1 << 16
#: Room for a piece after a chunk that was left over.
TEXT_SIZE = PIECE + MAX_CHUNK + 2 * SLACK

#: Chunks of up to this many bytes are kept in the cache.
CACHED_BYTES = 23
#: Bytes of text whose chunks are looked up together.
BATCH = 2048
#: Room for the chunks of a batch.
N_STARTS = BATCH // 2 + 128
#: Ids of a document above which they are counted before more text is scanned.
FULL_AT = 1 << 14
#: Rows for ``pairs`` that are counted in one go, at least.
LATE = 1 << 10
#: The same with ALL_PAIRS.
ALL_LATE = 1 << 20
#: Room for ids: a batch, or a chunk of any length, goes on top of FULL_AT.
MAX_IDS = FULL_AT + MAX_CHUNK + 2 * BATCH

# Registers: one int64 each in Memory.regs.
(
    N_IDS,  # kept tokens in ids
    FIRST,  # the first of them that is not counted yet
    N_TALLIED,  # how many of them are counted as words
    N_EARLIER,  # kept tokens of the document that are counted and gone from ids
    N_WORDS,  # distinct words interned, targets and stop words among them
    ARENA_USED,  # bytes of the arena in use
    CACHE_USED,  # chunks in the cache
    SEQ_USED,  # entries of seqs in use
    N_TARGETS,  # words 0..N_TARGETS-1 are the targets
    N_STOPS,  # the next words are stop words, never counted; 0 when stop words are kept
    PAIRS_USED,  # (word, target) entries
    N_LATE,  # rows set aside in late, with ALL_PAIRS
    FOLD_AT,  # N_TOKENS at which dense must be folded into folded
    N_TOKENS,  # word tokens before the stop filter, all documents
    N_KEPT,  # kept tokens, all documents
    N_PAIRS,  # all co-occurrences, all documents
    N_DOCUMENTS,  # documents counted
    WINDOW,  # width of the window in kept tokens
    RULE,  # 0 pairs, 1 windows
    ALL_PAIRS,  # 1 when pairs of any two words are kept
    STAGE,  # what is to be done next, see block.py
    LINE_START,  # current line in the block
    LINE_END,
    TEXT_START,  # current text: what is left of it, in the block or still escaped
    TEXT_END,
    ESCAPED,  # 1 when the text goes through Memory.text piece by piece, 2 when it is there whole
    FILLED,  # bytes of Memory.text in use
    N_LINES,  # lines of the block that are done, blank ones included
    NEXT_START,  # where the next line of the block starts
    NEED,  # bytes of the chunk that asked for growth
    SCAN_AT,  # addresses: how far the text is cut into chunks, its end
    SCAN_END,
    SCAN_FINAL,  # whether the text ends there
    SCAN_OPEN,  # where the chunk at hand starts, 0 when there is none
    SCAN_INSIDE,  # 1 when the byte before SCAN_AT belongs to a chunk
    SCAN_CARRY,  # bits of whitespace that reaches into the next 64 bytes
    SPAN,  # chunk of the batch that is next, and how many there are
    N_SPANS,
    P_CACHE,  # addresses of the arrays of the same names, and what is in them
    CACHE_MASK,
    CACHE_ROOM,
    P_SEQS,
    SEQ_ROOM,
    P_IDS,
    P_COUNTS,
    WORDS_ROOM,
    P_SLOTS,
    SLOT_MASK,
    P_OFFSETS,
    P_ARENA,
    ARENA_ROOM,
    P_SPANS,
    P_FLAGS,
    P_LANG,
    P_TEXT,
    P_BLOCK,
    P_DENSE,
    P_LATE,
    LATE_ROOM,
    P_PAIRS,
    PAIRS_MASK,
    PAIRS_ROOM,
    N_REGS,
) = range(63)

# What the kernel asks of its caller before it can go on.
DONE, GROW_CHUNK, GROW_WORDS, GROW_ARENA = range(4)
GROW_CACHE, GROW_PAIRS, ASK, NEW_CHUNK, FULL, FOLD = range(4, 10)


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
        ids: int32[MAX_IDS], kept word ids of the document at hand that are needed still.
        dense: uint32[targets * DENSE_WORDS], co-occurrences of the words met first, which are the
            frequent ones: target by target, so that the commonest targets' parts stay in the
            processor's cache.
        folded: int64, what dense held before it could overflow; empty until then.
        late: int64, rows set aside: for ``pairs``, or with ALL_PAIRS for ``runs.py``.
        pairs: uint64[2 * power of two], the same for later words: (word * targets + target) + 1
            and its count.
        text: uint8, the piece at hand of a text that has escapes.
        spans: int64, scratch of chunks.py.
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
    dense: NDArray[np.uint32]
    folded: NDArray[np.int64]
    late: NDArray[np.int64]
    pairs: NDArray[np.uint64]
    text: NDArray[np.uint8]
    spans: NDArray[np.int64]
    last: NDArray[np.int64]


def fold_every(window: int) -> int:
    """Tokens of which no cell of ``Memory.dense`` can be full, those of MAX_IDS more included."""
    return int((1 << 31) // (window - 1) - MAX_IDS)


def chunk_arrays(n: int) -> dict[str, Any]:
    """Scratch for a chunk of n code points."""
    return {
        "cps": np.empty(n, np.int32),
        "ends": np.empty(2 * n + 8, np.int32),
        "tail": np.empty(2 * n + 8, np.int32),
        "wbuf": np.empty(4 * n + SLACK, np.uint8),
    }


def new_memory(
    targets: list[str],
    window: int,
    rule: int,
    *,
    keep_stops: bool = False,
    all_pairs: bool = False,
) -> Memory:
    """Fresh memory with the targets interned as words 0..T-1 and the stop words after them.

    Args:
        targets: distinct lowercase words. window: at least 2. rule: 0 pairs, 1 windows.
        keep_stops: count stop words as any other. all_pairs: pairs of any two words.
    """
    words = first_words(targets, keep_stops)
    regs = np.zeros(N_REGS, np.int64)
    regs[N_TARGETS], regs[WINDOW], regs[RULE] = len(targets), window, rule
    regs[N_STOPS], regs[ALL_PAIRS] = len(words) - len(targets), int(all_pairs)
    regs[FOLD_AT] = fold_every(window)
    n_words = 1 << max(14, (4 * len(words)).bit_length())
    memory = Memory(
        regs=regs,
        **chunk_arrays(1 << 10),
        slots=np.zeros(2 * 2 * n_words, np.uint64),
        offsets=np.zeros(n_words + 1, np.int64),
        arena=np.empty(16 * n_words + 256 * len(targets), np.uint8),
        counts=np.zeros(n_words, np.int64),
        cache=np.zeros(4 << 17, np.uint64),
        seqs=np.empty(1 << 16, np.int32),
        ids=np.empty(MAX_IDS, np.int32),
        dense=np.zeros(0 if all_pairs else DENSE_WORDS * len(targets), np.uint32),
        folded=np.zeros(0, np.int64),
        late=np.empty(ALL_LATE + window * window if all_pairs else LATE + 2 * window, np.int64),
        pairs=np.zeros(2 << 14, np.uint64),
        text=np.empty(TEXT_SIZE, np.uint8),
        spans=np.empty(6 * N_STARTS + 4 * (CACHED_BYTES + 1), np.int64),
        last=np.zeros(window, np.int64),
    )
    intern(memory, words)
    return memory


def first_words(targets: list[str], keep_stops: bool = False) -> list[bytes]:
    """Words that have fixed ids: the targets, then the stop words that are none."""
    stops = [] if keep_stops else sorted(stop_words() - set(targets))
    return [word.encode() for word in [*targets, *stops]]


def intern(memory: Memory, words: list[bytes]) -> NDArray[np.int32]:
    """Ids of words, those that are new added; there must be room for them."""
    m = memory
    ends = np.cumsum([0, *map(len, words)])
    data = np.frombuffer(b"".join(words) + bytes(SLACK), np.uint8)
    ids = np.empty(len(words), np.int32)
    _intern(m.regs, m.slots, m.offsets, m.arena, data, ends, ids)
    return ids


@njit(cache=True)
def point(t: Any, m: Any, block: Any) -> None:
    """Write the addresses of all arrays, and what is in them, to the registers."""
    regs = m.regs
    regs[P_CACHE], regs[CACHE_MASK] = address(m.cache), m.cache.size // 4 - 1
    regs[CACHE_ROOM] = 3 * m.cache.size // 16 - 1
    regs[P_SEQS], regs[SEQ_ROOM] = address(m.seqs), m.seqs.size - 2 * CACHED_BYTES
    regs[P_IDS], regs[P_COUNTS], regs[WORDS_ROOM] = address(m.ids), address(m.counts), m.counts.size
    # The word table has at least twice as many slots as there are counts.
    regs[P_SLOTS], regs[SLOT_MASK] = address(m.slots), m.slots.size // 2 - 1
    regs[P_OFFSETS], regs[P_ARENA] = address(m.offsets), address(m.arena)
    regs[ARENA_ROOM] = m.arena.size - 8 * CACHED_BYTES
    regs[P_SPANS], regs[P_FLAGS], regs[P_LANG] = address(m.spans), address(t.flags), address(t.lang)
    regs[P_TEXT], regs[P_BLOCK] = address(m.text), address(block)
    regs[P_DENSE], regs[P_LATE], regs[P_PAIRS] = address(m.dense), address(m.late), address(m.pairs)
    regs[LATE_ROOM] = m.late.size
    regs[PAIRS_MASK], regs[PAIRS_ROOM] = m.pairs.size // 2 - 1, m.pairs.size // 4


@njit(cache=True)
def chunk_slot(k0: int, k1: int, k2: int) -> int:
    """First slot (before masking) of a chunk in the cache."""
    h = k0 * np.uint64(0x9E3779B97F4A7C15) ^ k1 * np.uint64(0xC2B2AE3D27D4EB4F)
    h ^= k2 * np.uint64(0x165667B19E3779F9)
    h = (h ^ (h >> np.uint64(29))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64(h >> np.uint64(34))


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
def _intern(
    regs: Any, slots: Any, offsets: Any, arena: Any, data: Any, ends: Any, ids: Any
) -> None:
    for k in range(ids.size):
        word = find_word(slots, offsets, arena, data, ends[k], ends[k + 1])
        if word < 0:
            word = add_word(regs, slots, offsets, arena, -1 - word, data, ends[k], ends[k + 1])
        ids[k] = word


@njit(cache=True)
def borrowed(m: Any) -> Any:
    """Memory whose arrays have no owner (``bits.unowned``); ``m`` must outlive it."""
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
        unowned(m.folded),
        unowned(m.late),
        unowned(m.pairs),
        unowned(m.text),
        unowned(m.spans),
        unowned(m.last),
    )


@njit(cache=True)
def borrowed_tables(t: Any) -> Any:
    """The same for the constant tables."""
    return Tables(unowned(t.flags), unowned(t.lower), unowned(t.lang), unowned(t.stop_keys))
