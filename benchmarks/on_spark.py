"""The same shards counted by the kernel alone and through Spark, on one core and on two."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class OnSpark:
    """Seconds of one way to count the shards, and of the merge into tables where there is one."""

    name: str
    n_cores: int
    seconds: float
    merge_seconds: float


def run(shards: Sequence[Path]) -> tuple[list[OnSpark], int]:
    """Time the counting of all shards three ways, and give their kept tokens.

    All shards are read once before. Spark's session and its Python workers are started first, as in
    the middle of a long job. The kernel alone runs before and after the others: the median of both.
    """
    from plumbline.jobs.counting.shard import sweep_shard
    from plumbline.jobs.kernel import CountOptions
    from plumbline.warehouse import wordlists

    options = CountOptions(wordlists.load("gendered").targets)
    for shard in shards:
        shard.read_bytes()

    def alone() -> tuple[float, int]:
        started = time.perf_counter()
        kept = sum(sweep_shard(shard, options).n_kept_tokens for shard in shards)
        return time.perf_counter() - started, kept

    sweep_shard(shards[0], options)
    before, kept = alone()
    spark = [_through_spark(shards, n_cores) for n_cores in (1, 2)]
    seconds = statistics.median([before, alone()[0]])
    return [OnSpark("kernel alone", 1, seconds, 0.0), *spark], kept


def _through_spark(shards: Sequence[Path], n_cores: int) -> OnSpark:
    from plumbline.jobs.counting.corpus import CountRequest, count_corpus
    from plumbline.jobs.spark.session import spark_session, stop_session
    from plumbline.warehouse.storage.store import Store

    with tempfile.TemporaryDirectory() as directory:
        spark = spark_session(f"local[{n_cores}]")
        spark.sparkContext.parallelize(range(n_cores), n_cores).map(_loaded).collect()
        counted_at = [0.0]

        def progress(n_done: int, n_all: int) -> None:
            if n_done < n_all:
                counted_at[0] = time.perf_counter()

        store = Store.open(Path(directory) / "warehouse")
        request = CountRequest("bench", tuple(shards), memory_bytes=2 << 30)
        started = time.perf_counter()
        count_corpus(store, request, master=f"local[{n_cores}]", progress=progress)
        ended = time.perf_counter()
        stop_session()
    seconds = counted_at[0] - started
    return OnSpark(f"Spark, {n_cores} core(s)", n_cores, seconds, ended - counted_at[0])


def _loaded(n: int) -> int:
    """Load the kernel into a worker."""
    from plumbline.jobs.kernel import warm_up

    warm_up()
    time.sleep(2.0)  # so that every core's worker gets one of these
    return n
