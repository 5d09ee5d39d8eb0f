"""Co-occurrence of kept tokens inside one document, under both counting rules, compiled.

Ids below the number of targets are targets. Only pairs with a target are kept, as rows
(word, target): a word and a target give one row, two different targets give a row under each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from jobs.bits import mix, trailing_zeros
from jobs.memory import (
    AT,
    DENSE_WORDS,
    DONE,
    GROW_PAIRS,
    N_IDS,
    N_PAIRS,
    N_TARGETS,
    PAIRS_USED,
    RULE,
    WINDOW,
)

#: Names of the counting rules; their place is the number the kernel uses.
RULES = ("pairs", "windows")


def total_pairs(n_kept: int, window: int) -> int:
    """All co-occurrences of a document of ``n_kept`` tokens under the rule ``pairs``.

    The sum over distances d = 1..window-1 of max(n_kept - d, 0), targets or not.

    >>> total_pairs(3, 10)
    3
    >>> total_pairs(12, 10)
    63
    >>> total_pairs(0, 10)
    0
    """
    return int(_total_pairs(n_kept, window))


@njit(cache=True)
def _total_pairs(n: int, window: int) -> int:
    reach = min(window - 1, n - 1)
    return reach * n - reach * (reach + 1) // 2 if n > 1 else 0


@njit(cache=True)
def _add(pairs: Any, regs: Any, row: int) -> None:
    """Count one co-occurrence of a word without a dense row; there must be room for an entry."""
    key = np.uint64(row + 1)
    mask = pairs.size // 2 - 1
    at = np.int64(mix(key) >> np.uint64(20)) & mask
    while pairs[2 * at] != key:
        if pairs[2 * at] == np.uint64(0):
            pairs[2 * at] = key
            regs[PAIRS_USED] += 1
            break
        at = (at + 1) & mask
    pairs[2 * at + 1] += np.uint64(1)


@njit(cache=True)
def count_document(m: Any, start: int) -> int:
    """Count the document in ``m.ids[: regs[N_IDS]]`` from token ``start``.

    Returns DONE, or GROW_PAIRS with ``regs[AT]`` at the token to go on from. The document's total
    is added once, at its end.
    """
    if m.regs[RULE] == 0:
        return _count_pairs(m.regs, m.ids, m.dense, m.pairs, start)
    return _count_windows(m.regs, m.ids, m.dense, m.pairs, m.last, start)


@njit(cache=True)
def _count_pairs(regs: Any, ids: Any, dense: Any, pairs: Any, start: int) -> int:
    """Rule ``pairs``: positions i < j with j - i <= window - 1, once each."""
    n, n_targets, window = regs[N_IDS], regs[N_TARGETS], regs[WINDOW]
    room = pairs.size // 4 - 2 * window
    recent = np.uint64(0)  # bit d-1: the token d places back is a target
    keep = (np.uint64(1) << np.uint64(min(window - 1, 63))) - np.uint64(1)
    wide = window > 64
    for j in range(max(0, start - 63), start):
        hit = np.uint64(1) if ids[j] < n_targets else np.uint64(0)
        recent = (recent << np.uint64(1) | hit) & keep
    for i in range(start, n):
        if regs[PAIRS_USED] > room:
            regs[AT] = i
            return GROW_PAIRS
        word = ids[i]
        low = max(0, i - window + 1)
        if wide:
            for j in range(low, i):
                if ids[j] < n_targets:
                    row = np.int64(word) * n_targets + np.int64(ids[j])
                    if word < DENSE_WORDS:
                        dense[row] += 1
                    else:
                        _add(pairs, regs, row)
        else:
            bits = recent
            while bits:
                j = i - 1 - np.int64(trailing_zeros(bits))
                row = np.int64(word) * n_targets + np.int64(ids[j])
                # The increment stands here three times over: a call would cost more than it.
                if word < DENSE_WORDS:
                    dense[row] += 1
                else:
                    _add(pairs, regs, row)
                bits &= bits - np.uint64(1)
        hit = np.uint64(0)
        if word < n_targets:
            hit = np.uint64(1)
            for j in range(low, i):
                if ids[j] != word:
                    row = np.int64(ids[j]) * n_targets + np.int64(word)
                    if ids[j] < DENSE_WORDS:
                        dense[row] += 1
                    else:
                        _add(pairs, regs, row)
        recent = (recent << np.uint64(1) | hit) & keep
    regs[N_PAIRS] += _total_pairs(n, window)
    return DONE


@njit(cache=True)
def _count_windows(regs: Any, ids: Any, dense: Any, pairs: Any, last: Any, start: int) -> int:
    """Rule ``windows``: stride-1 windows that hold both types (or one type at least twice)."""
    n, window = regs[N_IDS], regs[WINDOW]
    room = pairs.size // 4 - window * window
    if n == 0:
        return DONE
    # A document shorter than the window is a window of its own.
    for end in range(max(start, min(window, n) - 1), n):
        if regs[PAIRS_USED] > room:
            regs[AT] = end
            return GROW_PAIRS
        _count_window(regs, ids, dense, pairs, last, max(0, end - window + 1), end + 1)
    return DONE


@njit(cache=True)
def _count_window(
    regs: Any, ids: Any, dense: Any, pairs: Any, last: Any, low: int, high: int
) -> None:
    """Count one window ids[low:high]."""
    n_targets = regs[N_TARGETS]
    distinct, repeated = 0, 0
    # last[k] >= 0: distinct type k, stored as 2 * id + (1 when it occurs again).
    for j in range(low, high):
        word = np.int64(ids[j])
        k = 0
        while k < distinct and last[k] >> 1 != word:
            k += 1
        if k == distinct:
            last[k] = 2 * word
            distinct += 1
        elif last[k] & 1 == 0:
            last[k] += 1
            repeated += 1
    for k in range(distinct):
        target = last[k] >> 1
        if target < n_targets:
            for j in range(distinct):
                if j != k or last[k] & 1:
                    row = (last[j] >> 1) * n_targets + target
                    if last[j] >> 1 < DENSE_WORDS:
                        dense[row] += 1
                    else:
                        _add(pairs, regs, row)
    regs[N_PAIRS] += distinct * (distinct - 1) // 2 + repeated
