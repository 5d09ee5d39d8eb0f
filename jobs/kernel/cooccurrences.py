"""Count how often kept tokens co-occur in a document, in compiled code.

A pair consists of a word and a target. The ids of targets are below the number of targets. Two
different targets that co-occur count as two pairs: each target is the word of one pair and the
target of the other. With ``all_pairs``, any two words that co-occur count as one pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plumbline.jobs.kernel.cache import EntryPoint, compiled
from plumbline.jobs.kernel.memory import (
    Limits,
    address,
    get32,
    get64,
    get_int,
    new_record,
    prefetch,
    put32,
    put64,
    rehash,
    slot_of,
)
from plumbline.jobs.kernel.tokens.words import IdState, WordState

#: Names of the counting rules.
RULES = ("pairs", "windows")
#: Each target has an array with a count for each word whose id is below this number. Most frequent
#: words have such ids. Pairs with other words, here called rare words, are in a hash table.
DENSE_WORDS = 1 << 14
#: Number of 32-bit counts in a target's array. The count after the words' counts is for all rare
#: words and is never read. The odd number of cache lines spreads a word's counts over cache sets.
_CELLS = DENSE_WORDS + 16
#: When a 32-bit count is this high, the next batch might make it overflow.
_CELL_LIMIT = 1 << 31
#: Minimum number of rows for which there is memory. A row is a pair, encoded as one number.
_ROWS = 1 << 12
#: A row's slot in the hash table is prefetched this many rows before the row is counted.
_AHEAD = 12


class PairState:
    """Counts of pairs, and the current position in the ids of the documents."""

    dense: int  # Address of the targets' arrays. Each array has ``_CELLS`` 32-bit counts.
    table: int  # Address of a hash table of pairs with rare words. A slot has row + 1 and a count.
    mask: int  # Number of slots in the table, minus 1.
    n: int  # Number of pairs in the table.
    rows: int  # Address of rows (pairs encoded as numbers) that are not in the table yet.
    n_rows: int
    rows_capacity: int
    n_targets: int
    window: int
    all_pairs: int
    distinct: int  # Address of scratch memory for the distinct words of a window.
    start: int  # Index of the document's first id.
    first: int  # Index of the next id whose pairs will be counted.
    tallied: int  # Index of the next id that will be counted as a word.
    n_gone: int  # Number of the document's ids that were counted and are no longer stored.
    n_documents: int
    n_kept: int
    n_pairs: int


@compiled
def _count_words(p: PairState, words: WordState, ids: IdState) -> int:
    """Count the new ids of the document as words. Return the index after the last new id."""
    end_id, k = words.n_fixed - 1, p.tallied
    while k < ids.n:
        word = get32(ids.ids, k)
        if word == end_id:
            break
        put64(words.counts, word, get_int(words.counts, word) + 1)
        k += 1
    p.tallied = k
    return k


@compiled
def _end_document(p: PairState, end: int) -> None:
    p.n_documents += 1
    p.n_kept += p.n_gone + end - p.start
    p.start = p.first = p.tallied = end + 1
    p.n_gone = 0


@compiled
def _drop_old_ids(p: PairState, ids: IdState) -> None:
    """Drop the ids that are too far back to be paired with later ids."""
    gone = max(p.first - p.window + 1, p.start)
    for k in range(gone, ids.n):
        put32(ids.ids, k - gone, get32(ids.ids, k))
    ids.n -= gone
    p.n_gone += gone - p.start
    p.first -= gone
    p.tallied -= gone
    p.start = 0


@EntryPoint
def count_pairs(p: PairState, words: WordState, ids: IdState) -> bool:
    """Count pairs by the rule ``pairs``: count any two tokens that are less than ``window`` apart.

    Return False if ``rows`` is full. The caller then empties ``rows`` and calls again.
    """
    while True:
        end = _count_words(p, words, ids)
        is_whole = end < ids.n
        if p.all_pairs:
            if not _add_all_rows(p, ids.ids, end):
                return False
        # A target is also paired with words after it, so wait until these have been scanned.
        elif not _count_near_targets(p, ids.ids, end if is_whole else end - p.window + 1, end):
            return False
        if not is_whole:
            break
        n = p.n_gone + end - p.start
        reach = min(p.window - 1, max(n - 1, 0))
        p.n_pairs += reach * n - reach * (reach + 1) // 2
        _end_document(p, end)
    _drop_old_ids(p, ids)
    return True


@compiled
def _count_near_targets(p: PairState, ids: int, stop: int, end: int) -> bool:
    """Count the words near each target before index ``stop``. Return False if ``rows`` is full.

    Pairs with rare words are only stored in ``p.rows``. :func:`_add_rows` counts them. The inner
    loops are fast because they search no hash table and have no branch that depends on a word.
    """
    n_targets, reach = p.n_targets, p.window - 1
    j, rows, n_rows = p.first, p.rows, p.n_rows
    full = p.rows_capacity - 2 * reach
    while j < stop and n_rows <= full:
        target = get32(ids, j)
        if target >= n_targets:
            j += 1
            continue
        column = p.dense + 4 * _CELLS * target
        for i in range(max(p.start, j - reach), j):
            word = get32(ids, i)
            cell = min(word, DENSE_WORDS)
            put32(column, cell, get32(column, cell) + 1)
            # Store the row even if the word is frequent. The next row then overwrites this row.
            put64(rows, n_rows, word * n_targets + target)
            n_rows += np.int64(word >= DENSE_WORDS)
        for i in range(j + 1, min(end, j + reach + 1)):
            word = get32(ids, i)
            cell = min(word, DENSE_WORDS)
            # Don't count two tokens of one target here. The loop above counts them as one pair.
            put32(column, cell, get32(column, cell) + np.int64(word != target))
            put64(rows, n_rows, word * n_targets + target)
            n_rows += np.int64(word >= DENSE_WORDS)
        j += 1
    p.first, p.n_rows = j, n_rows
    return j >= stop


@compiled
def _pair_row(a: int, b: int) -> int:
    """Encode a pair of ids as one number, with the smaller id in the upper 32 bits."""
    return min(a, b) << 32 | max(a, b)


@compiled
def _add_all_rows(p: PairState, ids: int, end: int) -> bool:
    """Add a row for each pair of nearby ids before ``end``. Return False if ``rows`` is full."""
    reach, j, rows, n_rows = p.window - 1, p.first, p.rows, p.n_rows
    full = p.rows_capacity - reach
    while j < end and n_rows <= full:
        word = get32(ids, j)
        for i in range(max(p.start, j - reach), j):
            put64(rows, n_rows, _pair_row(get32(ids, i), word))
            n_rows += 1
        j += 1
    p.first, p.n_rows = j, n_rows
    return j == end


@EntryPoint
def count_windows(p: PairState, words: WordState, ids: IdState) -> bool:
    """Count pairs by the rule ``windows``: count a pair once in each window with both words.

    A window starts at each word that at least ``window`` - 1 words follow. A word that is in a
    window more than once is also paired with itself. Return False if ``rows`` is full.
    """
    while True:
        end = _count_words(p, words, ids)
        is_whole = end < ids.n
        n = p.n_gone + end - p.start
        # A document shorter than the window counts as one window.
        is_short = is_whole and 0 < n < p.window
        last = end - 1 if is_short else max(p.first, p.start + p.window - 1 - p.n_gone)
        while last < end and p.first < end:
            if p.n_rows + p.window * p.window > p.rows_capacity:
                return False
            _count_window(p, ids.ids, max(p.start, last - p.window + 1), last + 1)
            last += 1
            p.first = last
        if not is_whole:
            break
        _end_document(p, end)
    _drop_old_ids(p, ids)
    return True


@compiled
def _count_window(p: PairState, ids: int, low: int, high: int) -> None:
    distinct, repeated, seen = 0, 0, p.distinct
    # Item k of `seen` is twice the id of the k-th distinct word, plus 1 if the word is repeated.
    for j in range(low, high):
        word = get32(ids, j)
        k = 0
        while k < distinct and get_int(seen, k) >> 1 != word:
            k += 1
        if k == distinct:
            put64(seen, k, 2 * word)
            distinct += 1
        elif get_int(seen, k) & 1 == 0:
            put64(seen, k, 2 * word + 1)
            repeated += 1
    p.n_pairs += distinct * (distinct - 1) // 2 + repeated
    for k in range(distinct):
        first, again = get_int(seen, k) >> 1, get_int(seen, k) & 1
        if p.all_pairs:
            for j in range(k + 1 - again, distinct):
                put64(p.rows, p.n_rows, _pair_row(first, get_int(seen, j) >> 1))
                p.n_rows += 1
        elif first < p.n_targets:
            for j in range(distinct):
                if j == k and not again:
                    continue
                word = get_int(seen, j) >> 1
                if word < DENSE_WORDS:
                    cell = _CELLS * first + word
                    put32(p.dense, cell, get32(p.dense, cell) + 1)
                else:
                    put64(p.rows, p.n_rows, word * p.n_targets + first)
                    p.n_rows += 1


@EntryPoint
def _add_rows(p: PairState) -> None:
    """Move the pairs in ``rows`` to the hash table, which must have room for them."""
    for k in range(p.n_rows):
        key = np.uint64(get_int(p.rows, k) + 1)
        at = slot_of(key, p.mask)
        # Near the end, `ahead` is from beyond the last row. Prefetching a wrong slot does no harm.
        ahead = np.uint64(get_int(p.rows, k + _AHEAD) + 1)
        prefetch(p.table + 16 * slot_of(ahead, p.mask))
        while get64(p.table, 2 * at) != key:
            if get64(p.table, 2 * at) == np.uint64(0):
                put64(p.table, 2 * at, key)
                p.n += 1
                break
            at = (at + 1) & p.mask
        put64(p.table, 2 * at + 1, get_int(p.table, 2 * at + 1) + 1)
    p.n_rows = 0


class TargetPairs:
    """Counts how often each word co-occurs with each target."""

    def __init__(self, targets: Sequence[str], rule: str, window: int) -> None:
        self._targets = targets
        self._count = count_pairs if rule == "pairs" else count_windows
        self._dense = np.zeros((len(targets), _CELLS), np.uint32)
        self._most_in_a_cell, self._is_done = 0, True
        n_rows = _ROWS + (2 * window if rule == "pairs" else window * window)
        self._rows = np.empty(n_rows + _AHEAD, np.int64)
        # The table has at least 2 * n_rows slots. So doubling it once makes room for n_rows pairs.
        self._table = np.zeros((1 << max(14, (2 * n_rows - 1).bit_length()), 2), np.uint64)
        self._distinct = np.empty(window, np.int64)
        s = self.state = new_record(PairState)
        s.dense, s.rows = address(self._dense), address(self._rows)
        s.distinct = address(self._distinct)
        s.n_targets, s.window, s.rows_capacity = len(targets), window, n_rows
        self._publish()

    @property
    def n_bytes(self) -> int:
        return self._dense.nbytes + self._table.nbytes + self._rows.nbytes

    @property
    def has_room(self) -> bool:
        """Whether there is room for all pairs that the next :meth:`count` may add."""
        table_has_room = self.state.n + self.state.rows_capacity <= len(self._table) // 2
        return bool(table_has_room and self._most_in_a_cell < _CELL_LIMIT)

    def growth(self, need: int) -> int:
        """Return how many bytes :meth:`grow` needs, or 1 << 62 if a count may overflow."""
        return 2 * self._table.nbytes if self._most_in_a_cell < _CELL_LIMIT else Limits.n_bytes

    def grow(self, need: int) -> None:
        table = np.zeros((2 * len(self._table), 2), np.uint64)
        rehash(address(self._table), len(self._table), address(table), len(table) - 1)
        self._table = table
        self._publish()

    def count(self, words: WordState, ids: IdState) -> bool:
        """Count ids. If False is returned, make room and call again to count the remaining ids."""
        if self._is_done:
            # Raise the upper bound of all counts, once for these ids. An id forms fewer than
            # `window` pairs with earlier ids, and completes at most one window.
            self._most_in_a_cell += self.state.window * int(ids.n)
        self._is_done = bool(self._count(self.state, words, ids))
        _add_rows(self.state)
        return self._is_done

    def take_tables(self, vocabulary: pa.Array) -> Iterator[pa.Table]:
        """Yield one table with all pairs (see :func:`pair_table`), and set their counts to 0."""
        rows = np.flatnonzero(self._table[:, 0] != 0)
        # `take` is four times as fast as indexing with a mask.
        used = self._table.take(rows, axis=0).view(np.int64)
        late_word, late_target = np.divmod(used[:, 0] - 1, len(self._targets))
        self._table[:] = 0
        self.state.n = 0
        n_words = min(len(vocabulary), DENSE_WORDS)
        counts = self._dense[:, :n_words]
        cells = np.flatnonzero(counts != 0)  # `!= 0` makes this three times as fast
        target, word = cells // n_words, cells % n_words
        n_pair = counts[target, word]
        counts[:] = 0
        self._most_in_a_cell = 0
        yield pair_table(
            np.concatenate([word, late_word]),
            vocabulary,
            np.concatenate([target, late_target]),
            pa.array(self._targets),
            np.concatenate([n_pair, used[:, 1]]),
        )

    def _publish(self) -> None:
        self.state.table, self.state.mask = address(self._table), len(self._table) - 1


def pair_table(
    word: NDArray[np.integer],
    words: pa.Array,
    target: NDArray[np.integer],
    targets: pa.Array,
    n_pair: NDArray[np.int64],
) -> pa.Table:
    """Return a table with columns word and target (both dictionary-encoded) and n_pair."""

    def encoded(ids: NDArray[np.integer], names: pa.Array) -> pa.Array:
        return pa.DictionaryArray.from_arrays(ids.astype(np.int32, copy=False), names)

    return pa.table(
        {"word": encoded(word, words), "target": encoded(target, targets), "n_pair": n_pair}
    )
