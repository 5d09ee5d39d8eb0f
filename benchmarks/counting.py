"""Time counting a shard on one core: Plumbline, polars, Spark SQL, spaCy, and reading alone.

All work on the same bytes in the same process, one after the other in every round, so that changes
in the machine's speed affect all of them. The figure is the median of the rounds.
"""

from __future__ import annotations

import io
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "1")

WINDOW = 10


@dataclass(frozen=True)
class Timing:
    """A way to count: its name, its median seconds, and the megabytes of JSON that it read."""

    name: str
    seconds: float
    megabytes: float

    @property
    def megabytes_per_second(self) -> float:
        """Throughput in MB of decompressed JSON per second."""
        return self.megabytes / self.seconds


def read_only(shard: Path) -> None:
    """Only decompress and parse every record, as any counter in Python has to."""
    for _ in texts_of(shard):
        pass


def texts_of(shard: Path) -> list[str]:
    import orjson
    import zstandard

    with (
        shard.open("rb") as raw,
        zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as stream,
    ):
        return [orjson.loads(line)["text"] for line in io.BufferedReader(stream, 1 << 20)]


def with_polars(shard: Path, targets: tuple[str, ...], stop_words: frozenset[str]) -> None:
    """Count words and target pairs with polars; a regular expression replaces the token rules."""
    import polars as pl

    dropped = sorted(stop_words - set(targets))
    tokens = (
        pl.DataFrame({"text": texts_of(shard)})
        .lazy()
        .with_row_index("document")
        .select(
            "document", pl.col("text").str.to_lowercase().str.extract_all(r"[a-z]+").alias("word")
        )
        .explode("word")
        .filter(pl.col("word").is_not_null() & ~pl.col("word").is_in(dropped))
        .collect()
    )
    tokens.group_by("word").len()
    is_target = pl.col("word").is_in(list(targets))
    parts = []
    for distance in range(1, WINDOW):
        near = tokens.lazy().with_columns(
            other=pl.col("word").shift(distance), same=pl.col("document").shift(distance)
        )
        near = near.filter(pl.col("document") == pl.col("same"))
        ahead = near.filter(is_target).select(word="other", target="word")
        behind = near.filter(pl.col("other").is_in(list(targets))).select(
            word="word", target="other"
        )
        parts += [ahead, behind]
    pl.concat(parts).group_by("word", "target").len().collect()


def with_spacy(texts: list[str]) -> None:
    """Only tokenise, with spaCy's English tokenizer."""
    import spacy

    nlp = spacy.blank("en")
    nlp.max_length = max(map(len, texts)) + 1
    for text in texts:
        nlp.make_doc(text)


def median_seconds(
    work: list[Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Return the median seconds of each piece of work over interleaved rounds, by ``clock``."""
    seconds: list[list[float]] = [[] for _ in work]
    for _ in range(rounds):
        for kept, step in zip(seconds, work, strict=True):
            start = clock()
            step()
            kept.append(clock() - start)
    return [statistics.median(s) for s in seconds]


def run(shard: Path, rounds: int = 5) -> tuple[list[Timing], int]:
    """Return the timings on one `.jsonl.zst` shard, ours first, and its kept tokens.

    A first run, which is not timed, starts Spark's session and compiles code.
    """
    from benchmarks.spark_peer import with_spark
    from plumbline.jobs.counting.shard import count_shard
    from plumbline.jobs.kernel.corpus_options import CorpusOptions
    from plumbline.jobs.kernel.tokens.language_tables import stop_words
    from plumbline.jobs.kernel.tokens.tokenizer import Targets
    from plumbline.jobs.spark.spark_session import spark_session, stop_session
    from plumbline.warehouse import wordlists

    targets, options = Targets(wordlists.load("gendered").targets), CorpusOptions(evidence=False)
    counted = partial(count_shard, shard, targets, options, lambda kind, table: None)
    kept = counted().n_kept_tokens  # also compiles
    texts = texts_of(shard)
    megabytes = _decompressed(shard) / 1e6
    sample = texts[: max(1, len(texts) // 10)]
    share = sum(map(len, sample)) / sum(map(len, texts))
    stops = frozenset(stop_words())
    dropped = sorted(stops - set(targets.words))
    with tempfile.TemporaryDirectory() as directory:
        lines = Path(directory) / "a.jsonl"
        lines.write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
        session = spark_session("local[1]")
        session.conf.set("spark.sql.shuffle.partitions", "1")
        session.conf.set("spark.sql.adaptive.enabled", "false")
        with_spark(session, lines, targets.words, dropped)
        work: dict[str, tuple[Callable[[], object], float]] = {
            "plumbline: shard to counts": (counted, 1.0),
            "decompress and parse only": (lambda: read_only(shard), 1.0),
            "polars: counts, simple tokens": (
                lambda: with_polars(shard, targets.words, stops),
                1.0,
            ),
            "Spark SQL: counts, simple tokens": (
                lambda: with_spark(session, lines, targets.words, dropped),
                1.0,
            ),
            "spaCy: tokens only": (lambda: with_spacy(sample), share),
        }
        seconds = median_seconds([step for step, _ in work.values()], rounds)
        stop_session()
    parts = [part * megabytes for _, part in work.values()]
    return [Timing(*t) for t in zip(work, seconds, parts, strict=True)], kept


def _decompressed(shard: Path) -> int:
    from plumbline.warehouse.input.shards import lines

    return sum(len(line) + 1 for line in lines(shard))
