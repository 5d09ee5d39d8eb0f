"""Counting a shard's co-occurrences with other targets, from what an earlier count kept of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from plumbline.jobs.kernel import TARGET_BYTES, CountOptions, Limits, Recount
from plumbline.warehouse.errors import BadInput

#: Files of tokens, each with that of the words it refers to.
Segments: TypeAlias = Sequence[tuple[Path, Path]]


def recount_shard(
    segments: Segments, options: CountOptions, limits: Limits, spill: Callable[[pa.Table], None]
) -> tuple[int, int, int]:
    """Hand over the pairs of a shard's kept words with targets, as many targets at a time as fit.

    Returns its documents, kept words and co-occurrences. Raises ``BadInput`` for damaged files.
    """
    step = max(limits.n_bytes // 2 // TARGET_BYTES, 1)
    totals = 0, 0, 0
    for start in range(0, len(options.targets), step):
        targets = options.targets[start : start + step]
        recount = Recount(targets, options.rule, options.window, limits, spill)
        for ids in _documents(segments, recount):
            recount.feed(ids)
        recount.finish()
        totals = recount.totals
    return totals


def _documents(segments: Segments, recount: Recount) -> Iterator[NDArray[np.int32]]:
    """The ids of a shard's words, with an end before each document but the first, and one last."""
    last = 0
    for tokens, words in segments:
        try:
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
                # A document that continues has another row.
                begins = np.flatnonzero(np.diff(document, prepend=last))
                yield np.insert(ids, offsets[begins] - offsets[0], recount.end)
                last = document[-1]
        except (OSError, pa.ArrowInvalid) as e:
            fix = "count the corpus again with --replace"
            raise BadInput(f"evidence {tokens.name}", f"can't be read: {e}", fix) from e
    yield np.full(1, recount.end, np.int32)
