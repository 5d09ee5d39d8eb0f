"""`plumbline corpus split`, `filter`, `audit`, `pack`, `import` and `demo`: texts to count."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.jobs.corpus_options import Copies
from plumbline.pipelines.command.base import Command, Context, Done, On, Row
from plumbline.pipelines.command.fields import InputPath, OutputDirectory, OutputFile, Seed
from plumbline.pipelines.commands._corpus import (
    Argument,
    CorpusName,
    Number,
    Several,
    Shards,
    lookup_rows,
    shard_row,
)
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.text.progress import progress

if TYPE_CHECKING:
    from plumbline.warehouse.storage.store import Store


#: Columns printed for the parts of an audit.
_CHANGE = ("change_nats", "change_nats_low", "change_nats_high", "q")
_PREDICTED = ("predicted_nats", "predicted_nats_low", "predicted_nats_high")
_AUDITED = {
    "word": ("subject", "delta_before_nats", "delta_after_nats", *_CHANGE, "q_turn", *_PREDICTED),
    "group": ("subject", "n_before", "n_after", *_CHANGE),
    "source": ("subject", "n_before", "n_after"),
}


def _shards_in(directory: Path) -> str:
    return shlex.quote(f"{directory}/*.jsonl.zst")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Split(Command):
    """Cut shards into smaller ones, so that any number of cores can count them.

    Lines stay byte for byte and in order, rejected ones too. After an interruption run the same
    command again to resume: no finished shard is cut twice.

    Example: plumbline corpus split 'pile/*.jsonl.zst' --out blocks --block-mb 64
    """

    opens_warehouse = False
    without = ("warehouse",)

    shards: Shards
    out: Annotated[OutputDirectory, Field(description="Directory for the blocks.")]
    block_mb: Annotated[
        float, Field(ge=1e-6, le=1e6, description="Decompressed size of a block in MB.")
    ] = 64.0

    def run(self, context: Context) -> Done:
        from plumbline.jobs.ingest.split import split_shards
        from plumbline.warehouse.input.shards import expand_shards

        shards, n_bytes = expand_shards(self.shards), round(self.block_mb * 1_000_000)
        with progress("split", "shards") as update:
            done = split_shards(shards, self.out, n_bytes, progress=update)
        names = ("source", "n_lines", "n_bytes")
        return Done(
            rows=[
                {name: getattr(source, name) for name in names} | {"n_blocks": len(source.blocks)}
                for source in done.sources
            ],
            said=[f"{done.n_kept:,} of {len(done.sources):,} were cut already"],
            files=(str(self.out),),
            next=f"plumbline corpus count {_shards_in(self.out)} --corpus NAME",
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Filter(CorpusName, Command):
    """Write the documents of a counted corpus that a rule keeps, as shards of their own.

    Example: plumbline corpus filter --corpus novels --copies once --out novels-once
    """

    records = False

    out: Annotated[OutputDirectory, Field(description="Directory for the shards.")]
    copies: Annotated[Copies, Field(description="Copies of a document.")] = "keep"
    source: Annotated[Several, Field(description="Keep these sources only; repeatable.")] = ()
    without_source: Annotated[
        Several, Field(description="Leave out these sources; repeatable.")
    ] = ()

    def plan(self, store: Store | None) -> Iterator[Row]:
        return lookup_rows(store, (self.corpus,))

    def run(self, context: Context) -> Done:
        from plumbline.jobs.evidence.subset import SubsetRule, write_subset

        rule = SubsetRule(self.copies, self.source, self.without_source)
        with progress("filter", "shards") as update:
            done = write_subset(context.store, self.corpus, rule, self.out, update)
        counts = {"n_documents": done.n_documents, "n_kept": done.n_kept}
        return Done(
            rows=[{"corpus": self.corpus, **counts, "n_shards": len(done.shards)}],
            files=(str(self.out),),
            next=f"plumbline corpus count {_shards_in(self.out)} --corpus NAME",
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Audit(Command):
    """Audit a filter or deduplication: its effect on a text's leans, and on a model.

    BEFORE is a counted corpus. AFTER is another one, or shards with the documents that a tool kept
    (JSON lines or Parquet of datatrove, Dolma or NeMo Curator): documents are matched by id, else
    by text. Intervals of the change are over documents, or over sources if there are ten or more.

    The change of each word's preference is predicted if `intervene run` fitted a response on
    BEFORE, and a study by retraining trusts the method (`reproduce attribution`).

    Example: plumbline corpus audit novels 'kept/*.jsonl.gz' --removed 'removed/*.jsonl.gz'
    """

    reads = "corpus"
    deployable = True

    before: Annotated[Argument, Field(description="The corpus before.")]
    after: Annotated[
        tuple[str, ...],
        Field(min_length=1, description="A corpus, or shards, of the documents kept."),
        On(positional=True),
    ]
    removed: Annotated[
        Several,
        Field(description="Shards of the documents removed; repeatable. Default: all not kept."),
    ] = ()
    model_from: Annotated[
        str,
        Field(
            description="Study, or STUDY:BENCHMARK, of the fitted response; default: the only one."
        ),
    ] = ""
    contrast: Annotated[str, Field(min_length=1, description="Pair such as she/he.")] = "she/he"
    min_pairs: Annotated[
        Number,
        Field(description="Co-occurrences that a word needs on each side, before and after."),
    ] = 5
    n: Annotated[int, Field(ge=0, le=10**9, description="Words, groups and sources to show.")] = 8

    def plan(self, store: Store | None) -> Iterator[Row]:
        """The documents of BEFORE, and of AFTER if it is a corpus, or the bytes of its shards."""
        from plumbline.warehouse.input.shards import expand_shards

        yield from lookup_rows(store, (self.before,))
        assert store is not None, "this command makes no warehouse"
        if self.after[0] in store.read("corpus")["corpus"].to_pylist():
            yield from lookup_rows(store, self.after[:1])
            return
        for path in expand_shards([*self.after, *self.removed]):
            yield {**shard_row(path, None), "what": "to match"}

    def run(self, context: Context) -> Done:
        from plumbline.jobs.evidence.curation.curation_audit import audit
        from plumbline.pipelines.report.rows import Rows
        from plumbline.pipelines.report.sections.compare_corpora import audit_section, audited

        arguments = (self.removed, self.contrast, self.min_pairs, self.model_from)
        with progress("audit", "shards") as update:
            done = audit(context.store, self.before, self.after, context.run_id, *arguments, update)
        rows, said = Rows(done.rows), list(audit_section(Rows(done.rows), 0).intro)
        if n := done.curation.n_changed:
            said.insert(1, f"{n:,} kept documents have another text; their old text counts.")
        which = "is" if done.response else "isn't"
        said.append(f"What it would do to a model {which} predicted: {done.basis}")
        return Done(
            rows=[
                {name: row[name] for name in names}
                for part, names in _AUDITED.items()
                for row in audited(rows, part, self.n)
            ],
            said=said,
            wrote=("corpus_audit",),
            next=f"plumbline why WORD --corpus {shlex.quote(self.before)}",
            query="FROM corpus_audit WHERE text_before = $before AND text_after = $after "
            "ORDER BY part, q, subject",
            params={"before": self.before, "after": done.after},
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Pack(Command):
    """Make one shard of text files, each file a document.

    A document's source is its folder; if all are in one folder of up to 100 files, its file. The
    file is in `meta.file`, too: `corpus count --source-field meta.file`.

    Files must be UTF-8 or in --encoding. Files that can't be used are left out; `reject` has the
    reasons, with a likely encoding of a file that is not UTF-8.

    Example: plumbline corpus pack letters --out letters.jsonl.zst
    """

    makes_warehouse = True

    texts: Annotated[
        tuple[str, ...],
        Field(min_length=1, description="Directories of .txt files, or files."),
        On(positional=True),
    ]
    out: Annotated[OutputFile, Field(description="Shard to write, a .jsonl.zst.")]
    encoding: Annotated[
        str, Field(description="Encoding of files that are not UTF-8, such as cp1252.")
    ] = ""

    def check(self) -> None:
        """Raise for an unknown encoding."""
        from plumbline.jobs.ingest.pack import check_encoding

        if self.encoding:
            check_encoding(self.encoding)

    def run(self, context: Context) -> Done:
        from plumbline.jobs.ingest.pack import FIX, pack_files, source_kind, text_files

        files = text_files([Path(text) for text in self.texts])
        done = pack_files(context.store, files, self.out, context.run_id, self.encoding)
        counts = {"n_packed": done.n_packed, "n_rejected": len(done.rejects)}
        said = [f"The source of each document is its {source_kind(files.values())}"]
        if done.n_recoded:
            said.append(f"{done.n_recoded:,} files aren't UTF-8 and were read as {self.encoding}")
        for first in done.rejects[:1]:
            why = f"{first['source_file']}: {first['reason']} ({FIX})"
            said.append(f"Warning: left out {len(done.rejects):,} files; the first: {why}")
        return Done(
            rows=[{"n_files": len(files), **counts, "n_bytes": done.n_bytes}],
            said=said,
            wrote=("reject",) if done.rejects else (),
            files=(str(self.out),),
            next=f"plumbline pipeline --corpus {shlex.quote(str(self.out))} --model train:small",
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CorpusImport(CorpusName, Command):
    """Import published word statistics: counts and she/he delta of words, without any text.

    `why`, `benchmark constrain` and `corpus words` work on such a corpus. It has co-occurrences, as
    a counted one, if the release's pmi_by_gendered_expressions.csv is in the same folder.

    Example: plumbline corpus import pmi_file_w_counts.csv --corpus pile
    """

    makes_warehouse = True

    file: Annotated[
        InputPath,
        Field(description="UnStereoEval's released table, or a directory that holds it."),
        On(positional=True),
    ]

    def run(self, context: Context) -> Done:
        from plumbline.jobs.ingest.released_statistics import OF_COUNTS, import_statistics

        done = import_statistics(context.store, self.corpus, self.file, context.run_id)
        with_counts = OF_COUNTS if done.n_counted is not None else ()
        return Done(
            rows=[asdict(done)],
            wrote=("word_count", "word_delta", "corpus", "reject", *with_counts),
            next=self.line("benchmark constrain --benchmark winobias"),
            **self.rows_of("word_delta"),
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Demo(Command):
    """Write Pile-format shards in which each word's lean towards she or he is planted.

    The leans go to table `planted_word`. The same options write the same documents.

    Example: plumbline corpus demo --out out/corpora --world swapped
    """

    makes_warehouse = True
    deployable = True

    out: Annotated[OutputDirectory, Field(description="Directory of the shards.")] = Path(
        "out/corpora"
    )
    tokens: Annotated[int, Field(ge=1, le=10**12, description="Words to write.")] = 3_000_000
    seed: Annotated[Seed, Field(description="Seed of leans and text.")] = 0
    world: Annotated[
        Literal["straight", "swapped", "mixed"],
        Field(description="straight; swapped: she and he exchanged; mixed: in half of it."),
    ] = "straight"

    def run(self, context: Context) -> Done:
        from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import (
            WorldOptions,
            write_recorded_world,
        )

        how = WorldOptions(n_tokens=self.tokens, seed=self.seed, world=self.world)
        done = write_recorded_world(context.store, how, self.out, context.run_id)
        pattern = shlex.quote(str(self.out / f"{how.name}-*.jsonl.zst"))
        counts = {"n_documents": done.n_documents, "n_tokens": done.n_tokens}
        return Done(
            rows=[{"corpus": how.name, **counts, "reused": done.reused}],
            wrote=("planted_word",),
            files=tuple(map(str, done.shards)),
            next=f"plumbline corpus count {pattern} --corpus {how.name}",
            query="FROM planted_word WHERE corpus = $corpus ORDER BY word",
            params={"corpus": how.name},
        )
