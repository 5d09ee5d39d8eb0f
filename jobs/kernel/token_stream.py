"""Ids of the kept words of a shard, document by document.

They are written while the shard is counted. Later they give evidence, and co-occurrences with other
targets are counted from them instead of from text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plumbline.jobs.kernel.chunk_words import IdState
from plumbline.jobs.kernel.cooccurrences import DENSE_WORDS, TargetPairs
from plumbline.jobs.kernel.json_parser import MAX_SOURCE, NO_SOURCE, OTHER, ReaderState
from plumbline.jobs.kernel.limits import Limits
from plumbline.jobs.kernel.memory import address, new_record
from plumbline.jobs.kernel.words import END_WORD, Words, WordState

#: Number of kept words and document ends after which a table is handed over.
_TABLE = 1 << 20
#: Most documents whose texts begin in the buffer of texts before it is counted.
_DOCUMENTS = 1 << 15
#: Source of documents whose source's name is too long, or is new when the table is full.
OTHER_SOURCE = "other"
#: Bytes per target: cells of 32 bits, and of 64 bits once a count may outgrow those.
TARGET_BYTES = 12 * DENSE_WORDS

_Ints = NDArray[np.int64]


class DocumentLog:
    """Row and source of each document in order, whether the reader or Python read it.

    Args:
        reader: gets memory to write to, and the path to the source's field.
        source_field: ``a.b`` is ``b`` in ``a``; empty for none.
    """

    def __init__(self, reader: ReaderState, source_field: str) -> None:
        names = [name.encode() for name in source_field.split(".")] if source_field else []
        self._path = np.frombuffer(b"".join(names) or b"\0", np.uint8).copy()
        self._path_ends = np.cumsum([0, *map(len, names)], dtype=np.int64)
        self._rows = np.zeros((_DOCUMENTS, 2), np.int64)
        self._reader = reader
        reader.path, reader.n_path = address(self._path), len(names)
        reader.path_ends = address(self._path_ends)
        reader.documents, reader.documents_room = address(self._rows), _DOCUMENTS
        self.sources = Words([OTHER_SOURCE])
        self._waiting: list[_Ints] = []
        self._first = 0

    def add(self, rows: _Ints, sources: Sequence[str | None] | None) -> None:
        """Note documents that Python read: their rows, from 1, and their sources."""
        self.collect()
        ids = np.full(rows.size, NO_SOURCE, np.int64)
        if sources is not None:
            id_of: dict[str | None, int] = {None: NO_SOURCE, "": NO_SOURCE}
            for source in dict.fromkeys(sources):
                if source not in id_of:
                    id_of[source] = self._id(str(source))
            ids[:] = [id_of[source] for source in sources]
        self._waiting.append(np.stack([rows, ids], axis=1))

    def take(self, n: int, is_open: bool) -> tuple[_Ints, _Ints, pa.Array]:
        """Numbers, rows and sources of the next ``n`` documents.

        If ``is_open``, also of the unfinished document after these, which the next call returns
        again as its first.
        """
        self.collect()
        rows = np.concatenate([np.empty((0, 2), np.int64), *self._waiting])
        taken = rows[: n + is_open]
        numbers = np.arange(self._first, self._first + len(taken))
        self._waiting, self._first = [rows[n:]], self._first + n
        names = [None if k == NO_SOURCE else _plain(name) for k, name in enumerate(self._names())]
        return numbers, taken[:, 0], pa.array(names, pa.string()).take(pa.array(taken[:, 1]))

    def clear(self) -> None:
        """Begin another shard."""
        self._waiting, self._first, self._reader.n_documents = [], 0, 0
        self.sources.clear(np.empty(0, np.int32))

    def collect(self) -> None:
        """Take the documents that the reader noted, so it has room for more."""
        self._waiting.append(self._rows[: int(self._reader.n_documents)].copy())
        self._reader.n_documents = 0

    def _names(self) -> list[str]:
        return [str(name) for name in self.sources.vocabulary().to_pylist()]

    def _id(self, source: str) -> int:
        name = json.dumps(source, ensure_ascii=False)[1:-1].encode("utf-8", "replace")
        state = self.sources.state
        no_room = state.n >= state.room or state.n_bytes + len(name) > state.arena_room
        return OTHER if no_room or len(name) > MAX_SOURCE else int(self.sources.intern([name])[0])


def _plain(name: str) -> str:
    """The string that JSON writes as ``name`` between quotes."""
    return str(json.loads(f'"{name}"')) if "\\" in name else name


class TokenStream:
    """Ids of kept words that are not handed over yet, with the id of the end of each document."""

    def __init__(self) -> None:
        self._ids = np.empty(_TABLE, np.int32)
        self._n = 0

    @property
    def is_full(self) -> bool:
        """True if a table is to be handed over."""
        return self._n >= _TABLE

    def add(self, ids: NDArray[np.int32]) -> None:
        """Append ids, which are copied."""
        end = self._n + ids.size
        if end > self._ids.size:
            self._ids = np.concatenate([self._ids[: self._n], np.empty(end, np.int32)])
        self._ids[self._n : end] = ids
        self._n = end

    def table(self, documents: DocumentLog, end_id: int, keep: int = 0) -> Iterator[pa.Table]:
        """The documents so far, except the last ``keep`` ids, which stay.

        Yields at most one table: document (its number in the shard, from 0), source_row, source
        and tokens (ids). An unfinished document has a further row in the next table.
        """
        n = self._n - keep
        ids = self._ids[:n]
        ends = np.flatnonzero(ids == end_id)
        is_open = n > (ends[-1] + 1 if ends.size else 0)
        starts = np.concatenate([[0], ends - np.arange(ends.size), [n - ends.size]])
        numbers, rows, sources = documents.take(ends.size, is_open)
        offsets = pa.array(starts[: ends.size + is_open + 1], pa.int32())
        tokens = pa.ListArray.from_arrays(offsets, pa.array(ids[ids != end_id]))
        left = self._ids[n : self._n].copy()
        self._ids[: left.size], self._n = left, left.size
        if len(rows):
            columns = {"document": numbers, "source_row": rows, "source": sources}
            yield pa.table({**columns, "tokens": tokens})

    def rename(self, ids: NDArray[np.int32]) -> None:
        """Replace the ids that :meth:`table` left by new ones."""
        self._n = 0
        self.add(ids)


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
