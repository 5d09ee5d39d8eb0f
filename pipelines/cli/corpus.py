"""Commands on corpora and shards: ``plumbline corpus count``, ``pack``, ``import`` and others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plumbline.jobs.options import CorpusOptions
from plumbline.pipelines.cli.options import Warehouse
from plumbline.pipelines.requests import DEFAULT_WAREHOUSE
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.text.escape import terminal
from plumbline.warehouse.text.output import say
from plumbline.warehouse.text.progress import progress

if TYPE_CHECKING:
    from plumbline.warehouse.storage.store import Store


def split(
    shards: Annotated[list[str], typer.Argument(help="Shards: paths or quoted globs.")],
    out: Annotated[Path, typer.Option(help="Directory for the blocks.")],
    block_mb: Annotated[float, typer.Option(help="Decompressed size of a block in MB.")] = 64.0,
) -> None:
    """Cut shards into smaller ones, so that any number of cores can count them.

    Lines stay byte for byte and in order, rejected ones too. After an interruption run the same
    command again to resume: no finished shard is cut twice.

    Example: plumbline corpus split 'pile/*.jsonl.zst' --out blocks --block-mb 64
    """
    from plumbline.jobs.ingest.split import split_shards
    from plumbline.warehouse.shards import expand_shards

    with progress("split", "shards") as update:
        done = split_shards(
            expand_shards(shards), out, round(block_mb * 1_000_000), progress=update
        )
    n_blocks = sum(len(s.blocks) for s in done.sources)
    n_lines, n_bytes = (sum(getattr(s, k) for s in done.sources) for k in ("n_lines", "n_bytes"))
    say(
        f"{out}: {n_blocks:,} blocks of {len(done.sources)} shards ({done.n_kept} were there "
        f"already), {n_lines:,} lines, {n_bytes / 1e6:,.1f} MB decompressed; ledger split.json"
    )
    say(f"Next: plumbline corpus count '{out}/*.jsonl.zst' --corpus NAME")


def associate(
    corpus: Annotated[str, typer.Option(help="Name of the corpus.")],
    targets: Annotated[
        str, typer.Option(help="Add a word list: its name, or the path of its TOML file.")
    ] = "",
    word_weights: Annotated[
        Path | None, typer.Option(help="CSV word,weight: sums of lists with these weights, too.")
    ] = None,
    memory: Annotated[
        str, typer.Option(help="Most memory of each process that counts for --targets.")
    ] = CorpusOptions.memory,
    master: Annotated[
        str | None, typer.Option(help="Count for --targets on Spark; default: here.")
    ] = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Compute PMI of every word with every target, and delta of every pair and list.

    --targets answers for any other word list, without reading the text again: its co-occurrences
    are counted from the documents that counting kept, and are in `pair_count` from then on, until
    the corpus is counted again. After an interruption run the same command again to resume.

    Of a list there are the mean of its pairs' deltas (contrast `gendered`) and their sum
    (`gendered-sum`: UnStereoEval, App. A, Eq. 4). --word-weights toxicity.csv adds
    `gendered-sum-toxicity`, each word's sum times its weight; words without a weight have none.
    Without --word-weights such sums of an earlier run are dropped.

    MaxPMI of benchmarks and samples of seed words made from older deltas are dropped; the command
    says which, and what makes them again.

    Example: plumbline corpus associate --corpus novels --targets names
    """
    from plumbline.jobs.association.associations import associate as run
    from plumbline.jobs.association.target_lists import Recounting

    how = Recounting(master, CorpusOptions(memory=memory).memory_bytes)
    done = run(open_existing(warehouse), corpus, targets, how, word_weights)
    say(
        f"{corpus}: {done.n_associations:,} rows in `word_association`, {done.n_deltas:,} in "
        f"`word_delta`, {done.n_bounds:,} in `word_bound` ({len(done.contrasts)} contrasts, "
        f"{done.contrasts[0]} first)"
    )
    if done.rare:
        say(f"No rows: {', '.join(done.rare)} (not in the corpus, or rarer than its --min-count)")
    if done.n_weighted is not None:
        say(f"{word_weights}: weights of {done.n_weighted:,} words of the corpus")
    added = "word_list, pair_count, " if targets else ""
    say(f"Tables: {added}word_association, word_delta, word_bound")
    again = {
        "pair_association": f"plumbline constrain --benchmark NAME --corpus {corpus}",
        "seed_word": f"plumbline corpus words --corpus {corpus}",
    }
    if done.gone:
        say(f"No longer there: the contrasts {', '.join(done.gone)}")
    for table, of in done.dropped.items():
        if of:
            say(
                f"Dropped: {sum(of.values()):,} rows of `{table}` ({', '.join(of)}), of older "
                f"deltas; again, each contrast by --contrast: {again[table]}"
            )
    say(f"Next: plumbline why WORD --corpus {corpus}")


