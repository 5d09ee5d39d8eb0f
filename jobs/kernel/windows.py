"""Co-occurrence of kept tokens inside one document, under both counting rules, compiled.

Ids below the number of targets are targets. Only pairs with a target are kept, as rows
(word, target): a word and a target give one row, two different targets give a row under each.
With all pairs, any two words give one row, whichever of them came first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from plumbline.jobs.kernel.bits import get32, get64, mix, put32, put64
from plumbline.jobs.kernel.memory import (
    ALL_PAIRS,
    DENSE_WORDS,
    DONE,
    FIRST,
    FOLD,
    FOLD_AT,
    GROW_PAIRS,
    LATE,
    LATE_ROOM,
    N_EARLIER,
    N_IDS,
    N_KEPT,
    N_LATE,
    N_PAIRS,
    N_TALLIED,
    N_TARGETS,
    N_TOKENS,
    P_COUNTS,
    P_DENSE,
    P_IDS,
    P_LATE,
    P_PAIRS,
    PAIRS_MASK,
    PAIRS_ROOM,
    PAIRS_USED,
    RULE,
    WINDOW,
)

#: Names of the counting rules; their place is the number the kernel uses.
RULES = ("pairs", "windows")


@njit(cache=True)
def _total_pairs(n: int, window: int) -> int:
    """Co-occurrences of a document of n kept tokens under the rule `pairs`, targets or not."""
    reach = min(window - 1, n - 1)
    return reach * n - reach * (reach + 1) // 2 if n > 1 else 0


@njit(cache=True)
def _add(regs: Any, row: int) -> None:
    """Count one co-occurrence of a word with no place in ``dense``; there must be room for it."""
    key = np.uint64(row + 1)
    pairs, mask = regs[P_PAIRS], regs[PAIRS_MASK]
    at = np.int64(mix(key) >> np.uint64(20)) & mask
    while get64(pairs + 16 * at) != key:
        if get64(pairs + 16 * at) == np.uint64(0):
            put64(pairs + 16 * at, key)
            regs[PAIRS_USED] += 1
            break
        at = (at + 1) & mask
    put64(pairs + 16 * at + 8, get64(pairs + 16 * at + 8) + np.uint64(1))


@njit(cache=True)
def count_ids(m: Any, final: bool) -> int:
    """Count the kept tokens in ``m.ids[:N_IDS]`` from ``regs[FIRST]`` on.

    Args:
        final: whether the document ends here. If not, those that later tokens can still meet are
            moved to the front and left for the next call.

    Returns DONE, or GROW_PAIRS or FOLD to be called again. The document's total is added at its
    end.
    """
    regs, ids = m.regs, m.ids
    if regs[N_TOKENS] >= regs[FOLD_AT]:
        return FOLD
    _tally(regs)
    code = _count_pairs(regs, final) if regs[RULE] == 0 else _count_windows(m, final)
    if code != DONE:
        return code
    n = regs[N_IDS]
    if final:
        regs[N_KEPT] += regs[N_EARLIER] + n
        if regs[RULE] == 0:
            regs[N_PAIRS] += _total_pairs(regs[N_EARLIER] + n, regs[WINDOW])
        regs[N_IDS] = regs[FIRST] = regs[N_TALLIED] = regs[N_EARLIER] = 0
        return DONE
    gone = max(regs[FIRST] - regs[WINDOW] + 1, 0)
    for k in range(gone, n):
        ids[k - gone] = ids[k]
    regs[N_IDS] -= gone
    regs[FIRST] -= gone
    regs[N_TALLIED] -= gone
    regs[N_EARLIER] += gone
    return DONE


@njit(cache=True)
def _tally(regs: Any) -> None:
    """Count the kept tokens themselves."""
    ids, counts = regs[P_IDS], regs[P_COUNTS]
    for k in range(regs[N_TALLIED], regs[N_IDS]):
        count = counts + 8 * get32(ids + 4 * k)
        put64(count, get64(count) + np.uint64(1))
    regs[N_TALLIED] = regs[N_IDS]


@njit(cache=True)
def _count_pairs(regs: Any, final: bool) -> int:
    """Rule ``pairs``: positions i < j with j - i <= window - 1, once each."""
    n, reach = regs[N_IDS], regs[WINDOW] - 1
    if regs[ALL_PAIRS]:
        return _meet_all(regs, n)
    # A target looks both ways.
    stop = n if final else max(n - reach, regs[FIRST])
    while regs[FIRST] < stop:
        if regs[PAIRS_USED] + LATE + 2 * reach > regs[PAIRS_ROOM]:
            return GROW_PAIRS
        n_late = _meet(regs, stop)
        for k in range(n_late):
            _add(regs, np.int64(get64(regs[P_LATE] + 8 * k)))
    return DONE


@njit(cache=True)
def pair_row(a: int, b: int) -> int:
    """Row of an unordered pair of ids among all pairs."""
    return min(a, b) << 32 | max(a, b)


@njit(cache=True)
def _meet_all(regs: Any, n: int) -> int:
    """Set aside the pairs of all tokens before n, each looking back; GROW_PAIRS to take them."""
    ids, reach = regs[P_IDS], regs[WINDOW] - 1
    j, late = regs[FIRST], regs[P_LATE] + 8 * regs[N_LATE]
    full = regs[P_LATE] + 8 * (regs[LATE_ROOM] - reach)
    while j < n and late <= full:
        word = get32(ids + 4 * j)
        for i in range(max(0, j - reach), j):
            put64(late, np.uint64(pair_row(get32(ids + 4 * i), word)))
            late += 8
        j += 1
    regs[FIRST], regs[N_LATE] = j, (late - regs[P_LATE]) >> 3
    return DONE if j == n else GROW_PAIRS


@njit(cache=True)
def _meet(regs: Any, stop: int) -> int:
    """Count what stands around the targets before ``stop``, until LATE rows are set aside.

    Goes from target to target, with no branch that depends on what stands between them. Rows of
    words that have no place in ``dense`` are set aside, because the search for them does not fit
    this loop; returns their number.
    """
    ids, dense, late = regs[P_IDS], regs[P_DENSE], regs[P_LATE]
    n, n_targets, reach = regs[N_IDS], regs[N_TARGETS], regs[WINDOW] - 1
    j, n_late = regs[FIRST], 0
    while j < stop and n_late <= LATE:
        target = get32(ids + 4 * j)
        if target >= n_targets:
            j += 1
            continue
        column = dense + 4 * DENSE_WORDS * target
        for i in range(max(0, j - reach), j):
            word = get32(ids + 4 * i)
            if word < DENSE_WORDS:
                put32(column + 4 * word, get32(column + 4 * word) + 1)
            else:
                put64(late + 8 * n_late, np.uint64(word * n_targets + target))
                n_late += 1
        for i in range(j + 1, min(n, j + reach + 1)):
            word = get32(ids + 4 * i)
            if word < DENSE_WORDS:
                # Two of the same target meet once: as the later one looks back.
                put32(column + 4 * word, get32(column + 4 * word) + np.int64(word != target))
            else:
                put64(late + 8 * n_late, np.uint64(word * n_targets + target))
                n_late += 1
        j += 1
    regs[FIRST] = j
    return n_late


@njit(cache=True)
def _count_windows(m: Any, final: bool) -> int:
    """Rule ``windows``: stride-1 windows that hold both types (or one type at least twice)."""
    regs = m.regs
    n, window = regs[N_IDS], regs[WINDOW]
    most = window * window
    # A document shorter than the window is a window of its own.
    short = final and n > 0 and regs[N_EARLIER] + n < window
    first = regs[FIRST] if regs[N_EARLIER] or short else max(regs[FIRST], window - 1)
    for end in range(n - 1 if short else first, n):
        used, room = regs[PAIRS_USED], regs[PAIRS_ROOM]
        if regs[ALL_PAIRS]:
            used, room = regs[N_LATE], regs[LATE_ROOM]
        if used + most > room:
            regs[FIRST] = end
            return GROW_PAIRS
        _count_window(regs, m.ids, m.last, max(0, end - window + 1), end + 1)
        regs[FIRST] = end + 1
    return DONE


@njit(cache=True)
def _count_window(regs: Any, ids: Any, last: Any, low: int, high: int) -> None:
    """Count one window ids[low:high]."""
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
    if regs[ALL_PAIRS]:
        for k in range(distinct):
            for j in range(k + (1 - (last[k] & 1)), distinct):
                row = pair_row(last[j] >> 1, last[k] >> 1)
                put64(regs[P_LATE] + 8 * regs[N_LATE], np.uint64(row))
                regs[N_LATE] += 1
    else:
        _count_targets(regs, last, distinct)
    regs[N_PAIRS] += distinct * (distinct - 1) // 2 + repeated


@njit(cache=True)
def _count_targets(regs: Any, last: Any, distinct: int) -> None:
    """Count the targets among the distinct types of a window with all of its types."""
    n_targets = regs[N_TARGETS]
    for k in range(distinct):
        target = last[k] >> 1
        if target < n_targets:
            for j in range(distinct):
                if j != k or last[k] & 1:
                    word = last[j] >> 1
                    if word < DENSE_WORDS:
                        cell = regs[P_DENSE] + 4 * (DENSE_WORDS * target + word)
                        put32(cell, get32(cell) + 1)
                    else:
                        _add(regs, word * n_targets + target)
