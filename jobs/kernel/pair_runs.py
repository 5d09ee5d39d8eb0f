"""Pairs of any two words, counted by sorting, compiled.

A hash table of all pairs is far larger than any cache, so each look-up would wait for memory.
Therefore rows (two ids in 64 bits) are collected and sorted; distinct rows and their counts form a
run. All runs are in one array. :meth:`PairRuns.chunks` merges them in ranges of rows that fit the
processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plumbline.jobs.kernel.cache import EntryPoint, compiled
from plumbline.jobs.kernel.memory import get_int, put64

#: A row has one id in its lower 32 bits and one in the bits from here on.
_UPPER = 32
#: Rows merged at a time: two such arrays of rows and counts fit the cache.
_RANGE = 1 << 14
#: Rows of a chunk of :meth:`PairRuns.chunks`.
CHUNK_ROWS = 1 << 21


class PairChunk(NamedTuple):
    """Pairs of ids, each once, and how often they co-occur."""

    word: NDArray[np.int32]
    target: NDArray[np.int32]
    n_pair: NDArray[np.int64]

    def first(self, n: int) -> PairChunk:
        """The first n pairs, in the same memory."""
        return PairChunk(self.word[:n], self.target[:n], self.n_pair[:n])


class PairRuns:
    """Sorted runs of rows and their counts; a row may be in several runs.

    Args:
        n_rows: room at the start. It takes memory only when it is used.
    """

    def __init__(self, n_rows: int = 0) -> None:
        self._rows, self._counts = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
        #: Offsets at which runs start, and the end of the last one.
        self._bounds = [0]

    @property
    def n_bytes(self) -> int:
        """Bytes of all runs."""
        return 16 * self._bounds[-1]

    def add(self, rows: NDArray[np.int64]) -> None:
        """Count rows, one per co-occurrence; sorts ``rows``."""
        rows.sort()
        first = np.flatnonzero(np.diff(rows, prepend=-1))
        start = self._bounds[-1]
        end = start + first.size
        if end > self._rows.size:
            more = np.empty(max(start, rows.size), np.int64)
            self._rows = np.concatenate([self._rows[:start], more])
            self._counts = np.concatenate([self._counts[:start], more])
        self._rows[start:end] = rows[first]
        self._counts[start:end] = np.diff(first, append=rows.size)
        self._bounds.append(end)

    def chunks(self) -> Iterator[PairChunk]:
        """Yield all pairs in rising order, each once; without any pair, one empty chunk.

        >>> runs = PairRuns()
        >>> runs.add(np.array([5, 1 << 32, 5]))
        >>> runs.add(np.array([5]))
        >>> [[column.tolist() for column in chunk] for chunk in runs.chunks()]
        [[[0, 1], [5, 0], [3, 1]]]
        """
        bounds = np.array(self._bounds)
        n_runs = len(bounds) - 1
        # Most rows that a range takes from each run.
        step = max(_RANGE // max(n_runs, 1), 16)
        room = step * n_runs
        size = min(CHUNK_ROWS, int(bounds[-1])) + room
        at, ends = bounds[:-1].copy(), bounds[1:]
        scratch = np.empty((4, room), np.int64)
        is_first = True
        while is_first or (at < ends).any():
            chunk = PairChunk(
                np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int64)
            )
            n = _merge(self._rows, self._counts, at, ends, step, scratch, *chunk)
            yield chunk.first(n)
            is_first = False

    def clear(self) -> None:
        """Forget all counts, but keep the memory."""
        self._bounds = [0]


@compiled
def _at(array: Any) -> int:
    return np.int64(array.ctypes.data)


@EntryPoint
def _merge(
    rows: Any,
    counts: Any,
    at: Any,
    ends: Any,
    step: int,
    scratch: Any,
    word: Any,
    target: Any,
    n_pair: Any,
) -> int:
    """Merge the runs ``rows[at[k]:ends[k]]`` into the last three arrays until these are full.

    ``at`` advances past the rows merged. Returns the number of rows written, 0 at the end.
    """
    n = 0
    edges = np.empty(at.size + 1, np.int64)
    while n + scratch.shape[1] <= word.size:
        last, any_left = _range_end(rows, at, ends, step)
        if not any_left:
            break
        a_rows, a_counts, b_rows, b_counts = scratch[0], scratch[1], scratch[2], scratch[3]
        n_slices = _cut_range(rows, counts, at, ends, step, last, a_rows, a_counts, edges)
        while n_slices > 1:
            n_slices = _merge_slices(a_rows, a_counts, edges, n_slices, b_rows, b_counts)
            a_rows, b_rows = b_rows, a_rows
            a_counts, b_counts = b_counts, a_counts
        for k in range(edges[1]):
            word[n] = a_rows[k] >> _UPPER
            target[n] = a_rows[k] & 0xFFFFFFFF
            n_pair[n] = a_counts[k]
            n += 1
    return n


@compiled
def _range_end(rows: Any, at: Any, ends: Any, step: int) -> Any:
    """Last row of a range with at most ``step`` rows of each run, and whether any rows are left."""
    last, any_left = np.int64(0x7FFFFFFFFFFFFFFF), False
    for k in range(at.size):
        if at[k] < ends[k]:
            any_left = True
            if at[k] + step < ends[k]:
                last = min(last, rows[at[k] + step - 1])
    return last, any_left


@compiled
def _cut_range(
    rows: Any,
    counts: Any,
    at: Any,
    ends: Any,
    step: int,
    last: int,
    to_rows: Any,
    to_counts: Any,
    edges: Any,
) -> int:
    """Copy each run's rows up to ``last`` as a slice, advance ``at``; returns how many slices."""
    n, n_slices = 0, 0
    edges[0] = 0
    for k in range(at.size):
        low, high = at[k], min(at[k] + step, ends[k])
        while low < high:
            middle = (low + high) // 2
            if rows[middle] <= last:
                low = middle + 1
            else:
                high = middle
        if low > at[k]:
            for i in range(at[k], low):
                to_rows[n], to_counts[n] = rows[i], counts[i]
                n += 1
            n_slices += 1
            edges[n_slices] = n
            at[k] = low
    return n_slices


