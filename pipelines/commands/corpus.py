"""`plumbline corpus ...`: count, list and make corpora, and compute how their words lean."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.pipelines.command.base import Command, Context, Done, On, Row, planned
from plumbline.pipelines.command.fields import (
    CorpusName,
    InputFile,
    InputPath,
    OutputDirectory,
    OutputFile,
    Shards,
)
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.remote_files import describe
from plumbline.warehouse.input.shards import expand_shards
from plumbline.warehouse.options import Seed, part
from plumbline.warehouse.storage.store import Store

#: Columns of `corpus` to print after a count and in the list of corpora.
_SHOWN = (
    *("corpus", "n_shards", "n_documents", "n_rejected", "n_tokens", "n_kept_tokens"),
    *("n_words", "n_words_kept", "n_pairs"),
)
_LISTED = (
    *("corpus", "rule", "window_tokens", "targets", "n_shards", "n_shards_failed"),
    *("n_documents", "n_kept_tokens"),
)
_OF_SHARD = ("shard", "status", "n_documents", "n_rejected", "error")
#: What to do about shards that failed.
REPAIR = "repair them, or leave them out, and count the corpus again"
#: Maximum number of shards to print in a terminal.
_MOST = 100


class Count(CorpusName, CorpusOptions, Command):
    """Count words and their co-occurrences with target words.

    Shards are counted in parallel, one process per core, or on Spark with --master. A process
    that reaches --memory-gb writes partial counts to disk and continues, so counts stay exact.

    Reads JSON lines and Parquet from disk, s3://, gs://, az://, https:// and hf://datasets/
    (docs/corpora.md). After an interruption, run the same command again to resume: finished
    shards are not counted again. Shards that you no longer name are removed from the corpus.

    Example: plumbline corpus count 'novels/*.jsonl.zst' --corpus novels --rule pairs
    """

    makes_warehouse = True

    shards: Shards
    master: Annotated[
        str | None, Field(description="Count on this Spark master, such as spark://host:7077.")
    ] = None

    def check(self) -> None:
        _ = expand_shards(self.shards), self.listed

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Yield the size of each shard, the size of all, and where they would be counted."""
        from plumbline.jobs.counting.local_engine import n_processes
        from plumbline.jobs.ingest.count_corpus import on_spark, refuse_other_settings

        if store is not None:
            refuse_other_settings(store, self.corpus, self)
        shards, n_bytes = expand_shards(self.shards), 0
        for path in shards:
            file = describe(path)
            size = file.n_bytes if file else 0
            n_bytes += size
            yield planned(str(path), "to count", size, "bytes")
        yield planned(self.corpus, "bytes to count", n_bytes, "bytes", f"{len(shards)} shards")
        if on_spark(self.master):
            yield planned("Spark", "counts", None, "", self.master or "master from its settings")
        else:
            n = n_processes([*map(str, shards)])
            yield planned("this machine", "processes", n, "", f"up to {self.memory_gb:g} GB each")

    def run(self, context: Context) -> Done:
        from plumbline.jobs.ingest.count_corpus import ShardsFailed, count_corpus

        options, shards = part(CorpusOptions, self), expand_shards(self.shards)
        failed, following = None, self.line("corpus associate")
        try:
            counted = count_corpus(context.store, self.corpus, shards, options, master=self.master)
        except ShardsFailed as e:
            counted, failed = e.counted, e
            following = f"plumbline corpus list {shlex.quote(self.corpus)}"
        row = {name: counted.row[name] for name in _SHOWN}
        return Done(
            rows=[{**row, "changed": counted.changed}],
            said=[] if counted.changed else ["Up to date: nothing was counted again."],
            next=following,
            **self.rows_of("corpus"),
            failed=failed,
        )


class Associate(CorpusName, Command):
    """Compute each word's PMI with each target word, and its delta (lean) for pairs such as she/he.

    --targets adds another word list without counting again. The corpus must have been counted
    with --targets all, or with targets that include the list's words.

    For a word list such as gendered, computes the mean of its pairs' deltas (`gendered`) and their
    sum (`gendered-sum`: UnStereoEval, App. A, Eq. 4). --word-weights toxicity.csv adds
    `gendered-sum-toxicity`: each word's sum times its weight. Words without a weight have no
    weighted sum. Without --word-weights, weighted sums from an earlier run are deleted.

    If deltas change, results that depend on them (MaxPMI, samples of seed words) are deleted. A
    warning says how many, and how to make those results again. Adding a list deletes nothing.

    Example: plumbline corpus associate --corpus novels
    """

    targets: Annotated[str, Field(description="Word list to add: its name, or a TOML file.")] = ""
    word_weights: Annotated[
        InputFile | None,
        Field(description="CSV file (columns word,weight): also compute weighted sums."),
    ] = None

    def run(self, context: Context) -> Done:
        from plumbline.jobs.association.associations import associate

        done = associate(context.store, self.corpus, self.targets, self.word_weights)
        return Done(
            rows=[{"corpus": self.corpus, **done}],
            next=self.line("why WORD"),
            **self.rows_of("word_delta"),
        )


