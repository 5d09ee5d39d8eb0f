"""Measure how words, pairs and files grow with the text, to estimate larger corpora."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Grown:
    """Sizes of a part of the text: MB of JSON, kept tokens, words, pair rows and MB of files."""

    megabytes: float
    n_kept: int
    n_words: int
    n_pair_rows: int
    file_megabytes: float


def run(shards: Sequence[Path], parts: int = 5) -> list[Grown]:
    """Count all documents, a half, a quarter, ... of them; the smallest part comes first.

    Documents are taken in turn from every shard, so that each part is a sample of the whole.
    """
    from plumbline.warehouse.input.shards import lines

    files = [list(lines(shard)) for shard in shards]
    mixed = [file[k] for k in range(max(map(len, files))) for file in files if k < len(file)]
    return [_count(mixed[: len(mixed) >> k]) for k in reversed(range(parts))]


def _count(records: list[bytes]) -> Grown:
    from plumbline.jobs.counting.partials import ShardJob, partial_files
    from plumbline.jobs.kernel.corpus_options import CorpusOptions
    from plumbline.jobs.kernel.tokens.tokenizer import Targets
    from plumbline.warehouse import wordlists

    targets = Targets(wordlists.load("gendered").targets)
    with tempfile.TemporaryDirectory() as directory:
        shard = Path(directory) / "a.jsonl"
        shard.write_bytes(b"".join(line.rstrip(b"\n") + b"\n" for line in records))
        done = ShardJob(directory, targets, CorpusOptions(evidence=False)).count(str(shard))
        rows, size = {}, 0
        for kind in ("words", "pairs"):
            (file,) = partial_files(Path(directory), done.fingerprint, kind)
            rows[kind], size = _rows(file), size + file.stat().st_size
        megabytes = shard.stat().st_size / 1e6
    return Grown(megabytes, done.n_kept_tokens, rows["words"], rows["pairs"], size / 1e6)


def _rows(file: Path) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_metadata(file).num_rows)


def exponent(small: tuple[float, float], large: tuple[float, float]) -> float:
    """Return b of y ~ x^b through two points (x, y).

    >>> exponent((1.0, 3.0), (4.0, 6.0))
    0.5
    """
    return math.log(large[1] / small[1]) / math.log(large[0] / small[0])
