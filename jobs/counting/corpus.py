"""Counting a corpus on Spark: one task a shard, one shuffle to sum, written through the store."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.jobs.counting.partials import Ledger, count_shard, directory, parts
from plumbline.jobs.counting.prune import Pruned, RareWords, only_words_of
from plumbline.jobs.counting.watch import watched
from plumbline.jobs.counting.writer import sole_writer
from plumbline.jobs.kernel.counter import CountOptions, warm_up
from plumbline.jobs.kernel.growth import LEAST_MEMORY
from plumbline.jobs.kernel.tables import TOKENIZER_VERSION
from plumbline.jobs.spark.session import losses_named, spark_session, stop_jobs, tasks_done
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.storage.store import Staged, Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: In place of a word list: every kept word is a target.
ALL = "all"

#: Tables computed from a corpus's counts; they go when the counts change.
DERIVED = ("word_association", "word_delta", "pair_association", "vocabulary", "seed_word")

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class CountRequest:
    """A corpus to count.

    Attributes:
        corpus: name of the corpus.
        shards: files, see ``plumbline.warehouse.shards.expand_shards``.
        targets: name of a word list, or the path of one's TOML file, or ``all``: every kept word is
            a target (stop words that count are those of the list ``gendered``).
        rule, window: see ``plumbline.jobs.kernel.windows``.
        replace: count anew under other settings than the corpus has.
        memory_bytes: what the process of a task may use. Counts do not depend on it.
        min_count: words counted fewer times in the whole corpus are left out of its tables, but for
            those of the word list; 1 keeps all. Another one needs no ``replace``, for it takes no
            counting.
    """

    corpus: str
    shards: tuple[Path, ...]
    targets: str = "gendered"
    rule: str = "pairs"
    window: int = 10
    replace: bool = False
    memory_bytes: int = 2 << 30
    min_count: int = 1

    def __post_init__(self) -> None:
        if self.memory_bytes < LEAST_MEMORY:
            least = f"a task needs at least {LEAST_MEMORY >> 20}m"
            raise UsageProblem(f"memory {self.memory_bytes >> 20}m", least)
        if self.min_count < 1:
            raise UsageProblem(f"min-count {self.min_count}", "must be 1 or more; 1 keeps all")

    @property
    def all_pairs(self) -> bool:
        """Whether every word is a target."""
        return self.targets == ALL

    def word_list(self) -> wordlists.WordList:
        """The word list. Raises ``UsageProblem`` for an unknown one."""
        return wordlists.load("gendered" if self.all_pairs else self.targets)

    def options(self) -> CountOptions:
        """The kernel's options. Raises ``UsageProblem`` for unknown lists and rules."""
        return CountOptions(self.word_list().targets, self.rule, self.window, self.all_pairs)


@dataclass(frozen=True)
class Counted:
    """Outcome: the row of ``corpus``, its ledgers, and whether anything had changed."""

    row: dict[str, Any]
    ledgers: tuple[Ledger, ...]
    changed: bool


def count_corpus(
    store: Store,
    request: CountRequest,
    *,
    master: str | None = None,
    progress: Progress | None = None,
) -> Counted:
    """Count a corpus: the tables word_count, pair_count, corpus_shard, reject and corpus.

    Shards counted before under the same settings, by this or a killed command, are not counted
    again; the corpus becomes exactly the shards given. Shards that cannot be read to their end
    are in the ledger as failed and in no count. Another ``min_count`` than the corpus has is a
    change like another shard: what was counted is merged again.

    Args:
        master: Spark master in place of the configured one.
        progress: called with (shards done, shards) about five times a second.

    Raises:
        UsageProblem: the corpus exists with other settings (and not ``request.replace``), or
            another command writes it.
        BadInput: after everything else is written, when shards have failed; names them.
        Interrupted: stopped from the keyboard, or too many processes died; the same command goes
            on.
    """
    options = request.options()
    config = {f.name: getattr(request, f.name) for f in fields(request) if f.name != "shards"}
    config |= {"shards": list(map(str, request.shards))}
    with sole_writer(store, request.corpus):
        _check_binding(store, request)
        with recorded(store, "corpus count", config) as run:
            # Compiled here once, so that no worker has to.
            warm_up()
            with losses_named():
                spark = spark_session(master)
                ledgers = _count_shards(spark, store, request, options, progress)
                counted = watched(
                    lambda: _write(spark, store, request, options, ledgers, run),
                    cancel=lambda: stop_jobs(spark),
                )
            _tell_failed(counted.ledgers)
    return counted


