"""Commands on the words of a corpus: how they lean, and which serve as seed words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plumbline.jobs.options import LEAST_COUNT
from plumbline.pipelines.cli.corpus import open_existing
from plumbline.pipelines.cli.options import Warehouse
from plumbline.pipelines.requests import DEFAULT_WAREHOUSE
from plumbline.warehouse.errors import UsageProblem, disk_problems
from plumbline.warehouse.paths import replacing
from plumbline.warehouse.text.escape import terminal
from plumbline.warehouse.text.output import say

if TYPE_CHECKING:
    from plumbline.warehouse.storage.store import Store

Contrast = Annotated[str, typer.Option(help="Pair such as she/he, or the name of a word list.")]


def why(
    words: Annotated[list[str] | None, typer.Argument(help="Words, as kept tokens.")] = None,
    words_from: Annotated[
        Path | None, typer.Option("--words", help="File with further words, one per line.")
    ] = None,
    top: Annotated[
        int | None, typer.Option(min=1, help="Ask about this many most frequent words instead.")
    ] = None,
    sentences_for: Annotated[
        int | None, typer.Option(min=0, help="With --top: words with sentences. Default: all.")
    ] = None,
    corpus: Annotated[
        list[str] | None, typer.Option(help="Corpus; may be repeated. Default: all.")
    ] = None,
    contrast: Contrast = "she/he",
    n: Annotated[int, typer.Option("--n", min=0, help="Sentences to draw for each side.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sentences drawn.")] = 0,
    target: Annotated[
        list[str] | None,
        typer.Option(help="Draw sentences near these words of the contrast only; repeatable."),
    ] = None,
    clusters: Annotated[
        str | None,
        typer.Option(
            help="What intervals take as drawn: document, or source where documents are its "
            "pieces. Default: source if the corpus has ten or more.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", help="text, markdown, json (everything) or csv (the leans).")
    ] = "text",
    out: Annotated[Path | None, typer.Option(help="File to write to instead of printing.")] = None,
    page: Annotated[
        Path | None, typer.Option(help="Directory to write the answers to as a page, too.")
    ] = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Show why words lean: how far and how sure, in which sources, by which copies, and sentences.

    The documents of a counted corpus are looked through as they were kept (`--evidence`), not read
    again; only the sentences come from the shards. The answers are in the tables word_evidence,
    word_source, word_copies, word_collocate and word_snippet, too.

    `--top 20000` writes the leans, sources and sentences of the most frequent words in one go, for
    the report's word explorer, and prints no answers; words answered before are left alone.

    Example: plumbline why nurse captain wept --corpus novels
    """
    from plumbline.jobs.evidence.why import Sampling
    from plumbline.pipelines.requests import why as request

    if form not in request.FORMATS:
        raise UsageProblem(f"format {form!r}", f"there is {', '.join(request.FORMATS)}")
    sampling = Sampling(n, seed, tuple(target or ()))
    if top:
        if words or words_from or form != "text" or out or page:
            raise UsageProblem("--top", "prints no answers", "give it without words and formats")
        how = corpus or [], top, contrast, sampling, clusters, sentences_for
        for line in request.ask_top(open_existing(warehouse), *how):
            say(line)
        say("Next: plumbline report, or plumbline sql 'FROM word_evidence'")
        return
    asked = request.words_of(words or [], words_from)
    found = request.ask(open_existing(warehouse), corpus or [], asked, contrast, sampling, clusters)
    lines = request.rendered(found, form)
    if out:
        with disk_problems(out), replacing(out) as temporary:
            temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
        say(f"{form}: {out}")
    else:
        for line in lines:
            say(line)
    if form != "text":
        for line in found.lines:
            say(line, err=True)
    if page:
        say(f"page: {request.write_page(found, page)}")
    if form == "text" or out:
        say("Next: plumbline report, or plumbline sql 'FROM word_snippet'")


