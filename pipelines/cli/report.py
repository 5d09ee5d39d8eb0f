"""The commands ``plumbline measure`` and ``report``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from plumbline.pipelines.cli.options import Warehouse, expanded
from plumbline.pipelines.requests import DEFAULT_WAREHOUSE
from plumbline.pipelines.settings import MeasureOptions
from plumbline.warehouse.text.output import say


@expanded
def measure(
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    *,
    options: MeasureOptions,
) -> None:
    """Compute US, PD, AuFC, gaps and how far models follow their corpus.

    Where an n-gram model of the corpus has scores (`plumbline train --preset 5gram`), also whether
    the corpus predicts log ratios beyond frequency, n-grams and length.

    Example: plumbline measure --eta 0.5 --eta 0.65
    """
    from rich.console import Console

    from plumbline.pipelines.cli.sql import show
    from plumbline.pipelines.report.metrics import measured
    from plumbline.pipelines.requests import measure as metrics
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.query.connection import connect, model_labels, query, rows_of, sql
    from plumbline.warehouse.storage.store import Store

    store = Store.open(warehouse, create=False)
    with recorded(store, "measure", asdict(options)) as run_id:
        rows = metrics.measure(store, run_id, options)
    console = Console(highlight=False, markup=False, emoji=False)
    if rows.num_rows == 0:
        say("nothing to measure yet: run `plumbline score` first")
        return
    connection = connect(warehouse, "model_label " + sql("report/metric"))
    labels, found = model_labels(connection), query(connection, "report/metric")
    for names, lines in measured(found, store.read("control"), labels).values():
        show(console, names, lines)
    say("in brackets: 95% intervals; ranks: 95% sets, for all models of a benchmark")
    few = sorted({r["benchmark"] for r in found.to_pylist() if r["cluster_values"]})
    if few:
        say(
            "no interval below five words, frames or other clusters, nor a claim: "
            f"{', '.join(few)}; `cluster_values` of metric_value has their figures",
        )
    for row in rows_of(store, sql("report/score")):
        n_scored = row["n_scored"] - row["n_unknown"] - row["n_unnatural"]
        if n_scored < (row["n_usable"] or 0):
            say(
                f"{row['model']} has scores of {n_scored:,} of the {row['n_usable']:,} pairs "
                f"of {row['benchmark']}; figures are of these. plumbline score does the others",
            )
    say(f"wrote {rows.num_rows:,} metrics to {warehouse}; next: plumbline report")


def report(
    context: typer.Context,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    out: Annotated[Path, typer.Option(help="Directory of the page and its plots.")] = Path(
        "out/report"
    ),
    at: Annotated[
        str | None, typer.Option(help="As of a version, the start of a run's id, or a time.")
    ] = None,
    site: Annotated[
        Path | None,
        typer.Option(help="Write a site to this directory: pages of models, benchmarks and words."),
    ] = None,
) -> None:
    """Write the report: a first page that answers, and an appendix with everything else.

    Beside them is words.html, a search over the words. All work without network; plots lie beside
    them as SVG files, their data as CSV.

    Example: plumbline report --warehouse out/warehouse --out out/report
    """
    if context.invoked_subcommand:
        return
    from rich.console import Console

    from plumbline.pipelines.report.write import write_report
    from plumbline.warehouse.storage.opening import version_of
    from plumbline.warehouse.storage.store import Store

    console = Console(highlight=False, markup=False, emoji=False)
    with console.status("drawing the report"):
        store = Store.open(warehouse, create=False)
        read = store.pinned(version_of(store, at)) if at is not None else store
        page = write_report(read, site or out, is_site=site is not None)
    plots, pages = (len(list((site or out).rglob(f"*.{kind}"))) for kind in ("svg", "html"))
    say(f"wrote {page}, {pages} pages with {plots} plots; open it in a browser")


def push(
    repo: Annotated[str, typer.Option(help="The model's repository of the hub, OWNER/NAME.")],
    model: Annotated[str, typer.Option(help="A model's name, or the start of its key.")],
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="Where a benchmark is, as NAME=OWNER/NAME; repeatable."),
    ] = None,
    space: Annotated[
        str, typer.Option(help="Also push the report, to this static Space: OWNER/NAME.")
    ] = "",
    direct: Annotated[
        bool, typer.Option("--direct", help="Commit to the model instead of a pull request.")
    ] = False,
    private: Annotated[
        bool, typer.Option("--private", help="Where the Space is created: for its owner alone.")
    ] = False,
    dry_run: Annotated[
        Path | None, typer.Option(help="Write the files to this directory, push nothing.")
    ] = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Push a model's results to the hub: .eval_results as a pull request; the report as a Space.

    Results are of benchmarks that were pushed with `benchmark push`, here or by somebody else
    (--dataset). The token is HF_TOKEN, or that of `hf auth login` (docs/hub.md).

    Example: plumbline report push --repo me/gpt --model me/gpt --space me/report --dry-run out/hub
    """
    from plumbline.eval_workers.hub.upload import Repository, add, written
    from plumbline.eval_workers.hub.upload import push as push_files
    from plumbline.pipelines.extras import require
    from plumbline.pipelines.report.paper import hub
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.storage.store import Store

    require("huggingface_hub")
    to, page = Repository("model", repo), Repository("space", space) if space else None
    store = Store.open(warehouse, create=False)
    sets = hub.data_sets(store, _named(dataset or ()))
    url = page.url if page else ""
    results = hub.eval_results(store, model, sets, url)
    files = hub.page_files(store, [repo], [s.repository for s in sets.values()]) if page else {}
    for line in results.said:
        say(line)
    for line in results.skipped:
        say(f"Skipped {line}", err=True)
    if dry_run:
        for path in written(results.files, dry_run / "model") + written(files, dry_run / "space"):
            say(f"Wrote {path}")
        say("Nothing was pushed. Next: the same command without --dry-run")
        return
    config = {"repo": repo, "model": model, "space": space, "direct": direct}
    with recorded(store, "report push", config):
        if page:
            shown = push_files(page, files, hub.PAGE_TITLE, hub.PAGE_FILES, private=private)
            say(f"Pushed the report to {shown.url}")
        done = add(to, results.files, "Evaluation results", pull_request=not direct)
    say(f"Pushed {len(results.files)} files of results: {done.url}")


