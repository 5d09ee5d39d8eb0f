"""The word table: every distinct word has a count and an id, from 0 in order of first occurrence.

The first ids are those of the targets, then of stop words, so an id tells which kind a word is.
Words come from chunks (runs without whitespace). Bit masks split most chunks, such as "nurse's";
``splitting_rules`` split others, such as "don't".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plumbline.jobs.kernel.cache import EntryPoint, compiled
from plumbline.jobs.kernel.language_tables import ALNUM, CASED, IGNORABLE, MARK, tables
from plumbline.jobs.kernel.memory import (
    SLACK,
    address,
    get8,
    get32,
    get64,
    get_int,
    low_bytes,
    mix,
    new_record,
    prefetch,
    put8,
    put32,
    put64,
    range_bits,
    rehash,
    slot_of,
    trailing_zeros,
)
from plumbline.jobs.kernel.splitting_rules import SplitState, may_split, split_chunk

#: The word that stands for the end of a document; no token holds a line feed.
END_WORD = b"\n"
#: Top byte of the key of a word longer than seven bytes.
_LONG_WORD = np.uint64(0xFF00000000000000)
#: Longest chunk in bytes; a longer run without whitespace is cut between two characters.
MAX_CHUNK = 1 << 16
#: Longest chunk, in bytes, that is split by 64-bit masks.
_MAX_PLAIN = 62
_ONES, _SPACES = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0x2020202020202020)

_SIGMA, _SMALL_SIGMA, _FINAL_SIGMA = 0x3A3, 0x3C3, 0x3C2
_DOTTED_I, _DOT_ABOVE = 0x130, 0x307


class WordState:
    """The table for compiled code, with room for ``room`` words of ``arena_room`` bytes in all."""

    slots: int  # address of the hash table: key, id + 1
    mask: int
    offsets: int  # address of where each word's bytes start in the arena
    arena: int
    counts: int
    room: int
    arena_room: int
    n: int
    n_bytes: int
    n_targets: int
    n_fixed: int  # number of targets, stop words and END_WORD, which comes last


@compiled
def _word_key(s: int, e: int) -> int:
    """Key of the word s..e, which isn't empty: bytes and length up to 7 bytes, else a hash."""
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
    """Id of the word at the addresses s..e; for a new word -1 - slot, where ``slot`` is free."""
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
    """Add the word s..e, for which there must be room, at a free slot; returns its id."""
    word, start = words.n, words.n_bytes
    put64(words.slots, 2 * slot, _word_key(s, e))
    put64(words.slots, 2 * slot + 1, word + 1)
    for k in range((e - s + 7) >> 3):
        # Writes up to 7 bytes too many, which the next word replaces.
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
        room = 1 << max(14, (4 * len(self._fixed)).bit_length())
        self._slots = np.zeros((2 * room, 2), np.uint64)
        self._offsets = np.zeros(room + 1, np.int64)
        self._counts = np.zeros(room, np.int64)
        n_fixed = sum(map(len, self._fixed))
        self._arena = np.zeros(16 * room + n_fixed + SLACK, np.uint8)
        self._publish()
        self.intern(self._fixed)

    @property
    def n_bytes(self) -> int:
        """Bytes of all arrays."""
        arrays = (self._slots, self._offsets, self._counts, self._arena)
        return sum(array.nbytes for array in arrays)

    def growth(self, need: int) -> int:
        """Least bytes that :meth:`grow` takes, while old and new arrays exist."""
        return 2 * self.n_bytes + 32 * need

    def grow(self, need: int) -> None:
        """Make room for ``need`` more words with ``need`` bytes in all before lowercasing."""
        state = self.state
        room = self._counts.size
        while room < state.n + need + 1:
            room *= 2
        if room > self._counts.size:
            slots = np.zeros((2 * room, 2), np.uint64)
            rehash(address(self._slots), len(self._slots), address(slots), len(slots) - 1)
            self._slots = slots
            self._offsets = _longer(self._offsets, room + 1)
            self._counts = _longer(self._counts, room)
        if state.n_bytes + 4 * need > state.arena_room:
            self._arena = _longer(self._arena, 2 * self._arena.size + 4 * need)
        self._publish()

    def clear(self, pending: NDArray[np.int32]) -> None:
        """Forget all counts, and all words except the fixed ones and those with ids in ``pending``.

        ``pending`` gets the new ids.
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
        """The word with an id."""
        return self._bytes(word).decode()

    def words_from(self, first: int) -> list[str]:
        """The words with ids from ``first`` on."""
        return [self.text(word) for word in range(first, len(self))]

    def vocabulary(self) -> pa.Array:
        """All words by id."""
        n = int(self.state.n)
        offsets = pa.py_buffer(self._offsets[: n + 1].tobytes())
        arena = pa.py_buffer(self._arena[: int(self.state.n_bytes)].tobytes())
        large = pa.LargeStringArray.from_buffers(n, offsets, arena)
        return large.cast(pa.string()) if arena.size < 1 << 31 else large

    def table(self, vocabulary: pa.Array, with_ids: bool) -> pa.Table:
        """Table word, n_word: every counted word once, in order of first occurrence.

        ``with_ids`` adds word_id, for the tokens that refer to it.
        """
        counts = self._counts[: len(vocabulary)]
        seen = np.flatnonzero(counts)
        columns = {"word": vocabulary.take(pa.array(seen)), "n_word": counts[seen]}
        return pa.table(columns | ({"word_id": seen.astype(np.int32)} if with_ids else {}))

    def _bytes(self, word: int) -> bytes:
        return self._arena[self._offsets[word] : self._offsets[word + 1]].tobytes()

    def intern(self, words: list[bytes]) -> NDArray[np.int32]:
        """Ids of words, which are added if new; there must be room for them."""
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
        state.room, state.arena_room = self._counts.size, self._arena.size - SLACK


def _longer(array: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    grown = np.zeros(n, array.dtype)
    grown[: array.size] = array
    return grown


class IdState:
    """Ids of kept words that are not counted yet, with the id of END_WORD after each document."""

    ids: int  # address of 32-bit items
    n: int
    n_tokens: int  # word tokens so far, including stop words


class Splitter:
    """Tables and scratch memory for splitting chunks."""

    def __init__(self) -> None:
        constant, n = tables(), MAX_CHUNK + 8
        scratch = {
            "cps": np.empty(n, np.int32),
            "ends": np.empty(2 * n, np.int64),
            "tail": np.empty(2 * n, np.int64),
            "word": np.empty(4 * n + SLACK, np.uint8),
        }
        self._arrays = constant._asdict() | scratch
        self.state = new_record(SplitState)
        for name, array in self._arrays.items():
            setattr(self.state, name, address(array))
        self.state.slot_mask = constant.slots.size - 1
        self.state.n_units = constant.unit_starts.size - 1


@compiled
def split_words(
    split: SplitState, words: WordState, ids: IdState, s: int, e: int, answer: int
) -> int:
    """Append the ids of the chunk's kept words; returns its number of words with stop words.

    The chunk is at the addresses s..e. ``ids`` must have room. ``answer``: number of spaCy's answer
    for the chunk, or -1 for the rules of English.
    """
    if answer >= 0:
        _decode(s, e, split.cps)
        first = get_int(split.answer_starts, answer)
        ends = split.answers + 8 * first
        n_pieces = get_int(split.answer_starts, answer + 1) - first
    else:
        n = _plain_words(split, words, ids, s, e)
        if n >= 0:
            return n
        ends = split.ends
        n_pieces = split_chunk(split, _decode(s, e, split.cps))
    n = start = 0
    for k in range(n_pieces):
        end = get_int(ends, k)
        n += _add_piece(split, words, ids, start, end)
        start = end
    return n


@compiled
def _plain_words(split: SplitState, words: WordState, ids: IdState, s: int, e: int) -> int:
    """:func:`split_words` for a chunk whose words are its runs of ASCII letters; -1 for others.

    Most new chunks are one run, or runs with dashes between them; punctuation may stand before and
    after. How punctuation is split off doesn't matter, since words are stripped of it. Only an
    exception splits a run. A run may contain single apostrophes, but not a final possessive.
    """
    n, one = e - s, np.uint64(1)
    if n > _MAX_PLAIN:
        return -1
    inside = (one << np.uint64(n)) - one
    letters = (range_bits(s, ord("A"), 26) | range_bits(s, ord("a"), 26)) & inside
    others = (range_bits(s, ord("0"), 10) | range_bits(s, 0x80, 0x80)) & inside
    apostrophes = range_bits(s, ord("'"), 1) & letters << one & letters >> one
    # U+2000 to U+203F include quotes and dashes, but no letters, combining marks or numbers.
    general, long_dashes = np.uint64(0), np.uint64(0)
    if others:
        general = range_bits(s, 0xE2, 1) & range_bits(s + 1, 0x80, 1)
        long_dashes = general & range_bits(s + 2, 0x93, 2)
        if others & ~(general | general << one | general << np.uint64(2)):
            return -1
        curly = general & range_bits(s + 2, 0x99, 1) & letters << one & letters >> np.uint64(3)
        apostrophes |= curly | curly << one | curly << np.uint64(2)
    runs = letters | apostrophes
    left, hyphens, end = runs, range_bits(s, ord("-"), 1), 0
    while left:
        start = trailing_zeros(left)
        if end:
            n_dash = start - end
            dash = (one << np.uint64(n_dash)) - one
            is_hyphens = n_dash <= 3 and (hyphens >> np.uint64(end)) & dash == dash
            if not (is_hyphens or (n_dash == 3 and (long_dashes >> np.uint64(end)) & one)):
                return -1
        end = start + trailing_zeros(~(left >> np.uint64(start)))
        if may_split(split, s + start, end - start):
            return -1
        left &= _ONES << np.uint64(end)
    n_possessive = 0
    if end > 2 and (apostrophes >> np.uint64(end - 2)) & one and get8(s, end - 1) | 32 == ord("s"):
        n_possessive = 2 if get8(s, end - 2) == ord("'") else 4
        rest = end - n_possessive
        is_only = end == n and trailing_zeros(apostrophes) >= rest
        if not is_only or may_split(split, s + start, rest - start):
            return -1
        runs &= (one << np.uint64(rest)) - one
    n = 0
    while runs:
        start = trailing_zeros(runs)
        end = start + trailing_zeros(~(runs >> np.uint64(start)))
        _add_run(split, words, ids, s + start, s + end)
        runs &= _ONES << np.uint64(end)
        n += 1
    if n_possessive:
        n += _add_piece(split, words, ids, 0, _decode(e - n_possessive, e, split.cps))
    return n


@compiled
def _add_run(split: SplitState, words: WordState, ids: IdState, s: int, e: int) -> None:
    """Append the word of the letters and apostrophes s..e unless it is a stop word."""
    out, n = split.word, e - s
    _write_lowercase(out, s, n)
    word = find_word(words, out, out + n)
    if words.n_targets <= word < words.n_fixed:
        return
    if word < 0:
        word = add_word(words, -1 - word, out, out + n)
    put32(ids.ids, ids.n, word)
    ids.n += 1


@compiled
def _write_lowercase(out: int, s: int, n: int) -> None:
    """Write the n letters and apostrophes at s in lowercase to ``out``, and up to 7 bytes more."""
    for k in range((n + 7) >> 3):
        eight = get64(s, k)
        # Sets bit 0x20 of ASCII bytes, which an apostrophe has already.
        put64(out, k, eight | _SPACES & ~(eight >> np.uint64(2)))


@compiled
def prefetch_first_word(split: SplitState, words: WordState, s: int, e: int) -> None:
    """Prefetch the word table's slot of the chunk's first run of ASCII letters, if it has one."""
    n = min(e - s, _MAX_PLAIN)
    letters = range_bits(s, ord("A"), 26) | range_bits(s, ord("a"), 26)
    letters &= (np.uint64(1) << np.uint64(n)) - np.uint64(1)
    if letters:
        start = trailing_zeros(letters)
        n = trailing_zeros(~(letters >> np.uint64(start)))
        _write_lowercase(split.word, s + start, n)
        prefetch_word(words, split.word, split.word + n)


@compiled
def _decode(s: int, e: int, cps: int) -> int:
    """Write the code points of the UTF-8 at s..e to ``cps``; returns their number."""
    n = 0
    while s < e:
        c = get8(s, 0)
        if c < 0x80:
            s += 1
        elif c < 0xE0:
            c = (c & 0x1F) << 6 | get8(s, 1) & 0x3F
            s += 2
        elif c < 0xF0:
            c = (c & 0x0F) << 12 | (get8(s, 1) & 0x3F) << 6 | get8(s, 2) & 0x3F
            s += 3
        else:
            upper = (get8(s, 1) & 0x3F) << 12 | (get8(s, 2) & 0x3F) << 6
            c = (c & 0x07) << 18 | upper | get8(s, 3) & 0x3F
            s += 4
        put32(cps, n, c)
        n += 1
    return n


@compiled
def _add_piece(split: SplitState, words: WordState, ids: IdState, a: int, b: int) -> int:
    """Append the word of piece a..b unless it is a stop word; returns 1, or 0 without a word."""
    flags, cps, out = split.flags, split.cps, split.word
    s, z = a, b
    while s < z and not get32(flags, get32(cps, s)) & ALNUM:
        s += 1
    if s == z:
        return 0
    while not get32(flags, get32(cps, z - 1)) & (ALNUM | MARK):
        z -= 1
    n, start, end = 0, 0, 0
    for k in range(a, b):
        if k == s:
            start = n
        c = get32(cps, k)
        if c == _SIGMA:
            n = put_utf8(out, n, _lower_sigma(flags, cps, a, b, k))
        else:
            n = put_utf8(out, n, get32(split.lower, c))
            if c == _DOTTED_I:
                n = put_utf8(out, n, _DOT_ABOVE)
        if k == z - 1:
            end = n
    word = find_word(words, out + start, out + end)
    if word < 0 or word >= words.n_targets:
        # Some stop words begin or end with an apostrophe: look up the whole piece as well.
        whole = word if n == end - start else find_word(words, out, out + n)
        if 0 <= word < words.n_fixed or 0 <= whole < words.n_fixed:
            return 1
        if word < 0:
            word = add_word(words, -1 - word, out + start, out + end)
    put32(ids.ids, ids.n, word)
    ids.n += 1
    return 1


@compiled
def _lower_sigma(flags: int, cps: int, a: int, b: int, k: int) -> int:
    """Lowercase of the capital sigma cps[k] in cps[a:b]: a final sigma at the end of a word."""
    p = k - 1
    while p >= a and get32(flags, get32(cps, p)) & IGNORABLE:
        p -= 1
    if p < a or not get32(flags, get32(cps, p)) & CASED:
        return _SMALL_SIGMA
    p = k + 1
    while p < b and get32(flags, get32(cps, p)) & IGNORABLE:
        p += 1
    return _FINAL_SIGMA if p >= b or not get32(flags, get32(cps, p)) & CASED else _SMALL_SIGMA


@compiled
def put_utf8(out: int, n: int, c: int) -> int:
    """Write the code point ``c`` as UTF-8 at ``out`` + n; returns the n after it."""
    if c < 0x80:
        put8(out, n, c)
        return n + 1
    if c < 0x800:
        put8(out, n, 0xC0 | c >> 6)
        put8(out, n + 1, 0x80 | c & 0x3F)
        return n + 2
    if c < 0x10000:
        put8(out, n, 0xE0 | c >> 12)
        put8(out, n + 1, 0x80 | c >> 6 & 0x3F)
        put8(out, n + 2, 0x80 | c & 0x3F)
        return n + 3
    put8(out, n, 0xF0 | c >> 18)
    put8(out, n + 1, 0x80 | c >> 12 & 0x3F)
    put8(out, n + 2, 0x80 | c >> 6 & 0x3F)
    put8(out, n + 3, 0x80 | c & 0x3F)
    return n + 4
