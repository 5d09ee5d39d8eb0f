"""Commands on the words of a corpus: ``plumbline corpus vocabulary`` and ``corpus vet``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plumbline.pipelines.cli.corpus import DEFAULT_WAREHOUSE, Warehouse
from plumbline.warehouse.text.output import say


def vocabulary(
    corpus: Annotated[str, typer.Option(help="Name of the corpus.")],
    quantile: Annotated[
        float, typer.Option(help="Share of the English words that is too rare.")
    ] = 0.2,
    min_score: Annotated[
        float, typer.Option(help="Probability from which fastText's English is taken for it.")
    ] = 0.5,
    language_model: Annotated[
        Path | None,
        typer.Option(envvar="PLUMBLINE_LID", help="fastText's lid.176.ftz or lid.176.bin."),
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch lid.176.ftz (1 MB) from its makers, once.")
    ] = False,
    any_language: Annotated[
        bool, typer.Option("--any-language", help="Keep words of any language.")
    ] = False,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Say of every word whether it is one to write about: a-z, English and not among the rarest.

    A word is English when fastText says so or WordNet has it. Of the two one may be missing; that
    is printed and recorded.

    Example: plumbline corpus vocabulary --corpus pile --download
    """
    from plumbline.jobs.seed_words.language import default_path
    from plumbline.jobs.seed_words.language import download as fetch
    from plumbline.jobs.seed_words.vocabulary import Rules, build_vocabulary
    from plumbline.warehouse.storage.store import Store

    store = Store.open(warehouse, create=False)
    rules = Rules(quantile, min_score, any_language)
    if download:
        language_model = fetch(language_model or default_path())
    elif language_model is None and default_path().is_file():
        language_model = default_path()
    done = build_vocabulary(store, corpus, rules, language_model)
    for line in done.missing:
        say(f"Not asked: {line}")
    say(
        f"{corpus}: kept {done.n_kept:,} of {done.n_words:,} words; checked by {done.checks}; "
        f"counted more than {done.rarest:,.0f} times"
    )
    for reason, n in done.by_reason.items():
        say(f"  {n:>9,}  {reason}")
    say("Table: vocabulary")
    say(f"Next: plumbline corpus words --corpus {corpus}")


def vet(
    corpus: Annotated[str, typer.Option(help="Name of the corpus.")],
    accept: Annotated[str, typer.Option(help="Words, separated by commas.")] = "",
    reject: Annotated[str, typer.Option(help="Words, separated by commas.")] = "",
    why: Annotated[str, typer.Option(help="The reason, of all these words.")] = "",
    from_: Annotated[
        Path | None, typer.Option("--from", help="CSV with the columns word, verdict, why.")
    ] = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Accept or reject words for good: a new sample of seed words leaves the rejected ones out.

    Example: plumbline corpus vet --corpus pile --reject brad,sms --why 'a name, a sign'
    """
    from plumbline.jobs.seed_words.vetting import opinions, read_opinions
    from plumbline.jobs.seed_words.vetting import vet as run
    from plumbline.warehouse.storage.store import Store

    said = opinions(accept, reject, why) + (read_opinions(from_) if from_ else [])
    done = run(Store.open(warehouse, create=False), corpus, said)
    turned = f"; changed: {', '.join(done.changed)}" if done.changed else ""
    say(
        f"{corpus}: verdicts recorded: {len(said):,}{turned}; in all accepted: "
        f"{done.n_accepted:,}, rejected: {done.n_rejected:,}"
    )
    say("Table: seed_verdict")
    say(f"Next: plumbline corpus words --corpus {corpus}, which leaves the rejected out")
