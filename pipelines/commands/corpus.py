"""`plumbline corpus count`: words, and what stands near target words."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.jobs.options import CorpusOptions
from plumbline.pipelines.command.base import Command, Context, Done, On, Row, planned
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.options import STRICT, part

if TYPE_CHECKING:
    from plumbline.jobs.counting.corpus import CountRequest
    from plumbline.warehouse.storage.store import Store

#: What counting writes.
_TABLES = ("word_count", "pair_count", "corpus_shard", "corpus", "reject")
#: What the row of `corpus` says of a count, for people.
_SHOWN = (
    *("corpus", "n_shards", "n_documents", "n_rejected", "n_tokens", "n_kept_tokens"),
    *("n_words", "n_words_kept", "n_pairs"),
)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Count(CorpusOptions, Command):
    """Count words and their co-occurrences with target words.

    Counts are exact whatever --memory: a process that reaches it writes partial counts and empties
    its tables. Shards are counted side by side, one process per core, or on Spark with --master.

    Reads JSON lines, Parquet, WET and, with --tokenizer, Megatron's .bin and OLMo's .npy, on a disk
    or at s3://, gs://, az://, https:// and hf://datasets/ (docs/corpora.md). After an interruption
    run the same command again to resume: no finished shard is counted twice. The corpus becomes
    exactly these shards.

    Example: plumbline corpus count 'novels/*.jsonl.zst' --corpus novels --rule pairs
    """

    makes_warehouse = True
    deployable = True

    shards: Annotated[
        tuple[str, ...],
        Field(min_length=1, description="Shards: paths, addresses or quoted globs."),
        On(positional=True),
    ]
    corpus: Annotated[str, Field(min_length=1, description="Name of the corpus.")]
    master: Annotated[
        str | None,
        Field(description="Count on Spark, such as spark://host:7077; default: here."),
    ] = None

    def request(self) -> CountRequest:
        """The shards that there are, and how they are counted."""
        from plumbline.jobs.counting.corpus import CountRequest
        from plumbline.warehouse.shards import expand_shards

        how = vars(part(CorpusOptions, self))
        return CountRequest(self.corpus, tuple(expand_shards(self.shards)), **how)

    def check(self) -> None:
        """Raise for shards, word lists and languages that there are not."""
        self.request().options()

    def plan(self, store: Store | None) -> Iterator[Row]:
        """The bytes of each shard, whether it is counted already, and where it would count.

        Shards are read where others were counted in the same way: their content tells.
        """
        from plumbline.jobs.counting.corpus import on_spark, refuse_other_settings
        from plumbline.jobs.counting.local import n_processes
        from plumbline.jobs.counting.partials import partials_directory

        request, where = self.request(), None
        if store is not None:
            refuse_other_settings(store, request)
            where = partials_directory(store, request.options(), create=False)
        shards = [_shard_row(path, where) for path in request.shards]
        yield from shards
        left = [row for row in shards if row["what"] == _LEFT]
        yield planned(self.corpus, "shards to count", len(left), f"of {len(shards)}")
        yield planned(self.corpus, "bytes to count", sum(row["amount"] for row in left), "bytes")
        if on_spark(self.master):
            yield planned("Spark", "counts", None, "", self.master or "as its settings say")
        else:
            n = n_processes([row["subject"] for row in left])
            yield planned("this machine", "processes", n, "", f"up to {self.memory} of memory each")

    def run(self, context: Context) -> Done:
        """Count what isn't counted yet, and merge."""
        from plumbline.jobs.counting.corpus import count_corpus

        counted = count_corpus(context.store, self.request(), master=self.master)
        row, again = counted.row, f"plumbline corpus associate --corpus {shlex.quote(self.corpus)}"
        said = [] if counted.changed else ["Up to date: nothing was counted again."]
        if counted.dropped:
            lists = ", ".join(counted.dropped)
            said.append(f"Dropped: the added word lists {lists}; again: {again} --targets LIST")
        return Done(
            rows=[{**{name: row[name] for name in _SHOWN}, "changed": counted.changed}],
            said=said,
            wrote=_TABLES if counted.changed else (),
            next=again,
            query="FROM corpus WHERE corpus = $corpus",
            params={"corpus": self.corpus},
        )


_LEFT = "to count"


def _shard_row(path: Path, where: Path | None) -> Row:
    from plumbline.jobs.counting.partials import is_counted
    from plumbline.warehouse.sources import describe

    found = describe(path)
    size = found.n_bytes if found else 0
    try:
        what = "counted already" if where and is_counted(where, path) else _LEFT
    except BadInput as e:
        return planned(str(path), "can't be read", size, "bytes", str(e))
    return planned(str(path), what, size, "bytes")
