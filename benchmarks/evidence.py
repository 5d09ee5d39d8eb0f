"""What the kept documents of a shard take, and how fast another word list is counted from them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.shards import joined

#: The list that is counted from the kept documents of a corpus counted with ``gendered``.
ADDED = "names"
#: How often the shard holds all real text: a shard of the Pile is about as large.
TIMES = 16


@dataclass(frozen=True)
class Outcome:
    """Bytes of kept documents per kept token, and kept tokens counted again in a second."""

    bytes_per_token: float
    tokens_per_second: float


def run(shards: Sequence[Path], directory: Path, rounds: int = 3) -> Outcome:
    """Count one large shard, then another list from its kept documents; median of the rounds."""
    from plumbline.jobs.counting.partials import ShardJob, token_files
    from plumbline.jobs.kernel.corpus_options import CorpusOptions
    from plumbline.jobs.kernel.tokens.tokenizer import Targets
    from plumbline.warehouse import wordlists

    own, added = (wordlists.load(name).targets for name in ("gendered", ADDED))
    kept, again = directory / "kept", directory / "again"
    kept.mkdir()
    shard = joined([*shards] * TIMES, directory / "large.jsonl.zst")
    counted = ShardJob(str(kept), Targets(own), CorpusOptions()).count(str(shard))
    files = [file for file, _ in token_files(kept, counted.fingerprint)]
    new = Targets(tuple(word for word in added if word not in own))
    seconds = []
    for n in range(rounds + 1):  # the first compiles
        out = again / str(n)
        out.mkdir(parents=True)
        start = time.perf_counter()
        for file in files:
            ShardJob(str(out), new, CorpusOptions(evidence=False), True).count(str(file))
        seconds.append(time.perf_counter() - start)
    n_kept = counted.n_kept_tokens
    size = sum(file.stat().st_size for file in files)
    return Outcome(size / n_kept, n_kept / statistics.median(seconds[1:]))
