"""Commands on word statistics alone: ``plumbline corpus import`` and ``plumbline corpus words``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs.cli import DEFAULT_WAREHOUSE, Warehouse

statistics_app = typer.Typer()


@statistics_app.command(
    "import", epilog="Example: plumbline corpus import pmi_file_w_counts.csv.gz --corpus pile"
)
def import_(
    file: Annotated[
        Path, typer.Argument(help="UnStereoEval's released table, or a directory that holds it.")
    ],
    corpus: Annotated[str, typer.Option(help="Name of the corpus.")],
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Import published word statistics: counts and she/he delta of words, without any text.

    Such a corpus serves `word`, `constrain` and `corpus words`; there are no counts of pairs in it.
    """
    from jobs.released import import_statistics
    from warehouse.runs import recorded
    from warehouse.store import Store

    store = Store.open(warehouse)
    with recorded(store, "corpus import", {"file": str(file), "corpus": corpus}) as run_id:
        done = import_statistics(store, file, corpus, run_id)
    typer.echo(
        f"{corpus}: imported {done.n_words:,} words ({done.n_rejected:,} rows rejected) "
        f"of {done.n_tokens:,} kept tokens"
    )
    typer.echo("Tables: word_count, word_delta, corpus, reject")
    typer.echo(f"Next: plumbline constrain --corpus {corpus} --benchmark winobias")


@statistics_app.command(epilog="Example: plumbline corpus words --corpus pile --n 500 --seed 0")
def words(
    corpus: Annotated[str, typer.Option(help="Corpus whose word leans are used.")],
    n: Annotated[int, typer.Option("--n", help="Number of words.")] = 500,
    seed: Annotated[int, typer.Option(help="Seed of the sample.")] = 0,
    contrast: Annotated[str, typer.Option(help="Pair or list of pairs.")] = "she/he",
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Sample seed words among those that lean least: from the interval of delta that holds 0."""
    from jobs.seeds import select_seed_words
    from warehouse.store import Store

    done = select_seed_words(Store.open(warehouse, create=False), corpus, n, seed, contrast)
    typer.echo(
        f"{corpus}: {done.n_within:,} of {done.n_defined:,} words have a delta {contrast} from "
        f"{done.low_nats:+.3f} to {done.high_nats:+.3f} nats; sampled {len(done.words):,} "
        f"(seed {seed}): {', '.join(done.words[:5])}{' ...' if len(done.words) > 5 else ''}"
    )
    typer.echo("Table: seed_word")
    query = f"SELECT word FROM seed_word WHERE corpus = '{corpus}' AND seed = {seed}"
    typer.echo(f'Next: plumbline sql "{query} ORDER BY position"')
