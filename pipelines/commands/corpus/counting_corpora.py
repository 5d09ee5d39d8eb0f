"""Count corpora, compute the leans of their words, and list them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.pipelines.command.base import Command, Context, Done, On, Row, planned
from plumbline.pipelines.command.fields import CorpusName, InputFile, Shards
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.options import part

if TYPE_CHECKING:
    from pathlib import Path

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
#: Most shards to print in a terminal.
_MOST = 100
#: How a plan describes a shard without partial counts.
_TO_COUNT = "to count"


def _shard_row(path: Path, partials: Path | None) -> Row:
    """Return a shard's row in the plan of a count. ``partials``: directory of partial counts."""
    from plumbline.jobs.counting.partials import is_counted
    from plumbline.warehouse.input.remote_files import describe

    file = describe(path)
    size = file.n_bytes if file else 0
    try:
        state = "counted already" if partials and is_counted(partials, path) else _TO_COUNT
    except BadInput as e:
        return planned(str(path), "can't be read", size, "bytes", str(e))
    return planned(str(path), state, size, "bytes")


class Count(CorpusName, CorpusOptions, Command):
    """Count words and their co-occurrences with target words.

    Counts are exact with any --memory-gb: a process that reaches this limit writes partial counts
    and empties its tables. Shards are counted in parallel, one process per core, or on Spark with
    --master.

    Reads JSON lines and Parquet on a disk or at s3://, gs://, az://, https:// and hf://datasets/
    (docs/corpora.md). After an interruption, run the same command again to resume: no finished
    shard is counted twice. Shards that you no longer name are removed from the corpus.

    Example: plumbline corpus count 'novels/*.jsonl.zst' --corpus novels --rule pairs
    """

    makes_warehouse = True

    shards: Shards
    master: Annotated[
        str | None, Field(description="Spark master, such as spark://host:7077; default: none.")
    ] = None

    def existing_shards(self) -> list[Path]:
        """Return the paths of the shards. Raises if one is missing."""
        from plumbline.warehouse.input.shards import expand_shards

        return expand_shards(self.shards)

    def check(self) -> None:
        """Raise for missing shards and for unknown word lists and languages."""
        self.existing_shards()
        _ = self.listed

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Yield each shard's size, whether it is counted already, and where counting would run.

        Reads and hashes shards only if there are partial counts with the same options.
        """
        from plumbline.jobs.counting.local_engine import n_processes
        from plumbline.jobs.counting.partials import partials_directory
        from plumbline.jobs.ingest.count_corpus import on_spark, refuse_other_settings

        where = None
        if store is not None:
            refuse_other_settings(store, self.corpus, self)
            where = partials_directory(store, self.listed, part(CorpusOptions, self), create=False)
        shards = [_shard_row(path, where) for path in self.existing_shards()]
        yield from shards
        left = [row for row in shards if row["what"] == _TO_COUNT]
        yield planned(self.corpus, "shards to count", len(left), f"of {len(shards)}")
        yield planned(self.corpus, "bytes to count", sum(row["amount"] for row in left), "bytes")
        if on_spark(self.master):
            yield planned("Spark", "counts", None, "", self.master or "master from its settings")
        else:
            n = n_processes([row["subject"] for row in left])
            yield planned("this machine", "processes", n, "", f"up to {self.memory_gb:g} GB each")

    def run(self, context: Context) -> Done:
        from plumbline.jobs.ingest.count_corpus import count_corpus

        options, shards = part(CorpusOptions, self), self.existing_shards()
        counted = count_corpus(context.store, self.corpus, shards, options, master=self.master)
        row, again = counted.row, self.line("corpus associate")
        said = [] if counted.changed else ["Up to date: nothing was counted again."]
        return Done(
            rows=[{**{name: row[name] for name in _SHOWN}, "changed": counted.changed}],
            said=said,
            next=again,
            **self.rows_of("corpus"),
        )


class Associate(CorpusName, Command):
    """Compute PMI of every word with every target, and delta of every pair and list.

    --targets adds another word list to a corpus that was counted with --targets all, or whose
    targets include the list's words. Nothing is counted again.

    Each list gets the mean of its pairs' deltas (contrast `gendered`) and their sum
    (`gendered-sum`: UnStereoEval, App. A, Eq. 4). --word-weights toxicity.csv adds
    `gendered-sum-toxicity`: the sum times the word's weight, for words that have one. Without
    --word-weights, weighted sums from an earlier run are dropped.

    If deltas change, results made from them (MaxPMI of benchmarks, samples of seed words) are
    deleted; the command says how many, and how to make them again. Adding a list deletes none.

    Example: plumbline corpus associate --corpus novels
    """

    targets: Annotated[
        str, Field(description="Add a word list: its name, or the path of its TOML file.")
    ] = ""
    word_weights: Annotated[
        InputFile | None,
        Field(description="CSV file word,weight: also compute each sum times the word's weight."),
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
    """List the corpora and their totals, or the shards of a named corpus.

    The exit status is 3 if a shard of the named corpus failed and is not in the counts. To see
    which shards have changed since they were counted, run `corpus count SHARDS... --dry-run`.

    Example: plumbline corpus list novels
    """

    reads = "corpus"
    records = False

    corpus: Annotated[
        str, Field(description="A corpus; default: list all."), On(positional=True, metavar="NAME")
    ] = ""

    def run(self, context: Context) -> Done:
        return self._shards(context.store) if self.corpus else self._corpora(context.store)

    def _corpora(self, store: Store) -> Done:
        corpora = sorted(store.read("corpus").to_pylist(), key=lambda r: str(r["corpus"]))
        rows = [{name: row[name] for name in _LISTED} for row in corpora]
        said = [] if rows else ["No corpus is counted yet"]
        more = "" if rows else "plumbline corpus count SHARDS... --corpus NAME"
        return Done(rows=rows, said=said, next=more, query="FROM corpus ORDER BY corpus")

    def _shards(self, store: Store) -> Done:
        from plumbline.jobs.counting.corpus_lookup import corpus_row

        n_shards = corpus_row(store, self.corpus)["n_shards"]
        shards = store.read("corpus_shard", corpus=self.corpus).to_pylist()
        rows = [{name: row[name] for name in _OF_SHARD} for row in shards]
        # Failed shards come first.
        rows.sort(key=lambda row: row["status"] == "counted")
        failed = None
        if n_failed := len(rows) - n_shards:
            problem = f"{n_failed:,} of {len(rows):,} shards failed and are not in the counts"
            fix = "repair them, or leave them out, and count the corpus again"
            failed = BadInput(f"corpus {self.corpus!r}", problem, fix)
        next_command = "plumbline warehouse check"
        return Done(rows=rows, most=_MOST, next=next_command, failed=failed)
