"""``plumbline reproduce``: published tables from published scores, figure by figure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from plumbline.pipelines.cli.options import Warehouse
from plumbline.pipelines.reproduce import figures
from plumbline.pipelines.reproduce.beside import Beside
from plumbline.pipelines.reproduce.compare import (
    AGREE,
    CONTRADICTED,
    OFF,
    OUTCOMES,
    Compared,
    Start,
)
from plumbline.pipelines.reproduce.run import (
    N_STEPS,
    Announce,
    Outcome,
    Release,
    as_rows,
    import_release,
    reproduce,
    summary,
)
from plumbline.pipelines.reproduce.unstereoeval import claims
from plumbline.pipelines.requests import DEFAULT_WAREHOUSE
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.csv_rows import as_csv
from plumbline.warehouse.text.escape import terminal
from plumbline.warehouse.text.output import say
from plumbline.warehouse.text.progress import progress


def unstereoeval(
    data: Annotated[Path, typer.Option(help="Folder of the release: `data` and `results`.")],
    warehouse: Annotated[
        Path, typer.Option(help="Warehouse directory; its metrics are replaced.")
    ] = Path("out/released"),
    published: Annotated[
        Path | None, typer.Option(help="CSV of printed figures instead of Plumbline's own.")
    ] = None,
    corpus: Annotated[str, typer.Option(help="Name for the released word statistics.")] = "pile",
    out: Annotated[Path | None, typer.Option(help="CSV file for all figures.")] = None,
) -> None:
    """Compute the tables of UnStereoEval from its released scores and count what agrees.

    All figures of Tables 1-3 and 8-22; those that differ are printed one by one, all are in --out.
    Those of models without scores are not run. Leaves with status 1 when a figure differs by more
    than 0.011, or scores are incomplete.

    Example: plumbline reproduce unstereoeval --data unstereo-eval --warehouse out/released
    """
    printed = figures.read(published) if published else figures.packaged()
    console = Console(highlight=False, markup=False, emoji=False)
    store = Store.open(warehouse)
    with _progress() as announce:
        outcome = reproduce(store, data, printed, corpus, announce)
    # As wide as it needs to be where it is not read on a terminal.
    if not console.is_terminal:
        console.width = max(console.width, 160)
    _print_figures(console, outcome.compared)
    _print_claims(console, outcome.claims)
    _print_starts(console, outcome.starts)
    _print_analyses(console, outcome)
    _print_summary(console, outcome)
    if out is not None:
        _write_rows(out, [*as_rows(outcome), *claims.as_rows(outcome.claims)])
        say(f"wrote {out}")
    console.print(
        f"wrote scores and metrics to {warehouse}; next: plumbline sql --warehouse {warehouse}",
        soft_wrap=True,
    )
    if any(c.outcome == OFF for c in outcome.compared) or outcome.incomplete:
        raise typer.Exit(1)


Published = Annotated[
    Path | None, typer.Option(help="CSV of printed figures instead of Plumbline's own.")
]
SameAs = Annotated[
    list[str] | None,
    typer.Option("--as", metavar="PRINTED=MODEL", help="Model that stands for a printed one."),
]
Figures = Annotated[Path | None, typer.Option(help="CSV file for all figures.")]


def fairpair(
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    published: Published = None,
    same_as: SameAs = None,
    out: Figures = None,
) -> None:
    """Put Tables 1 and 3 of FairPair beside the runs of a warehouse: printed, measured, interval.

    And what each run does otherwise than the paper, and what it says of the paper's claims. The
    paper released no results, so nothing has to agree: leaves with status 0 whatever came out.

    Example: plumbline reproduce fairpair --as "GPT2=models/small-novels"
    """
    _beside("fairpair", warehouse, published, same_as or [], out)


def disclosure(
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    published: Published = None,
    same_as: SameAs = None,
    out: Figures = None,
) -> None:
    """Put Tables 1-3, 9 and 10 of the paper on disclosure beside the runs of a warehouse.

    Printed, measured, interval, and what each run does otherwise than the paper, which released no
    results: leaves with status 0 whatever came out. Then what the paper says of its tables, counted
    in its own figures.

    Example: plumbline reproduce disclosure --as "LLaMA2 7B=EleutherAI/pythia-70m"
    """
    _beside("disclosure", warehouse, published, same_as or [], out)


def _beside(
    name: str, warehouse: Path, published: Path | None, same_as: list[str], out: Path | None
) -> None:
    from plumbline.pipelines.reproduce import beside, papers

    paper = papers.PAPERS[name]
    printed = papers.figures(paper, published)
    store = Store.open(warehouse, create=False)
    found, runs = papers.measured(paper, store, printed, same_as)
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = max(console.width, 160)
    headings = ("model", "set", "method", "figure", "printed", "measured", "interval", "run", "")
    for number in sorted({b.printed.table for b in found}):
        here = [b for b in found if b.printed.table == number]
        table = Table(*headings, title=f"Table {number}", show_edge=False, title_justify="left")
        for b in here:
            if b.run is not None:
                table.add_row(*map(terminal, _beside_cells(b)))
        if table.row_count:
            console.print(table, "")
        if missing := sum(b.run is None for b in here):
            say(f"Table {number}: {missing:,} figures of models, sets or methods without a run")
    for run in runs:
        differs = "; ".join(run.differs) or "in nothing that is known"
        say(f"run {run.number}, {run.printed_model} by {run.model}: differs in {terminal(differs)}")
        say(f"  the paper's is not known: {terminal('; '.join(run.unknown))}")
    claims = paper.claims(store, papers.printed_names(paper, printed, same_as))
    for line in (*paper.remarks, *paper.misfits(printed), *map(terminal, claims)):
        say(line)
    for line in beside.tally(found):
        say(line)
    if out is not None:
        _write_rows(out, beside.as_rows(found))
        say(f"Wrote {out}")
    say(f"Next: {paper.command}" if any(b.run is None for b in found) else "Next: plumbline report")


def _beside_cells(b: Beside) -> list[str]:
    p, is_open = b.printed, math.isnan(b.low) or math.isnan(b.high)
    return [
        *(p.model, p.inputs, p.method, p.metric, f"{p.value:g}"),
        "–" if b.measured is None else f"{b.measured:.4g}",
        "" if is_open else f"{b.low:.4g} to {b.high:.4g}",
        f"{b.run.number if b.run else ''}",
        "; ".join(filter(None, [b.outcome, b.note])),
    ]


def lists(
    corpus: Annotated[str, typer.Option(help="Name of the corpus.")],
    list_: Annotated[
        str, typer.Option("--list", help="Word list: name or TOML file.")
    ] = "gendered",
    out: Annotated[Path, typer.Option(help="Directory for CSV and PNG.")] = Path("out/lists"),
    warehouse: Annotated[
        Path, typer.Option(envvar="PLUMBLINE_WAREHOUSE", help="Directory of the warehouse.")
    ] = Path("out/warehouse"),
) -> None:
    """Compare the pairs of a word list: how many words have a delta, whether they rank them alike.

    What App. A of UnStereoEval shows of the Pile (Table 4, Figures 4 and 5), beside a corpus of
    your own.

    Example: plumbline reproduce lists --corpus novels --list gendered
    """
    from plumbline.pipelines.reproduce.word_lists import alike, compare_list, write_compared

    with progress("draw documents again", "resamples") as update:
        compared = compare_list(Store.open(warehouse, create=False), corpus, list_, update)
    say("Words with a delta: those that co-occur with both words of a pair (as in Table 4)")
    headings = ("words", "% of vocabulary", "median SE of delta, nats", "printed (Pile)", "%")
    table = Table("pair", *headings)
    for r in compared.coverage:
        pile = r["n_words_pile"] is not None
        table.add_row(
            *(terminal(r["contrast"]), f"{r['n_words']:,}", f"{r['percent_of_vocabulary']:.2f}"),
            "" if r["median_se_nats"] is None else f"{r['median_se_nats']:.2f}",
            *((f"{r['n_words_pile']:,}", f"{r['percent_pile']:.2f}") if pile else ("", "")),
        )
    console = Console(markup=False, emoji=False)
    if not console.is_terminal:
        console.width = max(console.width, 110)
    console.print(table)
    say("Percent here is of all words; of the Pile of its 120,339 English ones (Table 4, App. B)")
    if compared.near:
        say(compared.near)
    for line in alike(compared.agreements):
        say(line)
    say(f"  {compared.intervals}")
    for path in write_compared(compared, out):
        say(f"Wrote {path}")
    say(f"Next: plumbline why WORD --corpus {corpus}")


def pythia(
    evals: Annotated[Path, typer.Option(help="CSV of Pythia's released CrowS-Pairs figures.")],
    data: Annotated[Path, typer.Option(help="Folder of the UnStereoEval release.")],
    warehouse: Annotated[Path, typer.Option(help="Warehouse directory for the release.")] = Path(
        "out/released"
    ),
    corpus: Annotated[str, typer.Option(help="Name for the released word statistics.")] = "pile",
    out: Annotated[Path | None, typer.Option(help="CSV file for all figures.")] = None,
) -> None:
    """Show what the released Pythia figures could resolve: CrowS-Pairs and Plumbline's measures.

    The smallest change that a 5% test finds with power 80%, and that as a share of pronouns.

    Example: plumbline reproduce pythia --evals pythia_bias_evals.csv --data unstereo-eval
    """
    from plumbline.pipelines.reproduce import pythia as released
    from plumbline.pipelines.reproduce import pythia_tables as tables
    from plumbline.pipelines.reproduce.resolution import of_pythia

    checkpoints, n_other = released.read(evals)
    crows = released.of_crows_pairs(checkpoints)
    release = Release.at(data)
    store = Store.open(warehouse)
    with _progress() as announce:
        config = {"data": str(data), "evals": str(evals), "corpus": corpus}
        with recorded(store, "reproduce pythia", config) as run_id:
            import_release(store, release, corpus, run_id, announce)
            announce("comparing models")
            ours = of_pythia(store, corpus)
    if not ours:
        problem = "holds no scores of a Pythia model and its -deduped twin on the same pairs"
        raise BadInput(f"{data}", problem, "give --data the whole release")
    say(f"{evals}: {len(checkpoints)} checkpoints, {n_other} rows of other tasks or metrics")
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = max(console.width, 160)
    for title, headings, rows in (
        tables.noises(released.noise(checkpoints)),
        tables.crows_pairs(crows),
        tables.ours(ours),
    ):
        table = Table(*headings, title=title, show_edge=False, title_justify="left")
        for row in rows:
            table.add_row(*map(terminal, row))
        console.print(table, "")
    for line in (*tables.lines(checkpoints), *tables.LIMITS):
        console.print(terminal(line), soft_wrap=True)
    if out is not None:
        _write_rows(out, tables.as_rows([*crows, *ours]))
        say(f"wrote {out}")


def cause(
    data: Annotated[
        Path,
        typer.Option(envvar="PLUMBLINE_DATA", help="Folder that the design's shards lie under."),
    ],
    design: Annotated[
        Path | None, typer.Option(help="TOML file of a study instead of the packaged one.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory of texts, models and cause.csv.")] = Path(
        "out/cause"
    ),
    warehouse: Warehouse = Path("out/cause/warehouse"),
) -> None:
    """Run the pre-specified study: does the text make the lean? (docs/cause.md)

    Counts the text, changes it by doses, trains and scores every arm, and says of each prediction
    what came of it. The packaged study takes about an hour on two cores; after an interruption
    run the same command again to resume. Leaves with status 0 whatever came out.

    Example: plumbline reproduce cause --data data --out out/cause
    """
    from plumbline.pipelines.report.sections.interventions import bounded
    from plumbline.pipelines.reproduce.cause import as_rows, read_design, run
    from plumbline.pipelines.stages import Stages

    study = read_design(design)
    say(f"design {study.sha256}: {study.question}")
    found = run(study, data, out, warehouse, Stages())
    table = Table("prediction", "expected", "found", "estimate (95% interval)", "size")
    for f in found:
        interval = (
            "" if f.estimate_low is None else f" ({f.estimate_low:.3f} to {f.estimate_high:.3f})"
        )
        state = f.found if f.as_predicted else f"{f.found}: not as predicted"
        bound = bounded(vars(f)).removeprefix("; its size is ") if f.expected == "holds 0" else ""
        table.add_row(
            terminal(f.prediction), f.expected, state, f"{f.estimate:.3f}{interval}", bound
        )
    Console(markup=False, emoji=False).print(table)
    path = out / "cause.csv"
    path.write_text(as_csv(as_rows(found)), encoding="utf-8", newline="")
    say(f"Wrote {path}, and views `dose_response` and `window_response` of {warehouse}")
    say(f'Next: plumbline sql "FROM intervention_lean" --warehouse {warehouse}')


def anatomy(
    data: Annotated[Path, typer.Option(help="Folder of the UnStereoEval release.")],
    warehouse: Annotated[
        Path, typer.Option(help="Warehouse directory; the release is imported unless it is there.")
    ] = Path("out/released"),
    corpus: Annotated[str, typer.Option(help="Name for the released word statistics.")] = "pile",
    eta: Annotated[
        float, typer.Option(min=0, help="Only pairs whose MaxPMI is within this of 0, in nats.")
    ] = math.inf,
    out: Annotated[Path, typer.Option(help="Directory for CSV and PNG.")] = Path("out/anatomy"),
) -> None:
    """Split the lean of the released models into parts, on sentences whose words don't lean too.

    A constant of the model, pronoun first, number and form of pronouns, the text's delta, length,
    word and pair: each one's share, and US when what goes with it is taken away.

    Example: plumbline reproduce anatomy --data unstereo-eval --eta 0.65
    """
    from plumbline.pipelines.reproduce.anatomy import anatomy_tables as tables
    from plumbline.pipelines.reproduce.anatomy import study

    store = Store.open(warehouse)
    sets = list(study.tables(store, corpus))
    if not sets:
        config = {"data": str(data), "corpus": corpus}
        with (
            _progress() as announce,
            recorded(store, "reproduce anatomy", config) as run_id,
        ):
            import_release(store, Release.at(data), corpus, run_id, announce)
        sets = list(study.tables(store, corpus))
    kept = [(name, models, study.within(table, eta)) for name, models, table in sets]
    found = [study.anatomy(*one) for one in kept if len(one[-1].y)]
    if not found:
        problem = "holds no pairs with a MaxPMI of that size and scores of all of them"
        raise BadInput(f"{data}", problem, "give a larger --eta, or --data the whole release")
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = max(console.width, 160)
    for of in found:
        for title, headings, cells in (
            ("shares of the mean square", tables.SHARE_HEADINGS, tables.share_cells(of)),
            ("US", tables.US_HEADINGS, tables.us_cells(of)),
        ):
            table = Table(*headings, title=f"{of.benchmark}: {title}", show_edge=False)
            for row in cells:
                table.add_row(*map(terminal, row))
            console.print(table, "")
    for of in found:
        for line in tables.lines(of):
            console.print(terminal(line), soft_wrap=True)
    for path in tables.write(found, out):
        say(f"Wrote {path}")
    say("Next: what the parts are and how far to trust them: docs/anatomy.md")


@contextmanager
def _progress() -> Iterator[Announce]:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=N_STEPS)
        done = iter(range(N_STEPS))
        yield lambda step: bar.update(
            task, description=terminal(step), completed=next(done, N_STEPS)
        )
        bar.update(task, completed=N_STEPS)


def _print_figures(console: Console, compared: Sequence[Compared]) -> None:
    """How many figures of each table came out how, then those that differ, one by one."""
    counts = Counter((c.figure.table, c.outcome) for c in compared)
    numbers = sorted({c.figure.table for c in compared})
    rows = [(f"Table {n}", *(f"{counts[n, outcome]:,}" for outcome in OUTCOMES)) for n in numbers]
    _print_rows(console, "Figures", ("", *OUTCOMES), rows)
    table = Table(title="Figures that differ", show_edge=False, title_justify="left")
    for heading in ("table", "model", "figure", "set", "eta"):
        table.add_column(heading, no_wrap=True)
    for heading in ("printed", "ours", "difference"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for c in compared:
        if c.outcome in (OFF, CONTRADICTED):
            table.add_row(*_cells(c))
    if table.row_count:
        console.print(table, "")
    console.print("Every figure, printed and ours: --out FILE", "")


def _cells(c: Compared) -> list[Text | str]:
    digits = 0 if c.figure.metric == figures.SIZE else 2
    eta = "" if c.figure.eta_nats is None else f"{c.figure.eta_nats:g}"
    style = {OFF: "bold red", CONTRADICTED: "yellow"}.get(c.outcome, "")
    remark = f"OFF {c.note}" if c.outcome == OFF else c.note
    return [
        str(c.figure.table),
        *map(terminal, (c.figure.model, c.figure.metric, c.figure.benchmark)),
        eta,
        _number(c.figure.value, digits),
        _number(c.ours, digits),
        Text(_number(c.difference, digits, sign=True), style=style),
        Text(terminal(remark), style=style or "dim"),
    ]


def _interval(ci: tuple[float, float]) -> str:
    return "(no interval)" if math.isnan(ci[0]) else f"({ci[0]:.2f} to {ci[1]:.2f})"


def _print_claims(console: Console, found: list[claims.Checked]) -> None:
    if not found:
        console.print("Claims are of all 28 models and five sets: not run", "")
        return
    table = Table(title="Claims: numbers outside the tables", show_edge=False, title_justify="left")
    for heading in ("where", "what", "printed", "ours", "outcome", ""):
        table.add_column(heading)
    for cells in claims.table(found):
        table.add_row(*map(terminal, cells))
    console.print(table, "")


def _print_starts(console: Console, starts: list[Start]) -> None:
    """The split that the paper does not make, with 95% intervals."""
    table = Table(
        title="Beyond the paper: pairs that start with the pronoun, and the others (95% intervals)",
        show_edge=False,
        title_justify="left",
    )
    for heading in ("model", "set", "start"):
        table.add_column(heading, no_wrap=True)
    for heading in ("pairs", "US %", "PD points"):
        table.add_column(heading, justify="right", no_wrap=True)
    for s in starts:
        us = f"{_number(s.us, 2)} {_interval(s.us_ci)}"
        pd = f"{_number(s.pd, 2)} {_interval(s.pd_ci)}"
        table.add_row(
            terminal(s.model), terminal(s.benchmark), terminal(s.start), f"{s.n:,}", us, pd
        )
    console.print(table)
    console.print()


def _print_analyses(console: Console, outcome: Outcome) -> None:
    """Model size and deduplication, over the models, with 95% intervals."""
    sizes = [
        (
            *(r[name] for name in ("benchmark", "measure", "n_families", "n_models")),
            f"{_estimate(r, 'per_tenfold')} {r['unit']}",
        )
        for r in outcome.sizes
        if not r["family"]
    ]
    title = "Model size: change per tenfold number of parameters (mean, 95% over families)"
    _print_rows(console, title, ("set", "measure", "families", "models", "change"), sizes)
    changes = [
        (
            *(r[name] for name in ("benchmark", "subset", "measure", "n_models")),
            f"{_estimate(r, 'difference')} {r['unit']}",
            f"{r['n_fell']}, {r['n_rose']}",
        )
        for r in outcome.deduplication
    ]
    title = "Deduplication: mean change from a model to its -deduped twin (95% over models)"
    headings = ("set", "subset", "measure", "n", "change", "fell, rose")
    _print_rows(console, title, headings, changes)


def _print_rows(
    console: Console, title: str, headings: Sequence[str], rows: Sequence[Sequence[object]]
) -> None:
    """A table of rows; nothing without rows."""
    table = Table(title=title, show_edge=False, title_justify="left")
    for heading in headings:
        table.add_column(heading, no_wrap=True)
    for row in rows:
        table.add_row(*map(terminal, map(str, row)))
    if rows:
        console.print(table, "")


def _estimate(row: Mapping[str, Any], name: str) -> str:
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    ends = "" if low is None else f" {_interval((low, high))}"
    return "–" if value is None else f"{value:+.2f}{ends}"


def _number(value: float | None, digits: int, *, sign: bool = False) -> str:
    if value is None:
        return "–"
    return f"{value:{'+' if sign else ''}.{digits}f}"


def _print_summary(console: Console, outcome: Outcome) -> None:
    say(f"{len(outcome.models)} models: {', '.join(outcome.models)}")
    if outcome.max_pmi:
        same, n = outcome.max_pmi
        text = "MaxPMI from the word statistics equals the released one on"
        console.print(f"{text} {same:,} of {n:,} pairs", soft_wrap=True)
    for line in outcome.incomplete:
        console.print(Text(terminal(f"incomplete: {line}"), style="bold red"), soft_wrap=True)
    for kind, counts in summary(outcome).items():
        console.print(f"{kind}: {', '.join(f'{counts[o]:,} {o}' for o in OUTCOMES)}")
    if outcome.claims:
        console.print(claims.summary(outcome.claims))
    differences = [abs(c.difference or 0.0) for c in outcome.compared if c.outcome == AGREE]
    console.print(f"largest difference among those that agree: {max(differences, default=0.0):.4f}")


def _write_rows(path: Path, rows: list[dict[str, object]]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(as_csv(rows), encoding="utf-8", newline="")
    except OSError as e:
        raise UsageProblem(f"--out {path}", f"can't be written: {e.strerror}") from e
