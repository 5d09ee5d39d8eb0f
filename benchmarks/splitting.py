"""Cutting shards into blocks beside counting them, in processor time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.jobs.counting.shard import count_shard
from plumbline.jobs.ingest.split import split_shards
from plumbline.jobs.kernel import CountOptions
from plumbline.warehouse import wordlists

_BLOCK_BYTES = 64_000_000
_ROUNDS = 3


@dataclass(frozen=True)
class Split:
    """Megabytes of JSON, the processor seconds of both, and bytes of the blocks per byte."""

    megabytes: float
    splitting_s: float
    counting_s: float
    growth: float


def run(shards: Sequence[Path], directory: Path) -> Split:
    """Cut and count each shard, in turns; the least of three rounds counts."""
    options = CountOptions(wordlists.load("gendered").targets)

    def count() -> None:
        for shard in shards:
            count_shard(shard, options)

    count()  # compiles
    splits, counts = [], []
    for k in range(_ROUNDS):
        out = directory / f"blocks-{k}"
        splits.append(_seconds(lambda out=out: split_shards(shards, out, _BLOCK_BYTES)))
        counts.append(_seconds(count))
    n_bytes = sum(path.stat().st_size for path in out.glob("*.jsonl.zst"))
    growth = n_bytes / sum(path.stat().st_size for path in shards)
    done = split_shards(shards, out, _BLOCK_BYTES)
    n_json = sum(one.n_bytes for one in done.sources)
    return Split(n_json / 1e6, min(splits), min(counts), growth)


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
