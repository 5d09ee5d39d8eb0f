"""Counting co-occurrences with new targets in the words that were kept of a shard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.jobs.corpus_options import CorpusOptions
from plumbline.jobs.counting.co_occurrences import (
    Ints,
    Occurrences,
    QueryOfAll,
    co_occurrences,
    find,
    summed,
)
from plumbline.jobs.counting.kept_documents import (
    Documents,
    Segments,
    ValueOf,
    pieces,
    readable,
    values_of,
)
from plumbline.jobs.kernel.memory import Limits

#: Bytes of memory per kept word while co-occurrences are found.
_TOKEN_BYTES = 1024
#: Bytes of memory per count while counts are summed.
_COUNT_BYTES = 64


def recount_shard(
    segments: Segments,
    targets: Sequence[str],
    options: CorpusOptions,
    limits: Limits,
    spill: Callable[[pa.Table], None],
) -> None:
    """Count the co-occurrences of a shard's kept words with targets.

    ``spill`` gets tables word, target, n_pair whenever counts would outgrow the limits, and at the
    end; the same pair may be in several. Raises ``BadInput`` for damaged files.
    """
    names = pa.array([], pa.string())
    for _, file in segments:
        with readable(file):
            words = pq.read_table(file, columns=["word"])["word"].combine_chunks()
            names = pa.concat_arrays([names, words.cast(pa.string())]).unique()
    rule, window = options.rule, options.window
    query = QueryOfAll((), tuple(targets), (), (), rule, window, names)
    shape = len(names), len(targets)
    cells, counts = list[Ints](), list[Ints]()

    def hand_over() -> None:
        word, target = np.unravel_index(cells[0], shape)
        columns = {"word": names.take(pa.array(word)), "n_pair": counts[0]}
        spill(pa.table(columns | {"target": pa.array(targets, pa.string()).take(pa.array(target))}))
        cells.clear()
        counts.clear()

    most = max(limits.n_bytes // _TOKEN_BYTES, 100 * window)
    for documents, n_shared in _pieces(segments, query.ids, window - 1, most):
        found = find(query, documents)
        if rule == "pairs" and n_shared:
            found = _beyond(found, n_shared)
        _, word, target, n = co_occurrences(query, found)
        cells.append(np.ravel_multi_index((word, target), shape))
        counts.append(n)
        if sum(map(len, counts)) * _COUNT_BYTES > limits.n_bytes:
            cells[:], counts[:] = ([x] for x in summed(cells, counts))
            if len(cells[0]) * 2 * _COUNT_BYTES > limits.n_bytes:
                hand_over()
    cells[:], counts[:] = ([x] for x in summed(cells, counts))
    hand_over()


def _pieces(
    segments: Segments, value_of: ValueOf, n_shared: int, most: int
) -> Iterator[tuple[Documents, int]]:
    """Yield documents, or parts of long ones, with at most ``most`` words together.

    A part that continues a document begins with the last ``n_shared`` words of the part before it.
    The number beside it says how many: 0 if it continues none. So every window of ``n_shared`` + 1
    words lies in exactly one part.
    """
    last, tail = -1, np.empty(0, np.int32)
    for tokens, words in segments:
        with readable(tokens):
            value = values_of(pq.read_table(words, columns=["word", "word_id"]), value_of)
            file = pq.ParquetFile(tokens)
            for group in range(file.num_row_groups):
                rows = file.read_row_group(group)
                documents, number = pieces(rows, value), rows["document"].to_numpy()
                n = len(tail) if number[0] == last else 0
                if n:
                    offsets = documents.offsets + n
                    offsets[0] = 0
                    values = np.concatenate([tail, documents.values])
                    documents = documents._replace(values=values, offsets=offsets)
                yield from _cut(documents, n, n_shared, most)
                last, start = number[-1], documents.offsets[-2]
                tail = documents.values[max(start, len(documents.values) - n_shared) :]


def _cut(documents: Documents, n: int, n_shared: int, most: int) -> Iterator[tuple[Documents, int]]:
    """Yield documents in parts of at most ``most`` words; the first shares ``n`` with the last."""
    values, offsets = documents.values, documents.offsets
    start = 0
    while start < len(values):
        end = min(start + most, len(values))
        begin = offsets[np.searchsorted(offsets, end, side="right") - 1]
        if end < len(values) and start < begin and end - begin <= n_shared:
            end = int(begin)  # a part shorter than a window would count as one
        first = int(np.searchsorted(offsets, start, side="right")) - 1
        low = max(int(offsets[first]), start - n_shared) if start else 0
        inner = offsets[(offsets > low) & (offsets < end)]
        cut = np.concatenate([[low], inner, [end]]) - low
        rows = slice(first, first + len(cut) - 1)
        part = Documents(values[low:end], cut, documents.row[rows], documents.source[rows])
        yield part, start - low if start else n
        start = end


def _beyond(found: Occurrences, n: int) -> Occurrences:
    """The pairs of words that don't both lie among the first ``n`` words."""
    is_new = np.maximum(found.at[found.occurrence], found.target_at) >= n
    columns = {name: getattr(found, name)[is_new] for name in ("occurrence", "target", "target_at")}
    return replace(found, **columns)
