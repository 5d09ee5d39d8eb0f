"""Commands on word statistics alone: ``plumbline corpus import`` and ``plumbline corpus words``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plumbline.pipelines.cli.corpus import DEFAULT_WAREHOUSE, Warehouse
from plumbline.warehouse.text.escape import terminal
from plumbline.warehouse.text.output import say

if TYPE_CHECKING:
    from plumbline.warehouse.storage.store import Store


def import_(
    file: Annotated[
        Path, typer.Argument(help="UnStereoEval's released table, or a directory that holds it.")
    ],
    corpus: Annotated[str, typer.Option(help="Name of the corpus.")],
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Import published word statistics: counts and she/he delta of words, without any text.

    Such a corpus serves `word`, `constrain` and `corpus words`; there are no counts of pairs in it.

    Example: plumbline corpus import pmi_file_w_counts.csv.gz --corpus pile
    """
    from plumbline.jobs.ingest.released import import_statistics
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.storage.store import Store

    store = Store.open(warehouse)
    with recorded(store, "corpus import", {"file": str(file), "corpus": corpus}) as run_id:
        done = import_statistics(store, file, corpus, run_id)
    say(
        f"{corpus}: imported {done.n_words:,} words ({done.n_rejected:,} rows rejected) "
        f"of {done.n_tokens:,} kept tokens"
    )
    say("Tables: word_count, word_delta, corpus, reject")
    say(f"Next: plumbline constrain --corpus {corpus} --benchmark winobias")


def words(
    corpus: Annotated[str, typer.Option(help="Corpus whose word leans are used.")],
    n: Annotated[
        int | None, typer.Option("--n", min=1, help="Number of words: 500; with --show: all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample.")] = 0,
    contrast: Annotated[str, typer.Option(help="Pair or list of pairs.")] = "she/he",
    exclude: Annotated[
        list[str] | None,
        typer.Option(help="Leave out the words of a list or file (a word a line); repeatable."),
    ] = None,
    stratify: Annotated[
        int, typer.Option(help="Bands of frequency that give equally many words.")
    ] = 1,
    show: Annotated[
        bool, typer.Option("--show", help="Show the sample that is there with what was said of it.")
    ] = False,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Sample seed words among those that lean least: from the interval of delta that holds 0.

    Where there is a `corpus vocabulary` its kept words are sampled from. Words rejected with
    `corpus vet` are left out.

    Example: plumbline corpus words --corpus pile --n 500 --seed 0 --exclude gendered
    """
    from plumbline.jobs.seed_words.sample import excluded_words, select_seed_words
    from plumbline.warehouse.storage.store import Store

    store = Store.open(warehouse, create=False)
    if show:
        _show(store, corpus, contrast, seed, n)
        return
    left_out = excluded_words(exclude or [])
    done = select_seed_words(store, corpus, n or 500, seed, contrast, left_out, stratify)
    of = "" if done.n_outside is None else f" of the vocabulary ({done.n_outside:,} are not of it)"
    say(
        f"{corpus}: {done.n_within:,} of {done.n_defined:,} words{of} have a delta {contrast} from "
        f"{done.low_nats:+.3f} to {done.high_nats:+.3f} nats; sampled {len(done.words):,} "
        f"(seed {seed}): {', '.join(done.words[:5])}{' ...' if len(done.words) > 5 else ''}"
    )
    if done.n_excluded or done.n_rejected:
        say(f"Left out: {done.n_excluded:,} excluded, {done.n_rejected:,} rejected words")
    say("Table: seed_word")
    same = f"--corpus {corpus} --seed {seed} --contrast {contrast}"
    say(f"Next: plumbline corpus words {same} --show, then plumbline corpus vet;")
    say(f"then plumbline benchmark build NAME --corpus {corpus} --model M --dry-run")


def _show(store: Store, corpus: str, contrast: str, seed: int, n: int | None) -> None:
    from rich.console import Console
    from rich.table import Table

    from plumbline.jobs.seed_words.sample import sampled_words

    rows = sampled_words(store, corpus, contrast, seed)
    table = Table("", "word", "count", "delta (nats)", "verdict", "why")
    for r in rows[:n]:
        count = "" if r["n_word"] is None else f"{r['n_word']:,}"
        said = r["verdict"] or "", r["why"] or ""
        cells = str(r["position"]), r["word"], count, f"{r['delta_nats']:+.3f}", *said
        table.add_row(*map(terminal, cells))
    Console(markup=False, emoji=False).print(table)
    n_said = sum(r["verdict"] is not None for r in rows)
    first = "" if n is None or n >= len(rows) else f"the first {n:,} of "
    say(f"{corpus}: {first}{len(rows):,} seed words of seed {seed}, {n_said:,} with a verdict")
    say(f"Next: plumbline corpus vet --corpus {corpus} --accept w1,w2 --reject w3 --why TEXT")
