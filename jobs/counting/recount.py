"""Counting co-occurrences with new targets in the words that were kept of a shard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from plumbline.jobs.counting.corpus_options import CorpusOptions
from plumbline.jobs.counting.kept_documents import Segments, readable
from plumbline.jobs.kernel.cooccurrences import DENSE_WORDS, TargetPairs
from plumbline.jobs.kernel.memory import Limits, address, new_record
from plumbline.jobs.kernel.tokens.tokenizer import Targets
from plumbline.jobs.kernel.tokens.words import END_WORD, IdState, WordState

#: Bytes per target: cells of 32 bits, and of 64 bits once a count may outgrow those.
_TARGET_BYTES = 12 * DENSE_WORDS


def recount_shard(
    segments: Segments,
    targets: Targets,
    options: CorpusOptions,
    limits: Limits,
    spill: Callable[[pa.Table], None],
) -> tuple[int, int, int]:
    """Count the pairs of a shard's kept words, in passes over as many targets as fit in memory.

    ``spill`` gets the pairs. Returns the shard's numbers of documents, kept words and
    co-occurrences. Raises ``BadInput`` for damaged files.
    """
    step = max(limits.n_bytes // 2 // _TARGET_BYTES, 1)
    totals = 0, 0, 0
    for start in range(0, len(targets.words), step):
        words = targets.words[start : start + step]
        recount = Recount(words, options.rule, options.window, limits, spill)
        for ids in _documents(segments, recount):
            recount.feed(ids)
        recount.finish()
        totals = recount.totals
    return totals


def _documents(segments: Segments, recount: Recount) -> Iterator[NDArray[np.int32]]:
    """Yield a shard's word ids, with ``recount.end`` between documents and after the last."""
    last = 0
    for tokens, words in segments:
        with readable(tokens):
            table = pq.read_table(words, columns=["word", "word_id", "n_word"])
            old = table["word_id"].to_numpy()
            new = np.empty(int(old.max(initial=-1)) + 1, np.int32)
            new[old] = recount.rename(table["word"].combine_chunks(), table["n_word"].to_numpy())
            file = pq.ParquetFile(tokens)
            for group in range(file.num_row_groups):
                rows = file.read_row_group(group, columns=["document", "tokens"])
                lists, document = rows["tokens"].combine_chunks(), rows["document"].to_numpy()
                offsets = lists.offsets.to_numpy()
                ids = new[lists.values.to_numpy()[offsets[0] : offsets[-1]]]
                # A document may continue in the next row, which then has the same number.
                begins = np.flatnonzero(np.diff(document, prepend=last))
                yield np.insert(ids, offsets[begins] - offsets[0], recount.end)
                last = document[-1]
    yield np.full(1, recount.end, np.int32)


class Recount:
    """Counts the co-occurrences of kept words with targets.

    Args:
        targets: distinct words.
        rule, window: see ``CorpusOptions``.
        limits: bounds of its memory.
        spill: receives tables word, target, n_pair whenever counts would outgrow the limits, and at
            the end; the same pair may be in several.

    >>> tables = []
    >>> recount = Recount(["tea"], "pairs", 10, Limits(), tables.append)
    >>> ids = recount.rename(pa.array(["she", "drinks", "tea"]), np.array([2, 1, 1]))
    >>> recount.feed(np.array([ids[0], ids[1], ids[2], recount.end, ids[0], recount.end], np.int32))
    >>> recount.finish()
    >>> tables[0].to_pylist()[0], recount.totals
    ({'word': 'she', 'target': 'tea', 'n_pair': 1}, (2, 4, 3))
    """

    def __init__(
        self,
        targets: Sequence[str],
        rule: str,
        window: int,
        limits: Limits,
        spill: Callable[[pa.Table], None],
    ) -> None:
        self._pairs = TargetPairs(targets, rule, window)
        self._limits, self._spill = limits, spill
        self.end = len(targets)
        self._fixed = self._names = pa.array([*targets, END_WORD.decode()], pa.string())
        self._words, self._ids = new_record(WordState), new_record(IdState)
        self._words.n_fixed = len(self._fixed)
        self._buffer = np.empty(0, np.int32)

    @property
    def totals(self) -> tuple[int, int, int]:
        """Documents, kept words and co-occurrences of any two words so far."""
        s = self._pairs.state
        return int(s.n_documents), int(s.n_kept), int(s.n_pairs)

    def rename(self, words: pa.StringArray, n_word: NDArray[np.int64]) -> NDArray[np.int32]:
        """New ids of words; until the next call, :meth:`feed` takes ids of these words only.

        ``n_word`` is how often each occurs: the most frequent get the lowest ids, which have cells.
        The first ids are those of the targets, then comes ``end``, which ends a document.
        """
        self._hand_over()
        pending = self._names.take(pa.array(self._buffer[: int(self._ids.n)]))
        ids = _places(words, self._fixed)
        by_frequency = np.argsort(-n_word, kind="stable")
        others = by_frequency[ids[by_frequency] < 0]
        ids[others] = len(self._fixed) + np.arange(others.size)
        # Words that wait to be paired may be missing from ``words``.
        waiting = pending.unique()
        place, waiting_ids = _places(words, waiting), _places(waiting, self._fixed)
        waiting_ids[place[place >= 0]] = ids[place >= 0]
        missing = np.flatnonzero(waiting_ids < 0)
        waiting_ids[missing] = len(self._fixed) + others.size + np.arange(missing.size)
        parts = [self._fixed, words.take(pa.array(others)), waiting.take(pa.array(missing))]
        self._names = pa.concat_arrays(parts)
        self._counts = np.zeros(len(self._names), np.int64)
        self._words.counts = address(self._counts)
        self._buffer = waiting_ids[_places(pending, waiting)]
        return ids

    def feed(self, ids: NDArray[np.int32]) -> None:
        """Count ids, with ``end`` after each document; the last document may continue."""
        self._buffer = np.concatenate([self._buffer[: int(self._ids.n)], ids])
        self._ids.ids, self._ids.n = address(self._buffer), self._buffer.size
        is_done = False
        while not is_done:
            if not self._pairs.has_room:
                self._make_room()
            is_done = self._pairs.count(self._words, self._ids)

    def finish(self) -> None:
        """Hand the last counts over."""
        self._hand_over()

    def _make_room(self) -> None:
        n_bytes = self._pairs.n_bytes + self._names.nbytes + self._counts.nbytes
        if n_bytes + self._pairs.growth(0) > self._limits.n_bytes and self._pairs.state.n:
            self._hand_over()
        else:
            self._pairs.grow(0)

    def _hand_over(self) -> None:
        for table in self._pairs.take_tables(self._names):
            if table.num_rows:
                self._spill(table)


def _places(words: pa.StringArray, among: pa.StringArray) -> NDArray[np.int32]:
    """Index of each word in ``among``; -1 for a word that ``among`` lacks."""
    indices = pc.index_in(words, among).fill_null(-1).to_numpy(zero_copy_only=False)
    return np.array(indices, np.int32)
