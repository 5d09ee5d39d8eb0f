"""Count shards in this process with a memory limit, and print its peak memory.

Only the process's own memory is measured, since pages of mapped files can be dropped at any time.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

from plumbline.jobs.counting.partials import ShardJob
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.jobs.kernel.counter import Counter, warm_up
from plumbline.jobs.kernel.tokens.tokenizer import Targets


def own_bytes() -> int:
    """Return the anonymous memory of this process in bytes (Linux)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) << 10


def main(where: str, targets: Targets, options: CorpusOptions, shards: list[str]) -> None:
    """Print seconds, the peak in bytes and each shard's ledger as JSON."""
    warm_up()
    Counter(targets, options, lambda kind, table: None).feed_texts(["tea nurse"])
    peak, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            peak[0] = max(peak[0], own_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    started = time.perf_counter()
    job = ShardJob(where, targets, options)
    ledgers = [job.count(shard) for shard in shards]
    seconds = time.perf_counter() - started
    done.set()
    watcher.join()
    found = {"seconds": seconds, "peak_bytes": peak[0], "ledgers": [asdict(x) for x in ledgers]}
    print(json.dumps(found))


if __name__ == "__main__":
    where, cap_mb, options, *shards = sys.argv[1:]
    given = json.loads(options)
    words = Targets(tuple(given.pop("words")))
    main(where, words, CorpusOptions(memory_gb=float(cap_mb) / 1024, **given), shards)