class CorpusList(Command):
    """List the corpora and their totals, or the shards of one corpus.

    With NAME, the exit status is 3 if a shard failed and isn't in the counts.

    Example: plumbline corpus list novels
    """

    reads = "corpus"
    records = False

    corpus: Annotated[
        str,
        Field(description="Corpus whose shards to list; default: list all corpora."),
        On(positional=True, metavar="NAME"),
    ] = ""

    def run(self, context: Context) -> Done:
        return self._shards(context.store) if self.corpus else self._corpora(context.store)

    def _corpora(self, store: Store) -> Done:
        corpora = sorted(store.read("corpus").to_pylist(), key=lambda row: str(row["corpus"]))
        return Done(
            rows=[{name: row[name] for name in _LISTED} for row in corpora],
            said=[] if corpora else ["No corpus is counted yet"],
            next="" if corpora else "plumbline corpus count SHARDS... --corpus NAME",
            query="FROM corpus ORDER BY corpus",
        )

    def _shards(self, store: Store) -> Done:
        from plumbline.jobs.counting.corpus_lookup import corpus_row

        n_shards = corpus_row(store, self.corpus)["n_shards"]
        shards = store.read("corpus_shard", corpus=self.corpus).to_pylist()
        rows = [{name: row[name] for name in _OF_SHARD} for row in shards]
        rows.sort(key=lambda row: row["status"] == "counted")
        failed = None
        if n_failed := len(rows) - n_shards:
            problem = f"{n_failed:,} of {len(rows):,} shards failed and are not in the counts"
            failed = BadInput(f"corpus {self.corpus!r}", problem, REPAIR)
        return Done(rows=rows, most=_MOST, next="plumbline warehouse check", failed=failed)


class Pack(Command):
    """Pack text files into one compressed file (a shard). Each text file becomes a document.

    The source of a document is its folder. If there are at most 100 files, all in one
    folder, each file is a source. `corpus count --source-field meta.file` always uses the file.

    Files must be UTF-8. Unusable files are left out; table `reject` says why.

    Example: plumbline corpus pack letters --out letters.jsonl.zst
    """

    makes_warehouse = True

    texts: Annotated[
        tuple[str, ...],
        Field(min_length=1, description="Text files, or directories of .txt files."),
        On(positional=True),
    ]
    out: Annotated[OutputFile, Field(description="File to write (.jsonl.zst).")]

    def run(self, context: Context) -> Done:
        from plumbline.jobs.ingest.pack import pack_files, source_kind, text_files

        files = text_files([Path(text) for text in self.texts])
        done = pack_files(context.store, files, self.out, context.run_id)
        name = shlex.quote(self.out.name.partition(".")[0])
        counts = {"n_packed": done.n_packed, "n_rejected": len(done.rejects)}
        return Done(
            rows=[{"n_files": len(files), **counts, "n_bytes": done.n_bytes}],
            said=[f"The source of each document is its {source_kind(files.values())}"],
            files=(str(self.out),),
            next=f"plumbline corpus count {shlex.quote(str(self.out))} --corpus {name}",
        )


class CorpusImport(CorpusName, Command):
    """Import published word statistics (counts and she/he deltas) as a corpus without text.

    `why`, `benchmark constrain` and `corpus words` work on such a corpus. If the same folder has
    pmi_by_gendered_expressions.csv, its co-occurrences are imported too.

    Example: plumbline corpus import pmi_file_w_counts.csv --corpus pile
    """

    makes_warehouse = True

    file: Annotated[
        InputPath,
        Field(description="UnStereoEval's pmi_file_w_counts.csv, or the directory that holds it."),
        On(positional=True),
    ]

    def run(self, context: Context) -> Done:
        from plumbline.jobs.ingest.released_statistics import import_statistics

        done = import_statistics(context.store, self.corpus, self.file, context.run_id)
        return Done(
            rows=[done],
            next=self.line("benchmark constrain --benchmark winobias"),
            **self.rows_of("word_delta"),
        )


class Demo(Command):
    """Write a made-up corpus in which each word has a known lean towards she or he.

    The files are in the Pile's format, and the leans go to table `planted_word`. The same options
    always give the same documents.

    Example: plumbline corpus demo --out out/corpora --world swapped
    """

    makes_warehouse = True

    out: Annotated[OutputDirectory, Field(description="Directory for the files.")] = Path(
        "out/corpora"
    )
    tokens: Annotated[int, Field(ge=1, le=10**12, description="Number of words to write.")] = (
        3_000_000
    )
    seed: Annotated[Seed, Field(description="Random seed of the leans and the text.")] = 0
    world: Annotated[
        Literal["straight", "swapped"],
        Field(description="swapped: the same text as straight, with she and he exchanged."),
    ] = "straight"

    def run(self, context: Context) -> Done:
        from plumbline.eval_workers.pairs.closed_world_texts import WorldOptions, write_world
        from plumbline.eval_workers.pairs.closed_world_words import planted_rows

        how = WorldOptions(n_tokens=self.tokens, seed=self.seed, world=self.world)
        shards, n_documents, n_tokens = write_world(how, self.out)
        rows = planted_rows(how.name, how.seed, how.world)
        context.store.replace("planted_word", rows, {"corpus": how.name}, context.run_id)
        pattern = shlex.quote(str(self.out / f"{how.name}-*.jsonl.zst"))
        return Done(
            rows=[{"corpus": how.name, "n_documents": n_documents, "n_tokens": n_tokens}],
            files=tuple(map(str, shards)),
            next=f"plumbline corpus count {pattern} --corpus {how.name}",
            query="FROM planted_word WHERE corpus = $corpus ORDER BY word",
            params={"corpus": how.name},
        )