def _named(given: Sequence[str]) -> dict[str, str]:
    """Repositories by benchmark, of ``NAME=OWNER/NAME``."""
    from plumbline.eval_workers.hub.upload import Repository
    from plumbline.warehouse.errors import UsageProblem

    found = {}
    for text in given:
        name, is_pair, repository = text.rpartition("=")
        if not (is_pair and name):
            raise UsageProblem(f"--dataset {text}", "is not a data set", "give NAME=OWNER/NAME")
        found[name] = Repository("dataset", repository).name
    return found


def figure(
    name: Annotated[
        str, typer.Argument(help="Which plot of the report; without, lists them.")
    ] = "",
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    form: Annotated[
        str, typer.Option("--format", help="pdf, svg or png; else that of --out, or pdf.")
    ] = "",
    width: Annotated[str, typer.Option(help="Such as 3.3in, 84mm or 240pt.")] = "3.3in",
    out: Annotated[Path | None, typer.Option(help="File; else the plot's name, here.")] = None,
    title: Annotated[bool, typer.Option("--title", help="With its title inside.")] = False,
) -> None:
    """Write a plot of the report for a paper: any width, type of 8 points, fonts embedded.

    Example: plumbline figure pd-use-5 --format pdf --width 3.3in --out pd.pdf
    """
    from plumbline.pipelines.report.paper.figures import figure_file, figures, inches, written

    if not name:
        _list({stem: one.alt for stem, one in figures(warehouse).items()}, "plot")
        return
    form = form or (out.suffix[1:].lower() if out else "") or "pdf"
    content = figure_file(warehouse, name, form, inches(width), has_title=title)
    path = written(out or Path(f"{name}.{form}"), content)
    say(f"wrote {path}, {width} wide; what to cite: plumbline cite")


def table(
    name: Annotated[
        str, typer.Argument(help="Which table of the report; without, lists them.")
    ] = "",
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    form: Annotated[str, typer.Option("--format", help="latex, markdown or csv.")] = "latex",
    out: Annotated[Path | None, typer.Option(help="File; else standard output.")] = None,
) -> None:
    """Print a table of the report for a paper: LaTeX (booktabs), Markdown or CSV.

    Example: plumbline table models --format latex --out models.tex
    """
    from plumbline.pipelines.report.paper.figures import named
    from plumbline.pipelines.report.paper.tables import table_text, tables

    found = tables(warehouse, name) or tables(warehouse)
    if not name:
        _list({name: one.caption for name, one in found.items()}, "table")
        return
    _give(table_text(named(found, "table", name), form, name), out)


def card(
    model: Annotated[str, typer.Argument(help="A model's name, or the start of its key.")],
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    out: Annotated[Path | None, typer.Option(help="File; else standard output.")] = None,
) -> None:
    """Print a section for a model's card: figures with intervals, limits, what not to conclude.

    Example: plumbline card EleutherAI/pythia-70m --out card.md
    """
    from plumbline.pipelines.report.paper.card import model_card

    _give(model_card(warehouse, model), out)


def cite() -> None:
    """Print BibTeX of Plumbline and of the papers whose methods and data it uses.

    Example: plumbline cite
    """
    from plumbline.pipelines.report.paper.tables import citations

    _give(citations(), None)


def _give(text: str, out: Path | None) -> None:
    """Text to a file, or to standard output as it is."""
    from plumbline.pipelines.report.paper.figures import written

    if out is None:
        for line in text.splitlines():
            say(line)
    else:
        say(f"wrote {written(out, text.encode('utf-8', 'replace'))}; what to cite: plumbline cite")


def _list(found: dict[str, str], kind: str) -> None:
    """Names with a line each."""
    for name, what in found.items():
        say(f"{name}: {what}")
    if not found:
        say(
            f"no {kind} yet: run `plumbline measure` or `plumbline corpus associate` first",
            err=True,
        )
