"""Count a corpus on Spark. Each task counts one shard. A shuffle adds up the partial counts."""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

from plumbline.jobs.counting.merge import WORDS, Output
from plumbline.jobs.counting.partials import ShardJob, ShardLedger
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.jobs.spark.spark_session import (
    one_line_losses,
    running_tasks,
    spark_session,
    stop_jobs,
    watched,
)
from plumbline.warehouse.errors import Interrupted, UsageProblem
from plumbline.warehouse.storage.store import Staged
from plumbline.warehouse.text.progress import Update, progress

_PAIRS = """
SELECT word, target, CAST(sum(n_pair) AS BIGINT) AS n_pair FROM partials GROUP BY word, target
"""
# Partial counts may have a pair in either order. Add up both counts, and write one row per order.
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

#: A job is stopped when no task has started for this many seconds.
PATIENCE_S = 300.0
_Result = TypeVar("_Result")


class SparkEngine:
    """An engine that counts on Spark. See docs/cluster.md for what each machine needs.

    Every method raises ``Interrupted`` when Spark loses a process.
    """

    def __init__(self, master: str | None = None) -> None:
        with one_line_losses():  # raises Interrupted if Spark loses a process
            self._spark = spark_session(master)

    def count(self, shards: Sequence[str], job: ShardJob, update: Update) -> list[ShardLedger]:
        """Count the shards. Return their ledgers in any order.

        Raises ``UsageProblem`` if machines lack the warehouse. The error names these machines.
        """
        tasks = self._spark.sparkContext.parallelize(shards, len(shards))
        ledgers = tasks.map(lambda shard: _count_on_executor(shard, job))

        with one_line_losses():
            outcomes = self._run(ledgers.collect, lambda n, _: update(n, len(shards)))
        update(len(shards), len(shards))
        if hosts := sorted({x for x in outcomes if isinstance(x, str)}):
            fix = "it must lie on a file system that every executor sees under the same path"
            raise UsageProblem(
                f"directory {job.directory}", f"not there on {', '.join(hosts)}", fix
            )
        return [x for x in outcomes if isinstance(x, ShardLedger)]

    def merge_words(self, partials: Sequence[Path], output: Output) -> int:
        """Write how often each word occurs. Return the number of words."""
        return self._write("words", {"partials": partials}, WORDS, ["word"], output)

    def merge_pairs(
        self, partials: Sequence[Path], words: Staged, output: Output, options: CorpusOptions
    ) -> int:
        """Write how often each word and target co-occur; see ``LocalEngine.merge_pairs``."""
        views, query = {"partials": partials}, _ALL_PAIRS if options.all_pairs else _PAIRS
        if options.min_count > 1:
            views["words"] = words.parts()
            query = f"SELECT * FROM ({query}) WHERE word IN (SELECT word FROM words)"
            query += " AND target IN (SELECT word FROM words)" if options.all_pairs else ""
        return self._write("pairs", views, query, ["word", "target"], output)

    def _write(
        self,
        what: str,
        views: Mapping[str, Sequence[Path]],
        query: str,
        order: list[str],
        output: Output,
    ) -> int:
        """Write the rows of a query. Each task writes one sorted file. Return the number of rows.

        ``views`` gives the files of each table in the query. The progress line shows ``what``.
        """

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from pyspark import TaskContext

            context = TaskContext.get()
            name = f"part-{context.partitionId() if context else 0:05}"
            yield pa.record_batch({"n": pa.array([output.write_part(name, batches)], pa.int64())})

        def written() -> int:
            for name, files in views.items():
                self._read(files).createOrReplaceTempView(name)
            rows = self._spark.sql(query).sortWithinPartitions(order)
            return sum(row["n"] for row in rows.mapInArrow(write, "n long").collect())

        name = f"merge {what} of {output.constants['corpus']}"
        with one_line_losses(), progress(name, "tasks of the stage") as update:
            return self._run(written, update)

    def _run(self, work: Callable[[], _Result], update: Callable[[int, int], None]) -> _Result:
        """Run ``work`` in a thread. Call ``update(finished tasks, all tasks)`` until it ends.

        Raises ``Interrupted`` if no task starts for ``PATIENCE_S`` seconds, probably because no
        machine has the resources that a task needs.
        """
        since, is_idle = time.monotonic(), False

        def report() -> None:
            nonlocal since, is_idle
            n_done, n_all, n_active = running_tasks(self._spark)
            update(n_done, n_all)
            if n_done or n_active or not n_all:
                since = time.monotonic()
            elif time.monotonic() - since > PATIENCE_S:
                is_idle = True
                stop_jobs(self._spark)

        try:
            return watched(work, report=report, cancel=partial(stop_jobs, self._spark))
        except Exception as e:
            if not is_idle:
                raise
            fix = "is a worker free and as large as an executor? See docs/cluster.md"
            raise Interrupted("Spark", f"started no task for {PATIENCE_S:.0f} s", fix) from e

    def _read(self, files: Sequence[Path]) -> DataFrame:
        """Read files, each as often as it is listed. Spark alone would read each file only once."""
        times = Counter(files)
        layers = []
        for n in range(max(times.values())):
            # Without `file://` a cluster may look for the path in HDFS.
            paths = [f"file://{file.resolve()}" for file, k in times.items() if k > n]
            layers.append(self._spark.read.parquet(*paths))
        return reduce(DataFrame.unionByName, layers)


def _count_on_executor(shard: str, job: ShardJob) -> ShardLedger | str:
    """Count a shard. Return its ledger, or this machine's name if the warehouse is missing here."""
    return job.count(shard) if Path(job.directory).is_dir() else socket.gethostname()
