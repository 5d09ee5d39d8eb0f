"""Counting on Spark: one task per shard, and one shuffle that sums."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from plumbline.jobs.counting.merge import Merge
from plumbline.jobs.counting.partials import Ledger, Progress, ShardJob
from plumbline.jobs.spark.session import losses_named, spark_session, stop_jobs, tasks_done
from plumbline.jobs.spark.watch import watched
from plumbline.warehouse.errors import UsageProblem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkEngine:
    """Counts and sums on Spark; what each machine needs is in docs/cluster.md.

    Losses of processes are ``Interrupted``.
    """

    def __init__(self, master: str | None = None) -> None:
        with losses_named():
            self._spark = spark_session(master)

    def count(self, shards: Sequence[str], job: ShardJob, progress: Progress) -> list[Ledger]:
        """Count the shards; the ledgers come in any order.

        Raises ``UsageProblem`` naming the executors that do not see the warehouse.
        """
        tasks = self._spark.sparkContext.parallelize(shards, len(shards))
        counted = tasks.map(lambda shard: _count_there(shard, job))
        with losses_named():
            outcomes = watched(
                counted.collect,
                report=lambda: progress(tasks_done(self._spark), len(shards)),
                cancel=lambda: stop_jobs(self._spark),
            )
        if blind := sorted({x for x in outcomes if isinstance(x, str)}):
            fix = "it must lie on a file system that every executor sees under the same path"
            raise UsageProblem(f"directory {job.where}", f"not there on {', '.join(blind)}", fix)
        return [x for x in outcomes if isinstance(x, Ledger)]

    def merge(self, merge: Merge) -> int:
        """Write the rows of a merge; returns how many."""
        for name, files in merge.views.items():
            self._read(files).createOrReplaceTempView(name)
        rows = self._spark.sql(merge.query).sortWithinPartitions(*merge.order)

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from pyspark import TaskContext

            context = TaskContext.get()
            name = f"part-{context.partitionId() if context else 0:05}"
            yield pa.record_batch({"n": pa.array([merge.write_part(name, batches)], pa.int64())})

        written = rows.mapInArrow(write, "n long")
        with losses_named():
            parts = watched(written.collect, cancel=lambda: stop_jobs(self._spark))
        return sum(row["n"] for row in parts)

    def _read(self, files: Sequence[Path]) -> DataFrame:
        """The rows of files, of each as often as it is named; Spark reads one named twice once."""
        times = Counter(files)
        layers = []
        for n in range(max(times.values())):
            # With the scheme: a cluster's paths without one may be those of its HDFS.
            paths = [f"file://{file.resolve()}" for file, k in times.items() if k > n]
            layers.append(self._spark.read.parquet(*paths))
        first, *others = layers
        for layer in others:
            first = first.unionByName(layer)
        return first


def _count_there(shard: str, job: ShardJob) -> Ledger | str:
    """The ledger of a shard; on a machine that does not see the warehouse nothing but its name."""
    return job.count(shard) if Path(job.where).is_dir() else socket.gethostname()
