"""Writing the sums of partial counts to a corpus's tables, and pruning rare words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plumbline.warehouse.storage.store import Staged

#: Rows of a batch, which becomes a row group of the table's file.
BATCH_ROWS = 200_000
#: Query for the occurrences of each word, in DuckDB and Spark.
WORDS = "SELECT word, CAST(sum(n_word) AS BIGINT) AS n_word FROM partials GROUP BY word"


@dataclass(frozen=True)
class Output:
    """A partition to write sums to. Picklable: Spark's tasks write its parts.

    Attributes:
        staged: the partition.
        constants: columns with one value for all rows, and that value.
        prefix: start of the parts' names; a new part replaces an old one of its name.
    """

    staged: Staged
    constants: Mapping[str, str | int]
    prefix: str = ""

    @property
    def subject(self) -> str:
        """Name of the sums in progress lines: a corpus, or a block of its steps.

        >>> Output(Staged("word_count", "", (), ""), {"corpus": "c", "end_step": 2000}).subject
        'c to step 2,000'
        """
        step = self.constants.get("end_step")
        return f"{self.constants['corpus']}" + (f" to step {step:,}" if step else "")

    def write_part(self, name: str, batches: Iterable[pa.RecordBatch]) -> int:
        """Write rows as one file of the partition; returns how many."""

        def complete(batch: pa.RecordBatch) -> pa.RecordBatch:
            for column, value in self.constants.items():
                batch = batch.append_column(column, pa.repeat(value, batch.num_rows))
            return batch

        return self.staged.write_part(f"{self.prefix}{name}", map(complete, batches))


@dataclass(frozen=True)
class Pruned:
    """Numbers of words left out and of their occurrences (tokens)."""

    n_words: int = 0
    n_tokens: int = 0


def prune(counted: Staged, kept: Staged, min_count: int, targets: Sequence[str]) -> Pruned:
    """Copy a staged ``word_count`` without the words counted fewer than ``min_count`` times.

    Only the counts of the whole corpus show which words are rare. ``targets`` stay even if they are
    rare: PMI needs their counts, and standard errors their co-occurrences with themselves.
    """
    n_words = n_tokens = 0

    def common(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        nonlocal n_words, n_tokens
        for batch in batches:
            is_rare = pc.less(batch["n_word"], min_count)
            is_rare = pc.and_not(is_rare, pc.is_in(batch["word"], pa.array(targets, pa.string())))
            rare = batch["n_word"].filter(is_rare)
            n_words, n_tokens = n_words + len(rare), n_tokens + (pc.sum(rare).as_py() or 0)
            yield batch.filter(pc.invert(is_rare))

    for number, file in enumerate(counted.parts()):
        kept.write_part(f"part-{number:05}", common(pq.ParquetFile(file).iter_batches(BATCH_ROWS)))
    return Pruned(n_words, n_tokens)
