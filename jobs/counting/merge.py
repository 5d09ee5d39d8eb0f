"""Summing partial counts into a corpus's tables, without rare words.

The queries run in DuckDB and in Spark, over the views ``partials`` and ``words``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from plumbline.warehouse.storage.store import Staged

#: The occurrences of each word.
WORDS = "SELECT word, CAST(sum(n_word) AS BIGINT) AS n_word FROM partials GROUP BY word"
_PAIRS = """
SELECT word, target, CAST(sum(n_pair) AS BIGINT) AS n_pair FROM partials GROUP BY word, target
"""
# Partial counts may have a pair in either order. Sum both, then write the sum in both orders.
_ALL_PAIRS = """
WITH sums AS (
    SELECT least(word, target) AS one, greatest(word, target) AS other,
        CAST(sum(n_pair) AS BIGINT) AS n_pair
    FROM partials GROUP BY least(word, target), greatest(word, target)
)
SELECT one AS word, other AS target, n_pair FROM sums
UNION ALL
SELECT other AS word, one AS target, n_pair FROM sums WHERE one <> other
"""


def pairs_query(all_pairs: bool, is_pruned: bool) -> str:
    """Return the query for the co-occurrences of each word and target.

    With ``all_pairs`` each word of a pair is a target of the other. If ``is_pruned``, the view
    ``words`` lacks rare words, and their pairs are left out.
    """
    query = _ALL_PAIRS if all_pairs else _PAIRS
    if is_pruned:
        query = f"SELECT * FROM ({query}) WHERE word IN (SELECT word FROM words)"
        query += " AND target IN (SELECT word FROM words)" if all_pairs else ""
    return query


@dataclass(frozen=True)
class Output:
    """A partition to write sums to. Picklable: Spark's tasks write its parts.

    Attributes:
        constants: columns with one value for all rows, and that value.
        min_count: words counted fewer times are left out of ``word_count``. Only the counts of the
            whole corpus show which words are rare.
        targets: words that stay even if they are rare: PMI needs their counts, and standard errors
            their co-occurrences with themselves.
    """

    staged: Staged
    constants: Mapping[str, str | int]
    min_count: int = 1
    targets: tuple[str, ...] = ()

    def write_part(self, name: str, batches: Iterable[pa.RecordBatch]) -> int:
        """Write rows as a file of the partition. Return how many were given, with rare words."""
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
