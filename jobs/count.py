"""Counting a corpus on Spark: one task a shard, one shuffle to sum, written through the store."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.partial import Ledger, count_shard, directory, part
from jobs.session import losses_named, spark_session, stop_jobs, tasks_done
from jobs.sweep import CountOptions, warm_up
from jobs.tables import TOKENIZER_VERSION
from jobs.watch import watched
from warehouse import wordlists
from warehouse.errors import BadInput, UsageProblem
from warehouse.runs import recorded
from warehouse.store import Staged, Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Tables computed from a corpus's counts; they go when the counts change.
DERIVED = ("word_association", "word_delta", "pair_association")

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class CountRequest:
    """A corpus to count.

    Attributes:
        corpus: name of the corpus.
        shards: files, see ``warehouse.shards.expand_shards``.
        targets: name of a word list, or the path of one's TOML file.
        rule, window: see ``jobs.windows``.
        replace: count anew under other settings than the corpus has.
    """

    corpus: str
    shards: tuple[Path, ...]
    targets: str = "gendered"
    rule: str = "pairs"
    window: int = 10
    replace: bool = False

    def options(self) -> CountOptions:
        """The kernel's options. Raises ``UsageProblem`` for unknown lists and rules."""
        return CountOptions(wordlists.load(self.targets).targets, self.rule, self.window)


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
    are in the ledger as failed and in no count.

    Args:
        master: Spark master in place of the configured one.
        progress: called with (shards done, shards) about five times a second.

    Raises:
        UsageProblem: the corpus exists with other settings (and not ``request.replace``).
        BadInput: after everything else is written, when shards have failed; names them.
        Interrupted: stopped from the keyboard, or too many processes died; the same command goes
            on.
    """
    options = request.options()
    _check_binding(store, request)
    config = {f.name: getattr(request, f.name) for f in fields(request) if f.name != "shards"}
    with recorded(
        store, "corpus count", {**config, "shards": list(map(str, request.shards))}
    ) as run:
        # Compiled here once, so that no worker has to.
        warm_up()
        spark = spark_session(master)
        with losses_named():
            ledgers = _count_shards(spark, store, request, options, progress)
            counted = watched(
                lambda: _write(spark, store, request, options, ledgers, run),
                cancel=lambda: stop_jobs(spark),
            )
        failed = [x for x in counted.ledgers if x.status == "failed"]
        if failed:
            more = f" and {len(failed) - 1} more (table `corpus_shard`)" if len(failed) > 1 else ""
            raise BadInput(f"{failed[0].error}{more}", "", "not in the counts; the rest is")
    return counted


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
    word_list = wordlists.load(request.targets)
    return {
        "rule": request.rule,
        "window": request.window,
        "targets": word_list.name,
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
    shards = [str(path) for path in request.shards]
    homes = {str(path.resolve()): str(path) for path in request.shards}
    task = spark.sparkContext.parallelize(list(homes), len(homes)).map(
        lambda shard: _count_there(shard, where, fields_)
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


def _count_there(shard: str, where: str, options: Mapping[str, Any]) -> Ledger | str:
    """``count_shard``; on a machine that does not see the warehouse nothing but its name."""
    return count_shard(shard, where, options) if Path(where).is_dir() else socket.gethostname()


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
    changed = request.replace or _state(store, request.corpus) != {
        (x.shard, x.fingerprint, x.status) for x in ledgers
    }
    if not changed:
        return Counted(store.read("corpus", **partition).to_pylist()[0], tuple(ledgers), False)
    for table in DERIVED:
        store.drop(table, partition)
    # The row that says the corpus is there goes first and comes back last.
    store.drop("corpus", partition)
    where = directory(store, options)
    n_words = 0
    for table, kind in (("word_count", "words"), ("pair_count", "pairs")):
        staged = store.stage(table, partition, run_id)
        rows = _merge(spark, where, good, kind, request, staged)
        n_words = rows if table == "word_count" else n_words
        store.commit(staged)
    shard_rows = [{**asdict(x), "corpus": request.corpus, "run_id": run_id} for x in ledgers]
    store.replace("corpus_shard", shard_rows, partition, run_id)
    rejects = _rejects(where, good, request.corpus, run_id)
    store.replace("reject", rejects, {"stage": "count", "subject": request.corpus}, run_id)
    listed = wordlists.load(request.targets).rows(request.corpus)
    store.replace("word_list", listed, partition, run_id)
    row = _corpus_row(request, ledgers, n_words, run_id)
    store.publish("corpus", [row], unit="corpus", run_id=run_id)
    return Counted(row, tuple(ledgers), True)


def _state(store: Store, corpus: str) -> set[tuple[str, str, str]] | None:
    """Shards of the corpus as written, None when it is not there or not complete."""
    if store.read("corpus", corpus=corpus).num_rows == 0:
        return None
    rows = store.read("corpus_shard", corpus=corpus).to_pylist()
    return {(r["shard"], r["fingerprint"], r["status"]) for r in rows}


def _merge(
    spark: SparkSession,
    where: Path,
    ledgers: Sequence[Ledger],
    kind: str,
    request: CountRequest,
    staged: Staged,
) -> int:
    """Sum the partials of one kind into a staged partition; returns the number of rows."""
    from pyspark.sql import functions as f

    frames = _layers(spark, where, ledgers, kind)
    if not frames:
        return 0
    merged = frames[0]
    for frame in frames[1:]:
        merged = merged.unionByName(frame)
    keys = ["word"] if kind == "words" else ["word", "target"]
    value = "n_word" if kind == "words" else "n_pair"
    summed = merged.groupBy(*keys).agg(f.sum(value).alias(value)).sortWithinPartitions(*keys)
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
        files = (part(where, mark, kind).resolve() for mark, k in copies.items() if k > n)
        paths = [f"file://{file}" for file in files]
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
        for row in pq.read_table(part(where, x.fingerprint, "rejects")).to_pylist()
    ]


def _corpus_row(
    request: CountRequest, ledgers: Sequence[Ledger], n_words: int, run_id: str
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
        "n_words": n_words,
        "run_id": run_id,
    }
