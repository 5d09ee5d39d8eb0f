"""The word table, which has an id and a count for every distinct word.

Ids start at 0. The targets have the lowest ids, and the stop words have the next ones. So an id
shows whether a word is a target or a stop word. Other words follow in order of first occurrence.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plumbline.jobs.kernel.cache import EntryPoint, compiled
from plumbline.jobs.kernel.memory import (
    SLACK,
    address,
    get64,
    get_int,
    low_bytes,
    mix,
    new_record,
    prefetch,
    put32,
    put64,
    rehash,
    slot_of,
)

#: Stands for the end of a document. No other word contains a line feed.
END_WORD = b"\n"
#: Top byte of the key of a word longer than seven bytes.
_LONG_WORD = np.uint64(0xFF00000000000000)


class WordState:
    """The word table for compiled code. The bytes of all words are in the ``arena``."""

    slots: int  # Address of the hash table. Each slot contains a word's key and the word's id + 1.
    mask: int
    offsets: int  # Address of each word's offset in the arena.
    arena: int
    counts: int
    capacity: int
    arena_capacity: int
    n: int
    n_bytes: int
    n_targets: int
    n_fixed: int  # Number of targets and stop words, plus 1. END_WORD has the id n_fixed - 1.


@compiled
def _word_key(s: int, e: int) -> int:
    """Return the key of a nonempty word: its bytes and length, or a hash if it has over 7 bytes."""
    n = e - s
    if n <= 7:
        return (get64(s, 0) & low_bytes(n)) | (np.uint64(n) << np.uint64(56))
    h = np.uint64(n)
    while s + 8 <= e:
        h = mix(h ^ get64(s, 0)) + np.uint64(1)
        s += 8
    return mix(h ^ (get64(s, 0) & low_bytes(e - s))) | _LONG_WORD


@compiled
def _is_word(words: WordState, word: int, s: int, e: int) -> bool:
    at, n = words.arena + get_int(words.offsets, word), e - s
    if words.arena + get_int(words.offsets, word + 1) - at != n:
        return False
    for k in range(n >> 3):
        if get64(at, k) != get64(s, k):
            return False
    last = n >> 3
    return (get64(at, last) ^ get64(s, last)) & low_bytes(n & 7) == np.uint64(0)


@compiled
def find_word(words: WordState, s: int, e: int) -> int:
    """Return the id of the word s..e. If the word is new, find a free slot k and return -1 - k."""
    key = _word_key(s, e)
    at = slot_of(key, words.mask)
    while get64(words.slots, 2 * at):
        if get64(words.slots, 2 * at) == key:
            word = get_int(words.slots, 2 * at + 1) - 1
            if e - s <= 7 or _is_word(words, word, s, e):
                return word
        at = (at + 1) & words.mask
    return -1 - at


@compiled
def prefetch_word(words: WordState, s: int, e: int) -> None:
    """Prefetch the slot at which the search for the word s..e starts."""
    prefetch(words.slots + 16 * slot_of(_word_key(s, e), words.mask))


@compiled
def add_word(words: WordState, slot: int, s: int, e: int) -> int:
    """Add the word s..e at a free slot. Return its id. There must be room for the word."""
    word, start = words.n, words.n_bytes
    put64(words.slots, 2 * slot, _word_key(s, e))
    put64(words.slots, 2 * slot + 1, word + 1)
    for k in range((e - s + 7) >> 3):
        # This writes up to 7 bytes too many. The next word overwrites them.
        put64(words.arena + start, k, get64(s, k))
    words.n, words.n_bytes = word + 1, start + e - s
    put64(words.offsets, word + 1, words.n_bytes)
    return word


@EntryPoint
def _intern(words: WordState, data: int, ends: int, n: int, ids: int) -> None:
    start = 0
    for k in range(n):
        end = get_int(ends, k)
        word = find_word(words, data + start, data + end)
        if word < 0:
            word = add_word(words, -1 - word, data + start, data + end)
        put32(ids, k, word)
        start = end


class Words:
    """The word table.

    Args:
        targets: distinct lowercase words.
        stop_words: words that are not counted, except those that are targets.
    """

    def __init__(self, targets: Sequence[str], stop_words: Collection[str] = ()) -> None:
        stops = sorted(set(stop_words) - set(targets))
        self._fixed = [*(word.encode() for word in [*targets, *stops]), END_WORD]
        self.state = new_record(WordState)
        self.state.n_targets, self.state.n_fixed = len(targets), len(self._fixed)
        capacity = 1 << max(14, (4 * len(self._fixed)).bit_length())
        self._slots = np.zeros((2 * capacity, 2), np.uint64)
        self._offsets = np.zeros(capacity + 1, np.int64)
        self._counts = np.zeros(capacity, np.int64)
        n_fixed = sum(map(len, self._fixed))
        self._arena = np.zeros(16 * capacity + n_fixed + SLACK, np.uint8)
        self._publish()
        self.intern(self._fixed)

    @property
    def n_bytes(self) -> int:
        arrays = (self._slots, self._offsets, self._counts, self._arena)
        return sum(array.nbytes for array in arrays)

    def growth(self, need: int) -> int:
        """Return the minimum number of bytes that :meth:`grow` needs while it copies the arrays."""
        return 2 * self.n_bytes + 32 * need

    def grow(self, need: int) -> None:
        """Make room for all words that a text of ``need`` bytes can contain."""
        state = self.state
        capacity = self._counts.size
        while capacity < state.n + need + 1:
            capacity *= 2
        if capacity > self._counts.size:
            slots = np.zeros((2 * capacity, 2), np.uint64)
            rehash(address(self._slots), len(self._slots), address(slots), len(slots) - 1)
            self._slots = slots
            self._offsets = _longer(self._offsets, capacity + 1)
            self._counts = _longer(self._counts, capacity)
        if state.n_bytes + 4 * need > state.arena_capacity:
            self._arena = _longer(self._arena, 2 * self._arena.size + 4 * need)
        self._publish()

    def clear(self, pending: NDArray[np.int32]) -> None:
        """Remove all counts, and all words except targets, stop words and words in ``pending``.

        ``pending`` is an array of ids. They are replaced with the new ids of the same words.
        """
        ids, places = np.unique(pending, return_inverse=True)
        pending_words = [self._bytes(word) for word in ids.tolist()]
        self._slots[:] = 0
        self._counts[:] = 0
        self.state.n = self.state.n_bytes = 0
        self.intern(self._fixed)
        if pending_words:
            pending[:] = self.intern(pending_words)[places]

    def __len__(self) -> int:
        return int(self.state.n)

    def text(self, word: int) -> str:
        return self._bytes(word).decode()

    def vocabulary(self) -> pa.Array:
        """Return all words in the order of their ids."""
        n = int(self.state.n)
        offsets = pa.py_buffer(self._offsets[: n + 1].tobytes())
        arena = pa.py_buffer(self._arena[: int(self.state.n_bytes)].tobytes())
        large = pa.LargeStringArray.from_buffers(n, offsets, arena)
        return large.cast(pa.string()) if arena.size < 1 << 31 else large

    def table(self, vocabulary: pa.Array, with_ids: bool) -> pa.Table:
        """Return a table of the counted words, with the columns word and n_word, ordered by id.

        If ``with_ids``, add the column word_id. The tables of tokens have these ids.
        """
        counts = self._counts[: len(vocabulary)]
        seen = np.flatnonzero(counts)
        columns = {"word": vocabulary.take(pa.array(seen)), "n_word": counts[seen]}
        return pa.table(columns | ({"word_id": seen.astype(np.int32)} if with_ids else {}))

    def _bytes(self, word: int) -> bytes:
        return self._arena[self._offsets[word] : self._offsets[word + 1]].tobytes()

    def intern(self, words: list[bytes]) -> NDArray[np.int32]:
        """Return the ids of words. Add new words. There must be room for them."""
        data = np.frombuffer(b"".join(words) + bytes(SLACK), np.uint8)
        ends = np.cumsum([len(word) for word in words], dtype=np.int64)
        ids = np.empty(len(words), np.int32)
        _intern(self.state, address(data), address(ends), len(words), address(ids))
        return ids

    def _publish(self) -> None:
        state = self.state
        state.slots, state.mask = address(self._slots), len(self._slots) - 1
        state.offsets, state.counts = address(self._offsets), address(self._counts)
        state.arena = address(self._arena)
        state.capacity, state.arena_capacity = self._counts.size, self._arena.size - SLACK


def _longer(array: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    grown = np.zeros(n, array.dtype)
    grown[: array.size] = array
    return grown


class IdState:
    """Ids of kept words that are not counted yet. The id of END_WORD ends each document."""

    ids: int  # Address of an array of 32-bit ids.
    n: int
    n_tokens: int  # Word tokens so far, including stop words.