def _tell_failed(ledgers: Sequence[Ledger]) -> None:
    """Raise ``BadInput`` naming the shards that can't be read, if there are any."""
    failed = [x for x in ledgers if x.status == "failed"]
    if failed:
        more = f" and {len(failed) - 1} more (table `corpus_shard`)" if len(failed) > 1 else ""
        raise BadInput(f"{failed[0].error}{more}", "", "not in the counts; the rest is")


def _check_binding(store: Store, request: CountRequest) -> None:
    rows = store.read("corpus", corpus=request.corpus).to_pylist()
    if not rows or request.replace:
        return
    wanted = {**_settings(request), "source": "counted"}
    differ = [f"{k} {rows[0][k]}" for k, v in wanted.items() if rows[0][k] != v]
    if differ:
        fix = "give another --corpus, or --replace to count it anew"
        raise UsageProblem(f"corpus {request.corpus!r}", f"exists with {', '.join(differ)}", fix)


def _settings(request: CountRequest) -> dict[str, Any]:
    word_list = request.word_list()
    return {
        "rule": request.rule,
        "window": request.window,
        "targets": ALL if request.all_pairs else word_list.name,
        "targets_hash": word_list.hash,
        "tokenizer": TOKENIZER_VERSION,
    }


def _count_shards(
    spark: SparkSession,
    store: Store,
    request: CountRequest,
    options: CountOptions,
    progress: Progress | None,
) -> list[Ledger]:
    where, fields_ = str(directory(store, options).resolve()), asdict(options)
    memory_bytes = request.memory_bytes
    shards = [str(path) for path in request.shards]
    homes = {str(path.resolve()): str(path) for path in request.shards}
    task = spark.sparkContext.parallelize(list(homes), len(homes)).map(
        lambda shard: _count_there(shard, where, fields_, memory_bytes)
    )

    def report() -> None:
        if progress:
            progress(tasks_done(spark), len(homes))

    outcomes: list[Ledger | str] = watched(
        task.collect, report=report, cancel=lambda: stop_jobs(spark)
    )
    if blind := sorted({x for x in outcomes if isinstance(x, str)}):
        fix = "it must lie on a file system that every executor sees under the same path"
        raise UsageProblem(f"warehouse {store.root}", f"not there on {', '.join(blind)}", fix)
    found = {homes[x.shard]: x for x in outcomes if isinstance(x, Ledger)}
    return [replace(found[name], shard=name) for name in shards if name in found]


def _count_there(
    shard: str, where: str, options: Mapping[str, Any], memory_bytes: int
) -> Ledger | str:
    """``count_shard``; on a machine that does not see the warehouse nothing but its name."""
    if not Path(where).is_dir():
        return socket.gethostname()
    return count_shard(shard, where, options, memory_bytes)


def _write(
    spark: SparkSession,
    store: Store,
    request: CountRequest,
    options: CountOptions,
    ledgers: list[Ledger],
    run_id: str,
) -> Counted:
    partition = {"corpus": request.corpus}
    good = [x for x in ledgers if x.status == "counted"]
    wanted = request.min_count, {(x.shard, x.fingerprint, x.status) for x in ledgers}
    changed = request.replace or _state(store, request.corpus) != wanted
    if not changed:
        return Counted(store.read("corpus", **partition).to_pylist()[0], tuple(ledgers), False)
    for table in DERIVED:
        store.drop(table, partition)
    store.drop("reject", {"stage": "import", "subject": request.corpus})
    # The row that says the corpus is there goes first and comes back last.
    store.drop("corpus", partition)
    where = directory(store, options)
    words, pairs = (store.stage(t, partition, run_id) for t in ("word_count", "pair_count"))
    rare = RareWords(request.min_count, options.targets)
    n_kept = _merge(spark, where, good, "words", request, words, rare.drop)
    pruned = rare.dropped()
    # Targets stay, unless every word is one.
    columns = ("word", "target") if request.all_pairs else ("word",)
    common = partial(only_words_of, words, columns) if pruned.n_words else None
    _merge(spark, where, good, "pairs", request, pairs, common)
    for staged in (words, pairs):
        store.commit(staged)
    shard_rows = [{**asdict(x), "corpus": request.corpus, "run_id": run_id} for x in ledgers]
    store.replace("corpus_shard", shard_rows, partition, run_id)
    rejects = _rejects(where, good, request.corpus, run_id)
    store.replace("reject", rejects, {"stage": "count", "subject": request.corpus}, run_id)
    listed = request.word_list().rows(request.corpus)
    store.replace("word_list", listed, partition, run_id)
    row = _corpus_row(request, ledgers, n_kept, pruned, run_id)
    store.publish("corpus", [row], unit="corpus", run_id=run_id)
    return Counted(row, tuple(ledgers), True)


