"""`plumbline corpus count`: words, and what stands near target words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.jobs.options import CorpusOptions
from plumbline.pipelines.command.base import Command, Context, Done, On
from plumbline.warehouse.options import STRICT, part

if TYPE_CHECKING:
    from plumbline.jobs.counting.corpus import CountRequest

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
    corpus: Annotated[str, Field(description="Name of the corpus.")]
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

    def run(self, context: Context) -> Done:
        """Count what isn't counted yet, and merge."""
        from plumbline.jobs.counting.corpus import count_corpus

        counted = count_corpus(context.store, self.request(), master=self.master)
        row, again = counted.row, f"plumbline corpus associate --corpus {self.corpus}"
        lists = ", ".join(counted.dropped)
        said = [f"Dropped: the added word lists {lists}; again: {again} --targets LIST"]
        return Done(
            rows=[{**{name: row[name] for name in _SHOWN}, "changed": counted.changed}],
            said=said if counted.dropped else (),
            wrote=("word_count", "pair_count", "corpus_shard", "corpus", "reject"),
            next=again,
            query="FROM corpus WHERE corpus = $corpus",
            params={"corpus": self.corpus},
        )
