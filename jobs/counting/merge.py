"""Add up partial counts to make a corpus's tables. Rare words are left out.

On one machine, :class:`PairSum` sums co-occurrences with an external merge sort, which needs little
memory. A pair becomes one 64-bit key. The upper half is the rank of its word among the sorted
words, and the lower half is the rank of its target. As many rows as fit in memory are sorted,
summed and written to a file, called a run. Then all runs are summed, one range of keys at a time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plumbline.jobs.kernel.pair_runs import Ints, Run, between, summed
from plumbline.warehouse.storage.store import Staged
from plumbline.warehouse.text.progress import Update, progress

#: Number of rows in a batch, which becomes a row group of the table's file.
BATCH_ROWS = 200_000
#: Bytes of memory that a row needs while it is sorted and summed.
_ROW_BYTES = 64
#: Number of rows whose words are looked up together.
_BATCH_ROWS = 1 << 20
#: Number of keys sampled from a full run. All samples together divide the keys into ranges.
_SAMPLES = 1024
#: Query for the occurrences of each word, in DuckDB and Spark.
WORDS = "SELECT word, CAST(sum(n_word) AS BIGINT) AS n_word FROM partials GROUP BY word"


@dataclass(frozen=True)
class Output:
    """Writes merged counts to one partition of a table. Spark's tasks get pickled copies.

    Attributes:
        constants: {column: value} for columns that have the same value in all rows.
        min_count: words that occur less often in the whole corpus are left out of ``word_count``.
        targets: words that are never left out. PMI needs the counts of targets, and standard errors
            need how often each target co-occurs with itself.
    """

    staged: Staged
    constants: Mapping[str, str | int]
    min_count: int = 1
    targets: tuple[str, ...] = ()

    def write_part(self, name: str, batches: Iterable[pa.RecordBatch]) -> int:
        """Write rows to a file, but not rare words. Return the number of rows in ``batches``."""
        n_rows = 0

        def complete(batch: pa.RecordBatch) -> pa.RecordBatch:
            nonlocal n_rows
            n_rows += batch.num_rows
            if self.min_count > 1:
                is_rare = pc.less(batch["n_word"], self.min_count)
                is_target = pc.is_in(batch["word"], pa.array(self.targets, pa.string()))
                batch = batch.filter(pc.or_(pc.invert(is_rare), is_target))
            for column, value in self.constants.items():
                batch = batch.append_column(column, pa.repeat(value, batch.num_rows))
            return batch

        self.staged.write_part(name, map(complete, batches))
        return n_rows


class PairSum(NamedTuple):
    """Partial counts of pairs, to be added up.

    Attributes:
        files: Parquet files with word, target and n_pair. A file that is listed twice counts twice.
        words: all words to keep, sorted. Rows with any other word are left out.
        both_ways: count each row twice if its words differ, the second time with the words swapped.
        work: directory for the runs, which take at most 16 bytes per row of ``files``, or 32 bytes
            with ``both_ways``.
        memory_bytes: memory that sorting may use, besides the memory of ``words``.
    """

    files: Sequence[Path]
    words: pa.LargeStringArray
    both_ways: bool
    work: Path
    memory_bytes: int

    def sums(
        self, batch_rows: int, what: str = "merge pairs"
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield batches with columns word, target and n_pair. Each pair occurs once, in order.

        Sorting and summing each show their progress in a line that begins with ``what``.
        """
        limit = max(self.memory_bytes // _ROW_BYTES, 1)
        runs: list[Path] = []
        samples = [np.zeros(1, np.int64)]
        with progress(f"{what}: sort", "files") as update:
            for parts in self._parts(limit, update):
                keys, counts = summed(parts)
                runs.append(self.work / f"run-{len(runs)}")
                with runs[-1].open("wb") as out:
                    out.write(keys.data)
                    out.write(counts.data)
                samples.append(keys[:: limit // _SAMPLES + 1].copy())
                del keys, counts
        starts = np.unique(np.sort(np.concatenate(samples))[::_SAMPLES])
        n_done, n_all = 0, sum(run.stat().st_size for run in runs) // 16
        with progress(f"{what}: sum", "rows") as update:
            for start, end in pairwise([*starts, np.iinfo(np.int64).max] if runs else []):
                update(n_done, n_all)
                # Map each run into memory, to read only this range from the disk.
                mapped = (np.memmap(run, np.int64, "r").reshape(2, -1) for run in runs)
                columns = [between((keys, counts), start, end) for keys, counts in mapped]
                n_done += sum(len(keys) for keys, _ in columns)
                keys, counts = summed(columns)
                for at in range(0, len(keys), batch_rows):
                    key = keys[at : at + batch_rows]
                    yield pa.record_batch(
                        {
                            "word": self.words.take(pa.array(key >> 32)),
                            "target": self.words.take(pa.array(key & 0xFFFFFFFF)),
                            "n_pair": counts[at : at + batch_rows],
                        }
                    )
            update(n_done, n_all)

    def _parts(self, limit: int, update: Update) -> Iterator[list[Run]]:
        """Yield lists of batches. Each list except the last has at least ``limit`` rows in all."""
        parts: list[Run] = []
        for rows in self._rows(limit, update):
            parts.append(rows)
            if sum(len(keys) for keys, _ in parts) >= limit:
                yield parts
                parts = []
        if parts:
            yield parts

    def _rows(self, limit: int, update: Update) -> Iterator[Run]:
        for batch in self._batches(min(limit, _BATCH_ROWS), update):
            word, target = self._ranks(batch["word"]), self._ranks(batch["target"])
            counts = batch["n_pair"].to_numpy()
            is_kept = (word >= 0) & (target >= 0)
            if not is_kept.all():
                word, target, counts = word[is_kept], target[is_kept], counts[is_kept]
            if len(counts):
                yield word << 32 | target, counts
                if self.both_ways:
                    is_mixed = word != target
                    yield (target << 32 | word)[is_mixed], counts[is_mixed]

    def _batches(self, n_rows: int, update: Update) -> Iterator[pa.Table]:
        """Yield the rows of all files in batches. Small files share a batch, which is faster."""
        waiting: list[pa.RecordBatch] = []
        update(0, len(self.files))
        for n_read, path in enumerate(self.files, 1):
            file = pq.ParquetFile(path, read_dictionary=["word", "target"])
            for batch in file.iter_batches(n_rows):
                if waiting and sum(map(len, waiting)) + len(batch) > n_rows:
                    yield _one_chunk(waiting)
                waiting.append(batch)
            update(n_read, len(self.files))
        if waiting:
            yield _one_chunk(waiting)

    def _ranks(self, column: pa.ChunkedArray) -> Ints:
        (chunk,) = column.chunks
        dictionary = chunk.dictionary.cast(pa.large_string())
        ranks = pc.index_in(dictionary, self.words).fill_null(-1).to_numpy()
        of_row: Ints = ranks.astype(np.int64)[chunk.indices.to_numpy()]
        return of_row


def _one_chunk(batches: list[pa.RecordBatch]) -> pa.Table:
    """Return the rows of all batches in one chunk, and empty the list ``batches``."""
    table = pa.Table.from_batches(batches)
    batches.clear()
    return table if table["word"].num_chunks == 1 else table.unify_dictionaries().combine_chunks()