@compiled
def _merge_slices(
    rows: Any, counts: Any, edges: Any, n_slices: int, to_rows: Any, to_counts: Any
) -> int:
    """Merge slices two by two, replace their ``edges``; returns the number of new slices."""
    n, made = 0, 0
    for first in range(0, n_slices, 2):
        i, i_end = edges[first], edges[first + 1]
        k, k_end = i_end, edges[min(first + 2, n_slices)]
        n += _merge_two(
            _at(rows),
            _at(counts),
            i,
            i_end,
            k,
            k_end,
            _at(to_rows),
            _at(to_counts),
            n,
        )
        made += 1
        edges[made] = n
    return made


@compiled
def _merge_two(
    rows: int,
    counts: int,
    i: int,
    i_end: int,
    k: int,
    k_end: int,
    to_rows: int,
    to_counts: int,
    n: int,
) -> int:
    """Merge slices i..i_end and k..k_end, add counts of equal rows; returns the number written."""
    start = n
    while i < i_end and k < k_end:
        a, b = get_int(rows, i), get_int(rows, k)
        # No branch on the comparison, since its result can't be predicted.
        from_a, from_b = np.int64(a <= b), np.int64(b <= a)
        put64(to_rows, n, min(a, b))
        count = get_int(counts, i) & -from_a
        count += get_int(counts, k) & -from_b
        put64(to_counts, n, count)
        i += from_a
        k += from_b
        n += 1
    if k < k_end:
        i, i_end = k, k_end
    while i < i_end:
        put64(to_rows, n, get_int(rows, i))
        put64(to_counts, n, get_int(counts, i))
        i += 1
        n += 1
    return n - start
