"""Make corpora: pack text files, import published statistics, or write a closed world."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from plumbline.pipelines.command.base import Command, Context, Done, On
from plumbline.pipelines.command.fields import CorpusName, InputPath, OutputDirectory, OutputFile
from plumbline.warehouse.options import Seed


class Pack(Command):
    """Pack text files into one shard; each file becomes a document.

    A document's source is its folder, or its file if all files (up to 100) are in one folder. To
    always use the file: `corpus count --source-field meta.file`.

    Files must be UTF-8. Unusable files are left out; table `reject` says why.

    Example: plumbline corpus pack letters --out letters.jsonl.zst
    """

    makes_warehouse = True

    texts: Annotated[
        tuple[str, ...],
        Field(min_length=1, description="Directories of .txt files, or files."),
        On(positional=True),
    ]
    out: Annotated[OutputFile, Field(description="Shard to write (.jsonl.zst).")]

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

    `why`, `benchmark constrain` and `corpus words` work on such a corpus. If the folder also has
    pmi_by_gendered_expressions.csv, the corpus gets co-occurrences, as if it had been counted.

    Example: plumbline corpus import pmi_file_w_counts.csv --corpus pile
    """

    makes_warehouse = True

    file: Annotated[
        InputPath,
        Field(description="UnStereoEval's released table, or a directory that holds it."),
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
    """Write made-up Pile-format shards in which each word has a known lean towards she or he.

    The leans go to table `planted_word`. The same options always write the same documents.

    Example: plumbline corpus demo --out out/corpora --world swapped
    """

    makes_warehouse = True

    out: Annotated[OutputDirectory, Field(description="Directory for the shards.")] = Path(
        "out/corpora"
    )
    tokens: Annotated[int, Field(ge=1, le=10**12, description="Words to write.")] = 3_000_000
    seed: Annotated[Seed, Field(description="Seed of the leans and the text.")] = 0
    world: Annotated[
        Literal["straight", "swapped"],
        Field(description="straight, or swapped (she and he exchanged)."),
    ] = "straight"

    def run(self, context: Context) -> Done:
        from plumbline.eval_workers.pairs.closed_world_texts import WorldOptions, write_world
        from plumbline.eval_workers.pairs.closed_world_words import planted_rows

        how = WorldOptions(n_tokens=self.tokens, seed=self.seed, world=self.world)
        done = write_world(how, self.out)
        rows = planted_rows(how.name, how.seed, how.world)
        context.store.replace("planted_word", rows, {"corpus": how.name}, context.run_id)
        pattern = shlex.quote(str(self.out / f"{how.name}-*.jsonl.zst"))
        return Done(
            rows=[{"corpus": how.name, "n_documents": done.n_documents, "n_tokens": done.n_tokens}],
            files=tuple(map(str, done.shards)),
            next=f"plumbline corpus count {pattern} --corpus {how.name}",
            query="FROM planted_word WHERE corpus = $corpus ORDER BY word",
            params={"corpus": how.name},
        )
