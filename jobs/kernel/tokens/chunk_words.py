"""Split chunks (pieces of text without whitespace) into words, in compiled code.

Most chunks, such as "nurse's", are split with bit masks. Others need ``splitting_rules``.
"""

from __future__ import annotations

import numpy as np

from plumbline.jobs.kernel.cache import compiled
from plumbline.jobs.kernel.memory import (
    SLACK,
    address,
    get8,
    get32,
    get64,
    get_int,
    new_record,
    put32,
    put64,
    put_utf8,
    range_bits,
    trailing_zeros,
)
from plumbline.jobs.kernel.tokens.language_tables import (
    ALNUM,
    CASED,
    IGNORABLE,
    MARK,
    SplitState,
    tables,
)
from plumbline.jobs.kernel.tokens.splitting_rules import may_split, split_chunk
from plumbline.jobs.kernel.tokens.words import (
    IdState,
    Words,
    WordState,
    add_word,
    find_word,
    prefetch_word,
)

#: Longest chunk, in bytes. A longer text without whitespace is cut between two characters.
MAX_CHUNK = 1 << 16
#: Longest chunk, in bytes, that is split by 64-bit masks.
_MAX_PLAIN = 62
_ONES, _SPACES = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0x2020202020202020)

_SIGMA, _SMALL_SIGMA, _FINAL_SIGMA = 0x3A3, 0x3C3, 0x3C2
_DOTTED_I, _DOT_ABOVE = 0x130, 0x307


class Splitter:
    """Tables and scratch memory for splitting chunks."""

    def __init__(self) -> None:
        constant, n = tables(), MAX_CHUNK + 8
        self.state = new_record(SplitState)
        self._arrays = {
            **{name: x for name, x in constant._asdict().items() if name != "listed"},
            "cps": np.empty(n, np.int32),
            "ends": np.empty(2 * n, np.int64),
            "tail": np.empty(2 * n, np.int64),
            "word": np.empty(4 * n + SLACK, np.uint8),
        }
        for name, array in self._arrays.items():
            setattr(self.state, name, address(array))
        self._listed = Words([])
        self._listed.intern([text.encode("utf-32-le") for text in constant.listed])
        for name in ("slots", "mask", "offsets", "arena"):
            setattr(self.state, name, getattr(self._listed.state, name))


@compiled
def split_words(
    split: SplitState, words: WordState, ids: IdState, s: int, e: int, answer: int
) -> int:
    """Append the ids of the chunk's kept words. Return its number of words, including stop words.

    The chunk is at the addresses s..e. ``ids`` must have room for its words. ``answer`` is the
    chunk's index among the chunks that spaCy has split, or -1 to use the rules of English.
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
    """Do the same as :func:`split_words`, but with bit masks. Return -1 if other rules are needed.

    Most new chunks are one run of ASCII letters, or several runs joined by dashes. Punctuation
    before and after the runs never belongs to a word. A run may contain single apostrophes, but not
    a final possessive.
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
    """Append the id of the word s..e (letters and apostrophes) unless it is a stop word."""
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
    """Write the n letters and apostrophes at s to ``out`` in lowercase, in groups of 8 bytes.

    The last group may overwrite up to 7 bytes after the text.
    """
    for k in range((n + 7) >> 3):
        eight = get64(s, k)
        # Set bit 0x20 of ASCII bytes to make letters lowercase. An apostrophe already has it.
        put64(out, k, eight | _SPACES & ~(eight >> np.uint64(2)))


@compiled
def prefetch_first_word(split: SplitState, words: WordState, s: int, e: int) -> None:
    """Prefetch the word table's slot for the chunk's first run of ASCII letters, if any."""
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
    """Write the code points of the UTF-8 text s..e to ``cps``. Return their number."""
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
    """Append the id of piece a..b's word if it is kept. Return the number of words, 0 or 1."""
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
        # Some stop words begin or end with an apostrophe, so look up the whole piece as well.
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
    """Return the lowercase of the capital sigma cps[k]. At a word's end, sigma has its own form."""
    p = k - 1
    while p >= a and get32(flags, get32(cps, p)) & IGNORABLE:
        p -= 1
    if p < a or not get32(flags, get32(cps, p)) & CASED:
        return _SMALL_SIGMA
    p = k + 1
    while p < b and get32(flags, get32(cps, p)) & IGNORABLE:
        p += 1
    return _FINAL_SIGMA if p >= b or not get32(flags, get32(cps, p)) & CASED else _SMALL_SIGMA