def _state(store: Store, corpus: str) -> tuple[int, set[tuple[str, str, str]]] | None:
    """min_count and shards of the corpus as written, None when it is not there or not complete."""
    written = store.read("corpus", corpus=corpus).to_pylist()
    if not written:
        return None
    rows = store.read("corpus_shard", corpus=corpus).to_pylist()
    return written[0]["min_count"], {(r["shard"], r["fingerprint"], r["status"]) for r in rows}


def _merge(
    spark: SparkSession,
    where: Path,
    ledgers: Sequence[Ledger],
    kind: str,
    request: CountRequest,
    staged: Staged,
    prune: Callable[[DataFrame], DataFrame] | None = None,
) -> int:
    """Sum the partials of one kind into a staged partition; returns the number of rows.

    ``prune`` takes the sums and gives those that are to be written.
    """
    from pyspark.sql import functions as f

    frames = _layers(spark, where, ledgers, kind)
    if not frames:
        return 0
    merged = frames[0]
    for frame in frames[1:]:
        merged = merged.unionByName(frame)
    keys = ["word"] if kind == "words" else ["word", "target"]
    value = "n_word" if kind == "words" else "n_pair"
    if kind == "pairs" and request.all_pairs:
        # A shard names the two words of a pair in any order.
        one, other = f.least("word", "target"), f.greatest("word", "target")
        merged = merged.select(one.alias("word"), other.alias("target"), "n_pair")
    summed = merged.groupBy(*keys).agg(f.sum(value).alias(value))
    summed = prune(summed) if prune else summed
    if kind == "pairs" and request.all_pairs:
        # Counted once a pair; in the table each of the two is a target of the other.
        turned = summed.where("word <> target").select("target", "word", "n_pair")
        summed = summed.union(turned)
    summed = summed.sortWithinPartitions(*keys)
    summed = summed.withColumn("corpus", f.lit(request.corpus))
    if kind == "pairs":
        summed = summed.withColumn("rule", f.lit(request.rule))
        summed = summed.withColumn("window", f.lit(request.window).cast("long"))

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        name = f"part-{context.partitionId() if context else 0:05}"
        yield pa.record_batch({"n": pa.array([staged.write_part(name, batches)], pa.int64())})

    return sum(row["n"] for row in summed.mapInArrow(write, "n long").collect())


def _layers(
    spark: SparkSession, where: Path, ledgers: Sequence[Ledger], kind: str
) -> list[DataFrame]:
    """The partials as frames; shards of equal content share a partial and are read as often."""
    copies = Counter(x.fingerprint for x in ledgers)
    layers = []
    for n in range(max(copies.values(), default=0)):
        # With the scheme: a cluster's paths without one may be those of its HDFS.
        marks = [mark for mark, k in copies.items() if k > n]
        files = [file for mark in marks for file in parts(where, mark, kind)]
        paths = [f"file://{file.resolve()}" for file in files]
        layers.append(spark.read.parquet(*paths))
    return layers


def _rejects(
    where: Path, ledgers: Sequence[Ledger], corpus: str, run_id: str
) -> list[dict[str, Any]]:
    fixed = {"stage": "count", "subject": corpus, "run_id": run_id}
    return [
        {**fixed, "source_file": x.shard, **row}
        for x in ledgers
        if x.n_rejected
        for file in parts(where, x.fingerprint, "rejects")
        for row in pq.read_table(file).to_pylist()
    ]


def _corpus_row(
    request: CountRequest, ledgers: Sequence[Ledger], n_kept: int, pruned: Pruned, run_id: str
) -> dict[str, Any]:
    totals = ("n_documents", "n_rejected", "n_tokens", "n_kept_tokens", "n_pairs")
    n_failed = sum(x.status == "failed" for x in ledgers)
    return {
        "corpus": request.corpus,
        "source": "counted",
        **_settings(request),
        "n_shards": len(ledgers) - n_failed,
        "n_shards_failed": n_failed,
        **{name: sum(getattr(x, name) for x in ledgers) for name in totals},
        "n_words": n_kept + pruned.n_words,
        "min_count": request.min_count,
        "n_words_kept": n_kept,
        "n_tokens_pruned": pruned.n_tokens,
        "run_id": run_id,
    }
