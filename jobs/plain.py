"""Chunks of words and plain punctuation, cut without going through the tokeniser's rules, compiled.

Most chunks that are not in the cache are ASCII words, alone or joined by dashes, with a possessive
or punctuation around them. For these the outcome of the rules in ``rules.py`` is known beforehand,
provided that no exception can match any part: every exception with an ASCII letter is entered in a
bitmap by its first run of letters, and a chunk with such a run is left to the rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

import jobs.cache  # noqa: F401  (before the first compiled function)
from jobs.tables import ALNUM, BEFORE_DOT, CORES, PREFIX, SUFFIX, UPPER

_DOT, _MINUS, _EM_DASH = ord("."), ord("-"), 0x2014
_APOSTROPHE, _RIGHT_QUOTE = 0x27, 0x2019
_FNV, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@njit(cache=True)
def _is_letter(c: int) -> bool:
    return 97 <= (c | 32) <= 122


@njit(cache=True)
def _is_core(lang: Any, h: Any) -> bool:
    """Whether an exception may have the run of letters with this hash (false alarms happen)."""
    bit = np.int64(h >> np.uint64(48))
    word = np.int64(lang[np.int64(lang[CORES]) + (bit >> 5)])
    return bool((word >> (bit & 31)) & 1)


@njit(cache=True)
def _is_tail(flags: Any, cps: Any, first: int, p: int, n: int) -> bool:
    """Whether all of cps[p:n] splits off as suffixes of the letters cps[first:p]."""
    while p < n:
        c = cps[p]
        if c == _DOT:
            k = p + 1
            while k < n and cps[k] == _DOT:
                k += 1
            single = k - p == 1 and not flags[cps[p - 1]] & BEFORE_DOT
            if single and (p - 2 < first or not flags[cps[p - 1]] & flags[cps[p - 2]] & UPPER):
                return False
            p = k
        elif flags[c] & (SUFFIX | ALNUM) == SUFFIX:
            p += 1
        else:
            return False
    return True


@njit(cache=True)
def _joint(cps: Any, p: int, n: int) -> int:
    """Length of the dashes at p that join two words, 0 for none."""
    c = cps[p]
    longest = 3 if c == _MINUS else 2 if c == _EM_DASH else 0
    k = 0
    while k < longest and p + k < n and cps[p + k] == c:
        k += 1
    return k if k and p + k < n and _is_letter(cps[p + k]) else 0


@njit(cache=True)
def plain_words(flags: Any, lang: Any, cps: Any, n: int, out: Any) -> int:
    """Find the pieces of cps[:n] that hold letters, when its cutting is plain.

    Writes start and end of each to ``out`` (at least n + 1 entries) and returns their number, or
    -1 when the chunk is for :func:`jobs.rules.split_chunk`.
    """
    p, found = 0, 0
    while p < n and not _is_letter(cps[p]):
        c = cps[p]
        if c == _DOT or flags[c] & (PREFIX | ALNUM) != PREFIX:
            return -1
        p += 1
    while p < n:
        first, h = p, _FNV
        while p < n and _is_letter(cps[p]):
            h = (h ^ np.uint64(cps[p] | 32)) * _FNV_PRIME
            p += 1
        if _is_core(lang, h):
            return -1
        out[2 * found], out[2 * found + 1] = first, p
        found += 1
        if p == n:
            return found
        joint = _joint(cps, p, n)
        if joint:
            p += joint
            continue
        quote = cps[p] == _APOSTROPHE or cps[p] == _RIGHT_QUOTE
        if quote and p + 1 < n and cps[p + 1] | 32 == 115:
            out[2 * found], out[2 * found + 1] = p, p + 2
            found, first, p = found + 1, p + 1, p + 2
        return found if _is_tail(flags, cps, first, p, n) else -1
    return -1
