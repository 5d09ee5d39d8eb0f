"""Collect the rows, sources and kept words of documents until they are written as a table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plumbline.jobs.kernel.json_parser import MAX_SOURCE, NO_SOURCE, OTHER, ReaderState
from plumbline.jobs.kernel.memory import address
from plumbline.jobs.kernel.tokens.words import Words

#: Number of kept words and document ends after which a table is written.
_TABLE = 1 << 20
#: The buffer of texts is counted when it has this many documents.
_DOCUMENTS = 1 << 15
#: Stored instead of a source's name that is too long, or for which there is no memory.
OTHER_SOURCE = "other"

_Ints = NDArray[np.int64]


class DocumentLog:
    """The row and source of each document, in order. Compiled code or Python adds the documents.

    Args:
        reader: state of the compiled reader, which writes rows and sources to this object.
        source_field: field with the source. ``a.b`` means ``b`` in ``a``. If empty, documents have
            no sources.
    """

    def __init__(self, reader: ReaderState, source_field: str) -> None:
        names = [name.encode() for name in source_field.split(".")] if source_field else []
        self._path = np.frombuffer(b"".join(names) or b"\0", np.uint8).copy()
        self._path_ends = np.cumsum([0, *map(len, names)], dtype=np.int64)
        self._rows = np.zeros((_DOCUMENTS, 2), np.int64)
        self._reader = reader
        reader.path, reader.n_path = address(self._path), len(names)
        reader.path_ends = address(self._path_ends)
        reader.documents, reader.documents_capacity = address(self._rows), _DOCUMENTS
        self.sources = Words([OTHER_SOURCE])
        self._waiting: list[_Ints] = []
        self._first = 0

    def add(self, rows: _Ints, sources: Sequence[str | None] | None) -> None:
        """Add documents that Python has read: their rows (from 1) and their sources."""
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
        """Return the numbers in the shard, the rows and the sources of the next ``n`` documents.

        If ``is_open``, also include the next document, which isn't finished. The next call starts
        with this document again.
        """
        self.collect()
        rows = np.concatenate([np.empty((0, 2), np.int64), *self._waiting])
        taken = rows[: n + is_open]
        numbers = np.arange(self._first, self._first + len(taken))
        self._waiting, self._first = [rows[n:]], self._first + n
        known = self.sources.vocabulary().to_pylist()
        names = [None if k == NO_SOURCE else _plain(name) for k, name in enumerate(known)]
        return numbers, taken[:, 0], pa.array(names, pa.string()).take(pa.array(taken[:, 1]))

    def clear(self) -> None:
        self._waiting, self._first, self._reader.n_documents = [], 0, 0
        self.sources.clear(np.empty(0, np.int32))

    def collect(self) -> None:
        """Move the reader's rows and sources to this object. This makes room in the reader."""
        self._waiting.append(self._rows[: int(self._reader.n_documents)].copy())
        self._reader.n_documents = 0

    def _id(self, source: str) -> int:
        name = json.dumps(source, ensure_ascii=False)[1:-1].encode("utf-8", "replace")
        state = self.sources.state
        no_room = state.n >= state.capacity or state.n_bytes + len(name) > state.arena_capacity
        return OTHER if no_room or len(name) > MAX_SOURCE else int(self.sources.intern([name])[0])


def _plain(name: str) -> str:
    """Return the value of a JSON string that is given without its quotes."""
    return str(json.loads(f'"{name}"')) if "\\" in name else name


class TokenStream:
    """Word ids that aren't in a table yet. The id of END_WORD ends each document."""

    def __init__(self) -> None:
        self._parts: list[NDArray[np.int32]] = []
        self._n = 0

    @property
    def is_full(self) -> bool:
        return self._n >= _TABLE

    def add(self, ids: NDArray[np.int32]) -> None:
        self._parts.append(ids.copy())
        self._n += ids.size

    def table(self, documents: DocumentLog, end_id: int, keep: int = 0) -> Iterator[pa.Table]:
        """Yield a table of the documents in the stream. Yield nothing if there are none.

        Keep the last ``keep`` ids in the stream. The columns are document (its number, from 0),
        source_row, source and tokens (word ids). The next table continues an unfinished document.
        """
        n, every = self._n - keep, np.concatenate([np.empty(0, np.int32), *self._parts])
        ids = every[:n]
        ends = np.flatnonzero(ids == end_id)
        is_open = n > (ends[-1] + 1 if ends.size else 0)
        starts = np.concatenate([[0], ends - np.arange(ends.size), [n - ends.size]])
        numbers, rows, sources = documents.take(ends.size, is_open)
        offsets = pa.array(starts[: ends.size + is_open + 1], pa.int32())
        tokens = pa.ListArray.from_arrays(offsets, pa.array(ids[ids != end_id]))
        self.rename(every[n:])
        if len(rows):
            columns = {"document": numbers, "source_row": rows, "source": sources}
            yield pa.table({**columns, "tokens": tokens})

    def rename(self, ids: NDArray[np.int32]) -> None:
        """Replace all ids in the stream with ``ids``."""
        self._parts, self._n = [], 0
        self.add(ids)
