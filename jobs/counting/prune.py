"""Rare words left out of a corpus's tables, once all its shards are summed.

A word that is rare in every shard may be frequent in the corpus, so partial results always hold
all words; only here, with the final counts, is it known which are rare. The words of the word list
stay however rare they are: PMI needs their counts, standard errors their co-occurrences with
themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plumbline.warehouse.storage.store import Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


@dataclass(frozen=True)
class Pruned:
    """What was left out: distinct words, and their occurrences (tokens)."""

    n_words: int = 0
    n_tokens: int = 0


class RareWords:
    """The words counted fewer than ``min_count`` times that are not in ``targets``.

    Under a ``min_count`` of 1 there are none, and nothing is looked at.
    """

    def __init__(self, min_count: int, targets: tuple[str, ...]) -> None:
        self._min_count, self._targets = min_count, targets
        self._seen: Observation | None = None

    def drop(self, words: DataFrame) -> DataFrame:
        """Columns ``word``, ``n_word``, summed over the corpus: the rows that stay."""
        if self._min_count == 1:
            return words
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        rare = (f.col("n_word") < self._min_count) & ~f.col("word").isin(*self._targets)
        # Counted while the rows pass by, so that the sum is not made twice.
        self._seen = Observation()
        n_word = f.when(rare, f.col("n_word"))
        seen = words.observe(self._seen, f.count(n_word).alias("words"), f.sum(n_word).alias("n"))
        return seen.where(~rare)

    def dropped(self) -> Pruned:
        """What :meth:`drop` left out; to be asked after its rows were written."""
        if self._seen is None:
            return Pruned()
        found = self._seen.get
        return Pruned(found["words"], found["n"] or 0)


def only_words_of(words: Staged, columns: tuple[str, ...], pairs: DataFrame) -> DataFrame:
    """The rows of ``pairs`` that hold, in each of the columns, a word of a staged ``word_count``.

    The words may fill memory or not: how the two are joined is left to Spark.
    """
    path = f"file://{words.directory}"
    kept = pairs.sparkSession.read.schema("word string").parquet(path)
    order = pairs.columns
    for column in columns:
        pairs = pairs.join(kept.withColumnRenamed("word", column), column, "left_semi")
    return pairs.select(*order)  # a join puts its column first
