"""Pairs of any two words, counted by sorting, compiled.

A table of all pairs is far larger than any cache, and looking up each co-occurrence in it would
wait for memory every time. So rows (``windows.pair_row``) are gathered, sorted by their bits, and
equal ones joined to a run; runs of similar length are merged, so that each row is moved a few
times whatever the number of runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

import jobs.cache  # noqa: F401  (before the first compiled function)

#: Bits of an id are at 0.. and at 32.. of a row.
_UPPER = 32

Run = tuple[NDArray[np.int64], NDArray[np.int64]]


class PairRuns:
    """Sorted runs of (row, count); a row may be in several until :meth:`merged`."""

    def __init__(self) -> None:
        self._runs: list[Run] = []

    @property
    def n_bytes(self) -> int:
        """Bytes of all runs."""
        return sum(rows.nbytes + counts.nbytes for rows, counts in self._runs)

    def add(self, rows: NDArray[np.int64], n_ids: int) -> None:
        """Count rows, each one co-occurrence of ids below ``n_ids``; they are sorted in place."""
        if rows.size:
            sort_rows(rows, np.empty_like(rows), max(int(n_ids - 1).bit_length(), 1))
            self._runs.append(_joined(rows))
        while len(self._runs) > 1 and self._runs[-2][0].size <= 2 * self._runs[-1][0].size:
            self._merge_last()

    def merged(self) -> Run:
        """All rows in rising order, each once, and their counts.

        >>> runs = PairRuns()
        >>> runs.add(np.array([5, 1 << 32, 5]), 6)
        >>> runs.add(np.array([5]), 6)
        >>> [column.tolist() for column in runs.merged()]
        [[5, 4294967296], [3, 1]]
        """
        while len(self._runs) > 1:
            self._merge_last()
        return self._runs[0] if self._runs else (np.empty(0, np.int64), np.empty(0, np.int64))

    def clear(self) -> None:
        """Forget all counts."""
        self._runs.clear()

    def _merge_last(self) -> None:
        one, other = self._runs.pop(), self._runs.pop()
        rows = np.empty(one[0].size + other[0].size, np.int64)
        counts = np.empty(rows.size, np.int64)
        n = _merge(*one, *other, rows, counts)
        # Copied, so that what was not needed is given back.
        self._runs.append((rows[:n].copy(), counts[:n].copy()))


@njit(cache=True)
def sort_rows(rows: Any, scratch: Any, n_bits: int) -> None:
    """Sort rows of ids of ``n_bits`` bits, digit by digit from the lowest; scratch is as long."""
    n_digits = 2 if n_bits <= 20 else 4
    width = -(-n_bits // n_digits)
    size, mask = 1 << width, (1 << width) - 1
    place = np.zeros((2 * n_digits, size), np.int64)
    for row in rows:
        for digit in range(n_digits):
            place[digit, (row >> digit * width) & mask] += 1
            place[n_digits + digit, (row >> (_UPPER + digit * width)) & mask] += 1
    source, target = rows, scratch
    for digit in range(2 * n_digits):
        shift = digit * width if digit < n_digits else _UPPER + (digit - n_digits) * width
        at, total = place[digit], 0
        for k in range(size):
            at[k], total = total, total + at[k]
        for row in source:
            key = (row >> shift) & mask
            target[at[key]] = row
            at[key] += 1
        # The number of digits is even, so the last one sorts into ``rows``.
        source, target = target, source


@njit(cache=True)
def _joined(rows: Any) -> Any:
    """Distinct values of sorted rows, and how often each occurs."""
    n = 1
    for k in range(1, rows.size):
        n += rows[k] != rows[k - 1]
    values, counts = np.empty(n, np.int64), np.zeros(n, np.int64)
    at = 0
    values[0] = rows[0]
    for k in range(rows.size):
        if rows[k] != values[at]:
            at += 1
            values[at] = rows[k]
        counts[at] += 1
    return values, counts


@njit(cache=True)
def _merge(rows_a: Any, counts_a: Any, rows_b: Any, counts_b: Any, rows: Any, counts: Any) -> int:
    """Merge two runs into ``rows`` and ``counts``; returns the number of distinct rows."""
    i, k, n = 0, 0, 0
    while i < rows_a.size and k < rows_b.size:
        a, b = rows_a[i], rows_b[k]
        # No branch on which is smaller: it could only be guessed.
        rows[n] = min(a, b)
        counts[n] = (counts_a[i] if a <= b else 0) + (counts_b[k] if b <= a else 0)
        i += a <= b
        k += b <= a
        n += 1
    while i < rows_a.size:
        rows[n], counts[n] = rows_a[i], counts_a[i]
        i, n = i + 1, n + 1
    while k < rows_b.size:
        rows[n], counts[n] = rows_b[k], counts_b[k]
        k, n = k + 1, n + 1
    return n
