"""Where the time of counting one shard goes."""

from __future__ import annotations

from pathlib import Path

from benchmarks.counting import Timing, median_seconds
from plumbline.jobs.counting.corpus_options import CorpusOptions
from plumbline.jobs.counting.shard import line_blocks
from plumbline.jobs.kernel.counter import Counter
from plumbline.jobs.kernel.memory import SLACK
from plumbline.jobs.kernel.tokens.tokenizer import Targets


def stages(shard: Path, targets: Targets, rounds: int = 9) -> list[Timing]:
    """Median seconds of the parts of ``count_shard``, over interleaved rounds.

    The second pass over the same lines meets no new chunk or word, so the first less the second is
    the price of first sight.
    """
    blocks = [(buf[: end + SLACK].copy(), end) for buf, end in line_blocks(shard)]
    megabytes = sum(end for _, end in blocks) / 1e6
    counters = [Counter(targets, CorpusOptions(evidence=False))]

    def read() -> None:
        for _ in line_blocks(shard):
            pass

    def count() -> None:
        for buf, end in blocks:
            counters[-1].feed_lines(buf, end)

    def first() -> None:
        counters[:] = [Counter(targets, CorpusOptions(evidence=False))]
        count()

    first()
    work = {
        "decompress": read,
        "lines to counts, first pass": first,
        "lines to counts, second pass": count,
        "result tables": lambda: counters[-1].result(),
    }
    seconds = median_seconds(list(work.values()), rounds)
    return [Timing(name, s, megabytes) for name, s in zip(work, seconds, strict=True)]
