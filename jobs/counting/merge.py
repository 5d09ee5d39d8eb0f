"""Partial results summed into the tables of a corpus: one query for each table, whoever runs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from plumbline.warehouse.storage.store import Staged

_WORDS = "SELECT word, CAST(sum(n_word) AS BIGINT) AS n_word FROM partials GROUP BY word"
_PAIRS = """
SELECT word, target, CAST(sum(n_pair) AS BIGINT) AS n_pair FROM partials GROUP BY word, target
"""
# A shard names the two words of a pair in any order; in the table each is a target of the other.
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
#: Rows of a batch, which becomes a row group of the table's file.
BATCH_ROWS = 200_000


@dataclass(frozen=True)
class Merge:
    """A sum of partial results and where it goes. Picklable: Spark's tasks write its parts.

    Attributes:
        query: SQL that DuckDB and Spark read alike, over ``views``.
        views: Parquet files by the name of the view on them; a file named twice counts twice.
        order: columns that the rows of each file are sorted by.
        constants: the table's columns that have one value.
        staged: the partition to write.
    """

    query: str
    views: Mapping[str, Sequence[Path]]
    order: tuple[str, ...]
    constants: Mapping[str, str | int]
    staged: Staged

    def write_part(self, name: str, batches: Iterable[pa.RecordBatch]) -> int:
        """Write rows of the query as one file of the partition; returns how many."""
        return self.staged.write_part(name, map(self._complete, batches))

    def _complete(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for name, value in self.constants.items():
            batch = batch.append_column(name, pa.repeat(value, batch.num_rows))
        return batch


def merge_words(partials: Sequence[Path], constants: Mapping[str, str], staged: Staged) -> Merge:
    """The occurrences of each word."""
    return Merge(_WORDS, {"partials": partials}, ("word",), constants, staged)


def merge_pairs(
    partials: Sequence[Path],
    constants: Mapping[str, str | int],
    staged: Staged,
    *,
    all_pairs: bool,
    words: Staged | None = None,
) -> Merge:
    """The co-occurrences of each word and target.

    ``words`` is a staged ``word_count``: only its words are kept, on both sides of ``all_pairs``;
    else targets stay.
    """
    query, views = _ALL_PAIRS if all_pairs else _PAIRS, {"partials": partials}
    if words:
        views["words"] = files(words)
        query = f"SELECT * FROM ({query}) AS pairs WHERE word IN (SELECT word FROM words)"
        query += " AND target IN (SELECT word FROM words)" if all_pairs else ""
    return Merge(query, views, ("word", "target"), constants, staged)


def files(staged: Staged) -> list[Path]:
    """The files of a staged partition."""
    return sorted(Path(staged.directory).glob("*.parquet"))


@dataclass(frozen=True)
class Pruned:
    """What was left out: distinct words, and their occurrences (tokens)."""

    n_words: int = 0
    n_tokens: int = 0


def prune(counted: Staged, kept: Staged, min_count: int, targets: Sequence[str]) -> Pruned:
    """Copy a staged ``word_count`` without the words counted fewer than ``min_count`` times.

    Only here, with the counts of the whole corpus, is it known which words are rare. ``targets``
    stay however rare they are: PMI needs their counts, standard errors their co-occurrences with
    themselves.
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

    for number, file in enumerate(files(counted)):
        kept.write_part(f"part-{number:05}", common(ds.dataset(file).to_batches()))
    return Pruned(n_words, n_tokens)
