"""Count a corpus: count its shards, add up their counts, and write the corpus's tables."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow.compute as pc
import pyarrow.parquet as pq

from plumbline.jobs.counting.corpus_lookup import writes_corpus
from plumbline.jobs.counting.local_engine import LocalEngine
from plumbline.jobs.counting.merge import Output
from plumbline.jobs.counting.partials import (
    TOTALS,
    ShardJob,
    ShardLedger,
    check_failed,
    partial_files,
    partials_directory,
)
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.jobs.kernel.counter import warm_up
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.place import staging
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import Update, progress

if TYPE_CHECKING:
    from plumbline.jobs.spark.engine import SparkEngine

#: Both engines write the same rows. ``LocalEngine`` describes their methods.
Engine: TypeAlias = "LocalEngine | SparkEngine"


def engine_of(store: Store, memory_bytes: int, master: str | None = None) -> Engine:
    """Return the Spark engine if :func:`on_spark` is true, else this machine's engine.

    ``memory_bytes`` is the memory limit of each process on this machine.
    """
    if not on_spark(master):
        return LocalEngine(staging(store.place), memory_bytes)
    from plumbline.jobs.spark.engine import SparkEngine

    return SparkEngine(master)


def on_spark(master: str | None) -> bool:
    """Return True if a master or Spark settings are given, or if spark-submit runs this process."""
    variables = ("PLUMBLINE_SPARK_CONF", "PYSPARK_GATEWAY_PORT")
    return bool(master or any(map(os.environ.get, variables)))


#: Columns of ``corpus`` that may change without ``replace``.
_CHANGEABLE = ("source_field", "language_file", "min_count")
_DEFAULTS = CorpusOptions()


@dataclass(frozen=True)
class Counted:
    """The result of counting: the row of ``corpus``, ledgers, and whether tables were changed."""

    row: dict[str, Any]
    ledgers: tuple[ShardLedger, ...]
    changed: bool


class ShardsFailed(BadInput):
    """Some shards can't be read. The other shards were counted: see ``counted``."""

    counted: Counted


@writes_corpus
def count_corpus(
    store: Store,
    corpus: str,
    shards: Sequence[Path],
    options: CorpusOptions = _DEFAULTS,
    *,
    master: str | None = None,
) -> Counted:
    """Count a corpus, and replace its rows in all tables of counts.

    Shards that were counted before with the same settings, even by a killed command, are not
    counted again. If the corpus exists, shards that aren't in ``shards`` are removed from it. A
    shard that can't be read to its end has status ``failed`` in ``corpus_shard`` and adds nothing
    to the counts. If only ``min_count`` has changed, the shards' counts are merged again. For
    ``master``, see :func:`on_spark`.

    Raises:
        UsageProblem: the corpus exists with other settings (unless ``options.replace`` is set), or
            another command is writing it.
        ShardsFailed: some shards can't be read. The other shards are counted and written first.
        BadInput: no document can be used. An existing corpus doesn't change.
        Interrupted: a process was killed, or a server can't be reached. Running the same command
            again resumes the count.
    """
    targets = options.listed
    config = asdict(options) | {"corpus": corpus, "shards": list(map(str, shards))}
    refuse_other_settings(store, corpus, options)
    with recorded(store, "corpus count", config) as run:
        where = partials_directory(store, targets, options)
        with progress(f"count {corpus}", "shards") as update:
            # Compile the kernel once, before other processes need it.
            warm_up()
            engine = engine_of(store, options.memory_bytes, master)
            attempts = str(staging(store.place).resolve())
            job = ShardJob(str(where.resolve()), targets, options, staging=attempts)
            ledgers = _count_shards(engine, shards, job, update)
        counted = _Merge(engine, store, corpus, options, where, ledgers, run).write()
        try:
            seen = f"`plumbline corpus list {shlex.quote(corpus)}` lists them"
            check_failed(counted.ledgers, f"left out of the counts; the rest is counted; {seen}")
        except BadInput as e:
            failed = ShardsFailed(*e.args)
            failed.counted = counted
            raise failed from None
    return counted


def refuse_other_settings(store: Store, corpus: str, options: CorpusOptions) -> None:
    """Raise ``UsageProblem`` if the corpus exists with other settings and may not be replaced."""
    rows = store.read("corpus", corpus=corpus).to_pylist()
    if not rows or options.replace:
        return
    settings = {**options.columns(), "source": "counted"}
    names = [name for name in settings if name not in _CHANGEABLE]
    if differ := [f"{name} {rows[0][name]}" for name in names if rows[0][name] != settings[name]]:
        fix = "give the corpus another name, or count it again with --replace"
        raise UsageProblem(f"corpus {corpus!r}", f"exists with {', '.join(differ)}", fix)