def compare(
    a: Annotated[str, typer.Argument(help="A corpus, or a source of one as CORPUS:SOURCE.")],
    b: Annotated[str, typer.Argument(help="What to compare it with: the same.")],
    contrast: Annotated[str, typer.Option(help="Pair such as she/he.")] = "she/he",
    min_pairs: Annotated[
        int, typer.Option(min=1, help="Co-occurrences that a word needs on each side in both.")
    ] = 5,
    n: Annotated[int, typer.Option("--n", min=0, help="Words to print.")] = 20,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Which words lean otherwise in another text, with intervals over documents.

    p is adjusted for all words compared. Documents that stand in both texts count as one document,
    so a corpus and what `corpus filter` left of it can be compared as well.

    Example: plumbline corpus compare novels films --n 10
    """
    from plumbline.jobs.evidence.change import compare as run
    from plumbline.pipelines.report.changes import change_section
    from plumbline.pipelines.report.plain import plain
    from plumbline.pipelines.report.rows import Rows

    store = open_existing(warehouse)
    with progress("compare", "shards") as update:
        done = run(store, a, b, contrast, min_pairs, update)
    both = f", {done.n_documents_both:,} of them in both" if done.n_documents_both else ""
    say(f"{a}: {done.n_documents_a:,} documents; {b}: {done.n_documents_b:,} documents{both}")
    if done.rows.num_rows:
        for line in plain(change_section(Rows(done.rows.to_pylist()), n)):
            say(line)
    else:
        say(f"No word has {min_pairs} co-occurrences on each side in both: try --min-pairs 1")
    say("Table: word_change")
    say("Next: plumbline report, or plumbline why WORD")


def filter_(
    corpus: Annotated[str, typer.Option(help="Name of the corpus.")],
    out: Annotated[Path, typer.Option(help="Directory for the shards.")],
    copies: Annotated[
        str, typer.Option(help="Copies of a document: keep, once, or near-once.")
    ] = "keep",
    source: Annotated[
        list[str] | None, typer.Option(help="Keep these sources only; repeatable.")
    ] = None,
    without_source: Annotated[
        list[str] | None, typer.Option(help="Leave out these sources; repeatable.")
    ] = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Write the documents of a counted corpus that a rule keeps, as shards of their own.

    Example: plumbline corpus filter --corpus novels --copies once --out novels-once
    """
    from plumbline.jobs.evidence.subset import Rule, write_subset

    rule = Rule(copies, tuple(source or ()), tuple(without_source or ()))
    with progress("filter", "shards") as update:
        done = write_subset(open_existing(warehouse), corpus, rule, out, update)
    say(f"{out}: {done.n_kept:,} of {done.n_documents:,} documents in {len(done.shards)} shards")
    say(f"Next: plumbline corpus count '{out}/*.jsonl.zst' --corpus NAME, then corpus compare")


def list_(warehouse: Warehouse = DEFAULT_WAREHOUSE) -> None:
    """List the corpora of the warehouse, how they were counted and their totals.

    Example: plumbline corpus list
    """
    from rich.console import Console
    from rich.table import Column, Table

    rows = sorted(open_existing(warehouse).read("corpus").to_pylist(), key=lambda r: r["corpus"])
    if not rows:
        say("No corpus yet. Next: plumbline corpus count SHARDS... --corpus NAME")
        return
    headings = ("corpus", "rule", "window", "targets", "shards", "failed", "documents")
    table = Table(*headings, Column("kept", no_wrap=True))
    for r in rows:
        names = ("corpus", "rule", "window", "targets", "n_shards", "n_shards_failed")
        totals = ("" if r[k] is None else f"{r[k]:,}" for k in ("n_documents", "n_kept_tokens"))
        table.add_row(*(terminal(str(r[k] if r[k] is not None else "")) for k in names), *totals)
    Console(markup=False, emoji=False).print(table)


def status(
    corpus: Annotated[str, typer.Option(help="Name of the corpus.")],
    shards: Annotated[
        list[str] | None, typer.Argument(help="Shards the corpus should hold; default: its own.")
    ] = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Show which shards are counted, failed, changed on disk, gone, new or left out.

    Example: plumbline corpus status --corpus novels 'novels/*.jsonl.zst'
    """
    from rich.console import Console
    from rich.table import Table

    from plumbline.jobs.counting.verify import shard_states, update_command
    from plumbline.warehouse.shards import expand_shards

    store, paths = open_existing(warehouse), expand_shards(shards) if shards else []
    with progress("verify", "shards") as update:
        states = shard_states(store, corpus, paths, progress=update)
    table = Table("shard", "state", "documents", "seconds", "note")
    for s in states:
        numbers = (f"{s.n_documents:,}", f"{s.seconds:.1f}")
        table.add_row(*map(terminal, (s.shard, s.state, *numbers, s.note)))
    Console(markup=False, emoji=False).print(table)
    total = {k: sum(s.state == k for s in states) for k in dict.fromkeys(s.state for s in states)}
    say(f"{corpus}: " + ", ".join(f"{n:,} {state}" for state, n in total.items()))
    command = update_command(store, corpus, states, shards or [])
    if not command:
        say("Up to date: every shard is counted as it is on disk")
    say(f"Next: {command or f'plumbline corpus verify --corpus {corpus}'}")


def verify(
    corpus: Annotated[str, typer.Option(help="Name of the corpus.")],
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Prove that the tables of a corpus equal its ledger; status 3 when they do not.

    Example: plumbline corpus verify --corpus novels
    """
    from plumbline.jobs.counting.verify import run_checks

    checks = run_checks(open_existing(warehouse), corpus)
    for c in checks:
        say(f"{c.name:<16} {'ok' if not c.n_violations else f'{c.n_violations:,} violations'}")
        if c.n_violations:
            first = ", ".join(f"{k} {v}" for k, v in c.first.items())
            say(f"  {c.violation}; first: {first}")
    broken = [c.name for c in checks if c.n_violations]
    if broken:
        fix = f"plumbline corpus count ... --corpus {corpus} --replace writes them again"
        problem = f"{len(broken)} of {len(checks)} checks fail: {', '.join(broken)}"
        raise BadInput(f"corpus {corpus!r}", problem, fix)
    say(f"{corpus}: all {len(checks)} checks hold; the tables equal the ledger")
    say(f"Next: plumbline corpus associate --corpus {corpus}")


def pack(
    texts: Annotated[list[Path], typer.Argument(help="Directories of .txt files, or files.")],
    out: Annotated[Path, typer.Option(help="Shard to write, a .jsonl.zst.")],
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Make one shard of text files (UTF-8), each file a document.

    A document's source is its folder; the file itself in one folder of up to 100 files. The file
    is in `meta.file`, too: `corpus count --source-field meta.file`.

    Files that can't be used are left out, and rows of the table `reject`.

    Example: plumbline corpus pack letters --out letters.jsonl.zst
    """
    from plumbline.jobs.ingest.pack import pack_files, source_kind, text_files
    from plumbline.warehouse.storage.store import Store

    files = text_files(texts)
    packed = pack_files(Store.open(warehouse), files, out)
    n_files, n_rejected = packed.n_packed + len(packed.rejects), len(packed.rejects)
    say(
        f"{n_files:,} files = {packed.n_packed:,} packed + {n_rejected:,} rejected, "
        f"{packed.n_bytes / 1e6:,.1f} MB of text"
    )
    say(f"Wrote {out}; the source of each document is its {source_kind(files.values())}")
    say(f"Next: plumbline pipeline --corpus {out} --model train:small")
    if packed.rejects:
        first = packed.rejects[0]
        say(
            f"Warning: left out {n_rejected:,} of {n_files:,} files (table `reject`); the first: "
            f"{first['source_file']}: {first['reason']} (save it as UTF-8 and pack again)",
            err=True,
        )


def import_(
    file: Annotated[
        Path, typer.Argument(help="UnStereoEval's released table, or a directory that holds it.")
    ],
    corpus: Annotated[str, typer.Option(help="Name of the corpus.")],
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Import published word statistics: counts and she/he delta of words, without any text.

    `word`, `constrain` and `corpus words` work on such a corpus; it has no counts of pairs.

    Example: plumbline corpus import pmi_file_w_counts.csv --corpus pile
    """
    from plumbline.jobs.ingest.released import import_statistics
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.storage.store import Store

    store = Store.open(warehouse)
    with recorded(store, "corpus import", {"file": str(file), "corpus": corpus}) as run_id:
        done = import_statistics(store, corpus, file, run_id)
    say(
        f"{corpus}: imported {done.n_words:,} words ({done.n_rejected:,} rows rejected) "
        f"of {done.n_tokens:,} kept tokens"
    )
    say("Tables: word_count, word_delta, corpus, reject")
    say(f"Next: plumbline constrain --corpus {corpus} --benchmark winobias")


def open_existing(warehouse: Path) -> Store:
    """The warehouse in a directory; ``BadInput`` if it doesn't exist."""
    from plumbline.warehouse.storage.store import Store

    return Store.open(warehouse, create=False)