def constrain(
    corpus: Annotated[str, typer.Option(help="Corpus whose deltas are used.")],
    benchmark: Annotated[list[str], typer.Option(help="Benchmark; may be repeated.")],
    contrast: Annotated[
        str | None,
        typer.Option(
            help="Pair such as she/he, or the name of a word list. Default: that of the pairs' "
            "groups, which is she/he for female and male.",
            show_default=False,
        ),
    ] = None,
    least_count: Annotated[
        int,
        typer.Option(min=1, help="Co-occurrences on either side from which a word's delta counts."),
    ] = LEAST_COUNT,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Compute MaxPMI of a benchmark's pairs: the largest lean among the words of each.

    A pair with a word counted more rarely than `--least-count` is undecided, unless another word
    leans beyond the limit: constrained subsets hold only pairs all of whose words are known.

    Example: plumbline constrain --corpus novels --benchmark winobias
    """
    from plumbline.jobs.association.associations import contrasts_of
    from plumbline.jobs.association.max_pmi import constrain as run
    from plumbline.jobs.association.measures import SUM, summed_list
    from plumbline.jobs.association.verdicts import verdict_lines
    from plumbline.jobs.corpus_lookup import corpus_row

    store = open_existing(warehouse)
    for name in benchmark:
        done = run(store, corpus, name, contrast, least_count)
        for line in verdict_lines(store, corpus, name, done):
            say(line)
    # An imported corpus, whose only contrast is a pair, has no lists to look for.
    if (
        contrast
        and SUM in contrast
        and summed_list(contrast, contrasts_of(store, corpus_row(store, corpus)))
    ):
        say(f"{contrast} is a sum over pairs: limits that fit a single pair are too small for it")
    say("Table: pair_association")
    say(f"Next: plumbline score --model ID_OR_PATH --benchmark {benchmark[0]}")


def words(
    corpus: Annotated[str, typer.Option(help="Corpus whose deltas are used.")],
    n: Annotated[
        int | None, typer.Option("--n", min=1, help="Sample size: 500; with --show: all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample.")] = 0,
    contrast: Contrast = "she/he",
    exclude: Annotated[
        list[str] | None,
        typer.Option(help="Word list or file, one word per line, to leave out; repeatable."),
    ] = None,
    stratify: Annotated[
        int, typer.Option(help="Bands of frequency to draw equally from; 1: ignore frequency.")
    ] = 1,
    show: Annotated[
        bool, typer.Option("--show", help="Show the existing sample with its verdicts.")
    ] = False,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Sample seed words among those that lean least: from the interval of delta that holds 0.

    If the corpus has a vocabulary (`corpus vocabulary`), only its kept words are sampled. Words
    rejected with `corpus vet` are left out.

    Example: plumbline corpus words --corpus pile --n 500 --seed 0 --exclude gendered
    """
    from plumbline.jobs.corpus_lookup import corpus_contrast
    from plumbline.jobs.seed_words.sample import excluded_words, select_seed_words

    store = open_existing(warehouse)
    if show:
        _show(store, corpus, corpus_contrast(store, corpus, contrast), seed, n)
        return
    left_out = excluded_words(exclude or [])
    done = select_seed_words(
        store, corpus, n or 500, seed, contrast, exclude=left_out, n_bands=stratify
    )
    contrast = corpus_contrast(store, corpus, contrast)
    of = "" if done.n_outside is None else f" of the vocabulary ({done.n_outside:,} are not in it)"
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
        verdict = r["verdict"] or "", r["why"] or ""
        cells = str(r["position"]), r["word"], count, f"{r['delta_nats']:+.3f}", *verdict
        table.add_row(*map(terminal, cells))
    Console(markup=False, emoji=False).print(table)
    n_vetted = sum(r["verdict"] is not None for r in rows)
    first = "" if n is None or n >= len(rows) else f"the first {n:,} of "
    say(f"{corpus}: {first}{len(rows):,} seed words of seed {seed}, {n_vetted:,} with a verdict")
    say(f"Next: plumbline corpus vet --corpus {corpus} --accept w1,w2 --reject w3 --why TEXT")


def vocabulary(
    corpus: Annotated[str, typer.Option(help="Name of the corpus.")],
    quantile: Annotated[
        float, typer.Option(help="Share of the English words to leave out as rare.")
    ] = 0.2,
    min_score: Annotated[
        float, typer.Option(help="Probability of English from which fastText's answer counts.")
    ] = 0.5,
    language_model: Annotated[
        Path | None,
        typer.Option(envvar="PLUMBLINE_LID", help="fastText's lid.176.ftz or lid.176.bin."),
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Download lid.176.ftz (1 MB) once, and use it.")
    ] = False,
    any_language: Annotated[
        bool, typer.Option("--any-language", help="Keep words of any language.")
    ] = False,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Decide for every word whether it is a candidate seed word: a-z, English and not rare.

    A word is English according to fastText or WordNet. One of the two may be missing; that is
    printed and recorded.

    Example: plumbline corpus vocabulary --corpus pile --download
    """
    from plumbline.jobs.seed_words import english
    from plumbline.jobs.seed_words.vocabulary import Rules, build_vocabulary

    store = open_existing(warehouse)
    rules = Rules(quantile, min_score, any_language)
    if download:
        language_model = english.download(english.model_path())
    elif language_model is None and english.model_path().is_file():
        language_model = english.model_path()
    done = build_vocabulary(store, corpus, rules, language_model)
    for line in done.missing:
        say(f"Skipped: {line}")
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
    """Accept or reject words: new samples of seed words leave rejected ones out.

    Example: plumbline corpus vet --corpus pile --reject brad,sms --why 'a name, a sign'
    """
    from plumbline.jobs.seed_words.vetting import parse_verdicts, read_verdicts
    from plumbline.jobs.seed_words.vetting import vet as run

    given = parse_verdicts(accept, reject, why) + (read_verdicts(from_) if from_ else [])
    done = run(open_existing(warehouse), corpus, given)
    changed = f"; changed: {', '.join(done.changed)}" if done.changed else ""
    say(
        f"{corpus}: verdicts recorded: {len(given):,}{changed}; in all accepted: "
        f"{done.n_accepted:,}, rejected: {done.n_rejected:,}"
    )
    say("Table: seed_verdict")
    say(f"Next: plumbline corpus words --corpus {corpus}, which leaves rejected words out")
