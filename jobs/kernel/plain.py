"""New chunks of words and plain punctuation, cut without the tokeniser's rules, compiled.

Most chunks that are not in the cache are ASCII words, alone or joined by dashes, with a possessive
or punctuation around them. For these the outcome of the rules in ``rules.py`` is known beforehand,
provided that no exception can match any part: every exception with an ASCII letter is entered in a
bitmap by its first run of letters, and a chunk with such a run is left to the rules.

Functions here take the registers alone and work on addresses: handing arrays from one compiled
function to another costs more than the work itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from plumbline.jobs.kernel.bits import (
    LOWERCASE,
    get8,
    get32,
    get64,
    letters_key,
    low_bytes,
    mix,
    put32,
    put64,
    range_bits,
    trailing_zeros,
)
from plumbline.jobs.kernel.memory import (
    ARENA_USED,
    CACHE_USED,
    N_IDS,
    N_STOPS,
    N_TARGETS,
    N_TOKENS,
    N_WORDS,
    P_ARENA,
    P_FLAGS,
    P_IDS,
    P_LANG,
    P_OFFSETS,
    P_SEQS,
    P_SLOTS,
    SEQ_USED,
    SLOT_MASK,
)
from plumbline.jobs.kernel.tables import ALNUM, BEFORE_DOT, CORES, PREFIX, SUFFIX, UPPER

_DOT, _MINUS, _EM_DASH = ord("."), ord("-"), 0x2014
_APOSTROPHE, _RIGHT_QUOTE = 0x27, 0x2019


@njit(cache=True)
def _is_letter(c: int) -> bool:
    return 97 <= (c | 32) <= 122


@njit(cache=True)
def _point(at: int) -> int:
    """Code point of the ASCII or three-byte character at an address, -1 for any other.

    Typographic quotes and dashes have three bytes; hardly any other character gets here.
    """
    c = get8(at)
    if c < 0x80:
        return c
    if c & 0xF0 != 0xE0:
        return -1
    return (c & 0x0F) << 12 | (get8(at + 1) & 0x3F) << 6 | (get8(at + 2) & 0x3F)


@njit(cache=True)
def _width(c: int) -> int:
    return 1 if c < 0x80 else 3


@njit(cache=True)
def _is_core(lang: int, h: Any) -> bool:
    """Whether an exception may have the run of letters with this hash (false alarms happen)."""
    bit = np.int64(h >> np.uint64(48))
    word = get32(lang + 4 * (get32(lang + 4 * CORES) + (bit >> 5)))
    return bool((word >> (bit & 31)) & 1)


@njit(cache=True)
def _is_tail(flags: int, first: int, p: int, e: int) -> bool:
    """Whether all of p..e splits off as suffixes of the letters first..p."""
    before, earlier = get8(p - 1), get8(p - 2) if p - 2 >= first else 0
    while p < e:
        c = _point(p)
        if c < 0:
            return False
        if c == _DOT:
            k = p + 1
            while k < e and get8(k) == _DOT:
                k += 1
            known = get32(flags + 4 * before)
            single = k - p == 1 and not known & BEFORE_DOT
            if single and (not earlier or not known & get32(flags + 4 * earlier) & UPPER):
                return False
            before, earlier = c, c if k - p > 1 else before
            p = k
        elif get32(flags + 4 * c) & (SUFFIX | ALNUM) == SUFFIX:
            p += _width(c)
            before, earlier = c, before
        else:
            return False
    return True


@njit(cache=True)
def _joint(p: int, e: int) -> int:
    """Bytes of the dashes at p that join two words, 0 for none."""
    c = _point(p)
    longest = 3 if c == _MINUS else 2 if c == _EM_DASH else 0
    at, k = p, 0
    while k < longest and at < e and _point(at) == c:
        at += _width(c)
        k += 1
    return at - p if k and at < e and _is_letter(get8(at)) else 0


@njit(cache=True)
def _find(regs: Any, where: int, n: int, h: Any, key: Any) -> int:
    """Id of the n letters at an address, in lowercase; a word that is new is added."""
    slots, mask = regs[P_SLOTS], regs[SLOT_MASK]
    offsets, arena = regs[P_OFFSETS], regs[P_ARENA]
    at = np.int64(h >> np.uint64(20)) & mask
    while get64(slots + 16 * at + 8):
        if get64(slots + 16 * at) == key:
            word = np.int64(get64(slots + 16 * at + 8)) - 1
            if n <= 7:
                return word
            start = np.int64(get64(offsets + 8 * word))
            if np.int64(get64(offsets + 8 * word + 8)) - start == n:
                same, i = arena + start, 0
                while i + 8 <= n and get64(same + i) == get64(where + i) | LOWERCASE:
                    i += 8
                rest = get64(same + i) ^ (get64(where + i) | LOWERCASE)
                if n - i < 8 and not rest & low_bytes(n - i):
                    return word
        at = (at + 1) & mask
    word = regs[N_WORDS]
    put64(slots + 16 * at, key)
    put64(slots + 16 * at + 8, np.uint64(word + 1))
    start = regs[ARENA_USED]
    for i in range(0, n, 8):
        put64(arena + start + i, get64(where + i) | LOWERCASE)
    regs[ARENA_USED] = start + n
    put64(offsets + 8 * word + 8, np.uint64(start + n))
    regs[N_WORDS] = word + 1
    return word


@njit(cache=True)
def _keep(regs: Any, word: int, n_ids: int) -> int:
    """Append a word to the document unless it is a stop word; returns the number of its ids."""
    # Stop words that are no targets have the ids after the targets.
    if 0 <= word - regs[N_TARGETS] < regs[N_STOPS]:
        return n_ids
    put32(regs[P_IDS] + 4 * n_ids, word)
    return n_ids + 1


@njit(cache=True)
def _letters(p: int, e: int) -> Any:
    """Bit k is set when the byte at p + k < e <= p + 63 is an ASCII letter."""
    bits = range_bits(p, 65, 26) | range_bits(p, 97, 26)
    return bits & ((np.uint64(1) << np.uint64(e - p)) - np.uint64(1))


@njit(cache=True)
def _cut(regs: Any, s: int, e: int, pieces: int) -> int:
    """Find the pieces of s..e that hold letters: start, length, key and hash of each to ``pieces``.

    Returns their number, or -1 when the chunk is for the rules. A possessive is a piece without
    length.
    """
    flags, lang = regs[P_FLAGS], regs[P_LANG]
    p, found = s, 0
    letters = _letters(s, e)
    while p < e and not letters & np.uint64(1):
        c = _point(p)
        if c < 0 or c == _DOT or get32(flags + 4 * c) & (PREFIX | ALNUM) != PREFIX:
            return -1
        p += _width(c)
        letters >>= np.uint64(_width(c))
    while p < e:
        first = p
        n = np.int64(trailing_zeros(~letters))
        p += n
        key = letters_key(first, n)
        h = mix(key)
        if _is_core(lang, h):
            return -1
        _put_piece(pieces + 32 * found, first, n, key, h)
        found += 1
        if p == e:
            return found
        joint = _joint(p, e)
        if joint:
            p += joint
            letters = _letters(p, e)
            continue
        c = _point(p)
        quote = c in (_APOSTROPHE, _RIGHT_QUOTE)
        if quote and p + _width(c) < e and get8(p + _width(c)) | 32 == 115:
            # The possessive is a stop word, unless a lone s is a target or stop words are kept.
            if not regs[N_STOPS] or _find_possessive(regs, p + _width(c)):
                return -1
            _put_piece(pieces + 32 * found, p, 0, key, h)
            found, first, p = found + 1, p + _width(c), p + _width(c) + 1
        return found if _is_tail(flags, first, p, e) else -1
    return -1


@njit(cache=True)
def _put_piece(piece: int, start: int, n: int, key: Any, h: Any) -> None:
    put64(piece, np.uint64(start))
    put64(piece + 8, np.uint64(n))
    put64(piece + 16, key)
    put64(piece + 24, h)


@njit(cache=True)
def _find_possessive(regs: Any, where: int) -> bool:
    """Whether the lone s at an address is a target."""
    key = letters_key(where, 1)
    slots, mask = regs[P_SLOTS], regs[SLOT_MASK]
    at = np.int64(mix(key) >> np.uint64(20)) & mask
    while get64(slots + 16 * at + 8):
        if get64(slots + 16 * at) == key:
            return np.int64(get64(slots + 16 * at + 8)) <= regs[N_TARGETS]
        at = (at + 1) & mask
    return False


@njit(cache=True)
def plain_chunk(regs: Any, s: int, e: int, record: int, pieces: int) -> bool:
    """Count the chunk at the addresses s..e and put it into the cache, when its cutting is plain.

    Args:
        record: address of its three key words and of the address of its free slot in the cache.
        pieces: address of room for 4 * 24 int64.

    There must be room for its words, its bytes and its place in the cache. False leaves all as is.
    """
    found = _cut(regs, s, e, pieces)
    if found < 0:
        return False
    first = regs[N_IDS]
    n_ids = first
    for k in range(found):
        piece = pieces + 32 * k
        n = np.int64(get64(piece + 8))
        if n:
            word = _find(regs, np.int64(get64(piece)), n, get64(piece + 24), get64(piece + 16))
            n_ids = _keep(regs, word, n_ids)
    remember(regs, record, found, first, n_ids)
    regs[N_IDS] = n_ids
    regs[N_TOKENS] += found
    return True


@njit(cache=True)
def remember(regs: Any, record: int, found: int, first: int, last: int) -> None:
    """Put a chunk into the cache: it had ``found`` words and the kept ids first..last."""
    kept, ids = last - first, regs[P_IDS]
    payload = 0
    if kept == 1:
        payload = get32(ids + 4 * first)
    elif kept > 1:
        payload = regs[SEQ_USED]
        for k in range(kept):
            put32(regs[P_SEQS] + 4 * (payload + k), get32(ids + 4 * (first + k)))
        regs[SEQ_USED] += kept
    slot = np.int64(get64(record + 24))
    for k in range(3):
        put64(slot + 8 * k, get64(record + 8 * k))
    value = np.uint64(found) << np.uint64(56) | np.uint64(kept) << np.uint64(48)
    put64(slot + 24, value | np.uint64(payload))
    regs[CACHE_USED] += 1
