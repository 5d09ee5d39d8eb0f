"""Measure how much disk space the kept documents of a shard take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.shards import joined

#: How often the shard repeats all real text, to be about as large as a shard of the Pile.
TIMES = 16


def bytes_per_token(shards: Sequence[Path], directory: Path) -> float:
    """Count one large shard. Return the bytes of its kept documents per kept token."""
    from plumbline.jobs.counting.partials import ShardJob, token_files
    from plumbline.jobs.kernel.corpus_options import CorpusOptions
    from plumbline.jobs.kernel.tokens.tokenizer import Targets
    from plumbline.warehouse import wordlists

    kept = directory / "kept"
    kept.mkdir()
    shard = joined([*shards] * TIMES, directory / "large.jsonl.zst")
    targets = Targets(wordlists.load("gendered").targets)
    counted = ShardJob(str(kept), targets, CorpusOptions()).count(str(shard))
    files = [file for file, _ in token_files(kept, counted.fingerprint)]
    return sum(file.stat().st_size for file in files) / counted.n_kept_tokens
