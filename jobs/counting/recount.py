"""Counting co-occurrences with new targets in the words that were kept of a shard."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.jobs.corpus_options import CorpusOptions
from plumbline.jobs.counting.co_occurrences import Ints, QueryOfAll, co_occurrences, find, summed
from plumbline.jobs.counting.kept_documents import Segments, read_documents, readable
from plumbline.jobs.kernel.memory import Limits

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

    for documents in read_documents(segments, query.ids):
        _, word, target, n = co_occurrences(query, find(query, documents))
        cells.append(np.ravel_multi_index((word, target), shape))
        counts.append(n)
        if sum(map(len, counts)) * _COUNT_BYTES > limits.n_bytes:
            cells[:], counts[:] = ([x] for x in summed(cells, counts))
            if len(cells[0]) * 2 * _COUNT_BYTES > limits.n_bytes:
                hand_over()
    cells[:], counts[:] = ([x] for x in summed(cells, counts))
    hand_over()