def _count_shards(
    engine: Engine, shards: Sequence[Path], job: ShardJob, update: Update
) -> list[ShardLedger]:
    """Count the shards. Return their ledgers in the order of ``shards``."""
    # Count a file once, even if it is listed under two names. Read it by a listed name: in Hugging
    # Face's cache, listed names are links to files whose names may lack the format's suffix.
    distinct = {path.resolve(): path for path in shards}
    paths = {str(path.absolute()): str(path) for path in distinct.values()}
    ledgers = {ledger.shard: ledger for ledger in engine.count(list(paths), job, update)}
    return [replace(ledgers[path], shard=name) for path, name in paths.items()]


@dataclass(frozen=True)
class _Merge:
    """Merges the partial counts of the shards and writes the tables of a corpus."""

    engine: Engine
    store: Store
    corpus: str
    options: CorpusOptions
    where: Path
    ledgers: Sequence[ShardLedger]
    run_id: str

    def write(self) -> Counted:
        """Write the tables, unless they hold these counts already and ``replace`` is not set."""
        store, options, ledgers = self.store, self.options, tuple(self.ledgers)
        key = {"corpus": self.corpus}
        before = store.read("corpus", **key).to_pylist()
        if before and not options.replace and self._is_as_written(before[0]):
            return Counted(before[0], ledgers, False)
        if before and not any(x.n_documents for x in ledgers):
            effect = f"corpus {self.corpus!r} stays as it was"
            check_failed(ledgers, effect)
            raise BadInput("the shards", "have no documents", effect)
        words = store.stage("word_count", key, self.run_id)
        of_words = Output(words, key, options.min_count, options.word_list.targets)
        partials = self._partials("words")
        n_words = self.engine.merge_words(partials, of_words) if partials else 0
        kept = [pq.read_table(part, columns=["n_word"])["n_word"] for part in words.parts()]
        n_kept, n_tokens = sum(map(len, kept)), sum(pc.sum(x).as_py() or 0 for x in kept)
        pairs = store.stage("pair_count", key, self.run_id)
        rule: dict[str, str | int] = {"rule": options.rule, "window_tokens": options.window}
        if partials := self._partials("pairs"):
            self.engine.merge_pairs(partials, words, Output(pairs, {**key, **rule}), options)
        rejects, listed = self._rejects(), options.word_list.rows(self.corpus)
        row = self._corpus_row(n_words, n_kept, n_tokens)
        with store.transaction(self.run_id, "corpus count"):
            of_import = {"stage": "import", "subject": self.corpus}
            store.replace("reject", [], of_import, self.run_id)
            store.commit(words)
            store.commit(pairs)
            shard_rows = [{**x.row(), **key, "run_id": self.run_id} for x in ledgers]
            store.replace("corpus_shard", shard_rows, key, self.run_id)
            of_rejects = {"stage": "count", "subject": self.corpus}
            store.replace("reject", rejects, of_rejects, self.run_id)
            store.replace("word_list", listed, key, self.run_id)
            store.publish("corpus", [row], unit="corpus", run_id=self.run_id)
        return Counted(row, ledgers, True)

    def _is_as_written(self, row: Mapping[str, Any]) -> bool:
        """Return True if the tables already have the counts of these shards and options."""
        columns = ("shard", "fingerprint", "status", "n_documents")
        written = self.store.read("corpus_shard", corpus=self.corpus).select(columns).to_pylist()
        shards = {tuple(getattr(x, name) for name in columns) for x in self.ledgers}
        settings = self.options.min_count, self.options.kept_source_field
        has_shards = {tuple(x.values()) for x in written} == shards
        return has_shards and (row["min_count"], row["source_field"]) == settings

    def _partials(self, kind: str) -> list[Path]:
        """List the files of a kind for all shards. Identical shards list the same files again."""
        digests = (x.fingerprint for x in self.ledgers if x.status == "counted")
        return [file for digest in digests for file in partial_files(self.where, digest, kind)]

    def _rejects(self) -> list[dict[str, Any]]:
        key = {"stage": "count", "subject": self.corpus, "run_id": self.run_id}
        return [
            {**key, "source_file": x.shard, **row}
            for x in self.ledgers
            if x.n_rejected
            for file in partial_files(self.where, x.fingerprint, "rejects")
            for row in pq.read_table(file).to_pylist()
        ]

    def _corpus_row(self, n_words: int, n_kept: int, n_tokens: int) -> dict[str, Any]:
        """Return the row of ``corpus``. ``n_kept`` words are kept and occur ``n_tokens`` times."""
        totals = {name: sum(getattr(x, name) for x in self.ledgers) for name in TOTALS[1:]}
        n_failed = sum(x.status == "failed" for x in self.ledgers)
        return {
            "corpus": self.corpus,
            "source": "counted",
            **self.options.columns(),
            "n_shards": len(self.ledgers) - n_failed,
            "n_shards_failed": n_failed,
            **totals,
            "n_words": n_words,
            "n_words_kept": n_kept,
            "n_tokens_pruned": totals["n_kept_tokens"] - n_tokens,
            "run_id": self.run_id,
        }
