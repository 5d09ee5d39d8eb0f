"""Count pairs of any two words by sorting.

A hash table of all pairs is far larger than any cache, so each look-up would wait for memory.
Therefore pairs are collected as rows (two ids in 64 bits) and sorted. The distinct rows and their
counts form a run. At the end, all runs are added up, one range of rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plumbline.jobs.kernel.cooccurrences import PairState, count_pairs, count_windows, pair_table
from plumbline.jobs.kernel.memory import address, new_record
from plumbline.jobs.kernel.tokens.words import IdState, WordState

Ints: TypeAlias = NDArray[np.int64]
#: Keys, and the count of each. The keys of a run are distinct and sorted.
Run: TypeAlias = tuple[Ints, Ints]

#: About RANGE_ROWS rows are summed at a time. About _SAMPLES of them are sampled to find the range.
RANGE_ROWS, _SAMPLES = 1 << 16, 1 << 8
#: Every table but the last has at least this many rows, since each stores the whole vocabulary.
_TABLE_ROWS = 1 << 21
#: At least this many rows can be collected before they become a run.
_ALL_ROWS = 1 << 20


def summed(parts: list[Run]) -> Run:
    """Add up runs. Return the distinct keys, sorted, and the sum of each key's counts.

    This function empties the list ``parts``.

    >>> summed([(np.array([1, 3]), np.array([2, 1])), (np.array([3]), np.array([5]))])
    (array([1, 3]), array([2, 6]))
    """
    parts.append((np.empty(0, np.int64), np.empty(0, np.int64)))
    keys, counts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    parts.clear()
    order = np.argsort(keys, kind="stable")  # fast, since each run is already sorted
    keys, counts = keys[order], counts[order]
    del order
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[first], np.add.reduceat(counts, first) if first.size else counts


def between(run: Run, start: int, end: int) -> Run:
    """Return the part of a run whose keys are >= ``start`` and < ``end``."""
    part = slice(*np.searchsorted(run[0], [start, end]))
    return run[0][part], run[1][part]


class AllPairs:
    #: Never true, so that the counter compares ``growth`` with its limits before each count.
    has_room = False

    def __init__(self, rule: str, window: int) -> None:
        self._count = count_pairs if rule == "pairs" else count_windows
        self._runs: list[Run] = []
        self._rows = np.empty(_ALL_ROWS + window * window, np.int64)
        self._distinct = np.empty(window, np.int64)
        s = self.state = new_record(PairState)
        s.rows, s.distinct = address(self._rows), address(self._distinct)
        s.all_pairs, s.window, s.rows_capacity = 1, window, self._rows.size

    @property
    def n_bytes(self) -> int:
        return 16 * sum(rows.size for rows, _ in self._runs) + self._rows.nbytes

    def growth(self, need: int) -> int:
        """Return how many bytes one call of :meth:`count` may add to the runs."""
        return 16 * self._rows.size

    def grow(self, need: int) -> None:
        """Do nothing: there is no table to enlarge."""

    def count(self, words: WordState, ids: IdState) -> bool:
        """Count ids. If False is returned, call again to count the remaining ids."""
        is_done = self._count(self.state, words, ids)
        if is_done and self.state.n_rows < self._rows.size // 2:
            return True
        self._take_rows()
        return bool(is_done)

    def take_tables(self, vocabulary: pa.Array) -> Iterator[pa.Table]:
        """Yield all pairs in tables (see :func:`pair_table`), and set their counts to 0.

        Each pair is in only one table. Either of its words may be in the column target.
        """
        self._take_rows()
        step = max(RANGE_ROWS // _SAMPLES, 1)
        sample = np.sort(np.concatenate([[0], *(rows[::step] for rows, _ in self._runs)]))
        parts: list[Run] = []
        n_rows = 0
        for start, end in pairwise([*np.unique(sample[::_SAMPLES]), np.iinfo(np.int64).max]):
            parts.append(summed([between(run, start, end) for run in self._runs]))
            n_rows += parts[-1][0].size
            if n_rows >= _TABLE_ROWS:
                yield _table(parts, vocabulary)
                parts, n_rows = [], 0
        if parts:
            yield _table(parts, vocabulary)
        self._runs.clear()

    def _take_rows(self) -> None:
        """Turn the rows collected so far into a run. Each row is one co-occurrence."""
        rows = self._rows[: int(self.state.n_rows)]
        rows.sort()
        first = np.flatnonzero(np.diff(rows, prepend=-1))
        self._runs.append((rows[first], np.diff(first, append=rows.size)))
        self.state.n_rows = 0


def _table(parts: list[Run], vocabulary: pa.Array) -> pa.Table:
    rows, n_pair = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return pair_table(rows >> 32, vocabulary, rows & 0xFFFFFFFF, vocabulary, n_pair)
