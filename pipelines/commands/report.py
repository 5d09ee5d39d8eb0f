"""`plumbline report`, its plots and tables for a paper, a model's card, and results for the hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.pairs.sharing import upload
from plumbline.pipelines.command.base import Command, Context, Done, On, values_of
from plumbline.pipelines.command.fields import Benchmarks, OutputDirectory, OutputFile
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.storage.opening import version_of
from plumbline.warehouse.storage.run_records import recorded
from plumbline.warehouse.text.escape import say

if TYPE_CHECKING:
    from plumbline.pipelines.report.facts import Facts
    from plumbline.warehouse.storage.store import Store

_CITE = "What to cite: plumbline report cite"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Narrowed:
    """Patterns of the names to show; without patterns, all are shown."""

    benchmark: Benchmarks = ()
    model: Annotated[
        tuple[str, ...],
        Field(description="Only these models, with or without owner, as 'pythia-*'; repeatable."),
        On(repeated=True, metavar="PATTERN"),
    ] = ()
    corpus: Annotated[
        tuple[str, ...],
        Field(description="Only these corpora, a pattern; repeatable."),
        On(repeated=True, metavar="PATTERN"),
    ] = ()

    @property
    def about(self) -> dict[str, tuple[str, ...]]:
        """The patterns by kind of name, as ``facts.narrowed`` takes them."""
        return {"benchmark": self.benchmark, "model": self.model, "corpus": self.corpus}

    def facts(self, store: Store) -> Facts:
        """The facts that match the patterns."""
        from plumbline.pipelines.report import facts

        return facts.narrowed(facts.Facts(store), self.about)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Report(Narrowed, Command):
    """Write the report: a first page that answers, and an appendix with everything else.

    Beside them are words.html and pairs.html, which search words and sentence pairs. All work
    without network; plots lie beside them as SVG files, their data as CSV. With --benchmark,
    --model and --corpus they show only what these patterns name; ranks and corrected q stay those
    over all models of a benchmark.

    Example: plumbline report --warehouse out/warehouse --out out/report
    """

    records = False

    out: Annotated[OutputDirectory, Field(description="Directory of the page and its plots.")] = (
        Path("out/report")
    )
    at: Annotated[
        str | None, Field(description="As of a version, the start of a run's id, or a time.")
    ] = None
    site: Annotated[
        OutputDirectory | None,
        Field(description="Write a site to this directory: pages of models, benchmarks and words."),
    ] = None

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.report.write import write_report

        store, to = context.store, self.site or self.out
        read = store if self.at is None else store.pinned(version_of(store, self.at))
        page = write_report(read, to, is_site=self.site is not None, about=self.about)
        n_pages, n_plots = (len(list(to.rglob(f"*.{kind}"))) for kind in ("html", "svg"))
        said = f"{n_pages} pages with {n_plots} plots; open the first in a browser"
        return Done(said=[said], files=[str(page)])


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ReportFigure(Narrowed, Command):
    """Write a plot of the report for a paper: any width, type of 8 points, fonts embedded.

    Example: plumbline report figure pd-use-5 --format pdf --width 3.3in --out pd.pdf
    """

    records = False

    name: Annotated[
        str,
        Field(description="Name of a plot of the report; without one, lists them."),
        On(positional=True),
    ] = ""
    format: Annotated[
        Literal["pdf", "svg", "png"] | None, Field(description="Default: that of --out, or pdf.")
    ] = None
    width: Annotated[str, Field(description="Width, as 3.3in, 84mm or 240pt.")] = "3.3in"
    out: Annotated[OutputFile | None, Field(description="Default: named after the plot.")] = None
    title: Annotated[bool, Field(description="Draw its title, too.")] = False

    def check(self) -> None:
        from plumbline.pipelines.report.paper import figure_files

        figure_files.inches(self.width)

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.report.paper import figure_files

        if not self.name:
            plots = figure_files.figures(self.facts(context.store))
            return _listed({stem: plot.alt for stem, plot in plots.items()}, "plot")
        form = self.format or (self.out.suffix[1:].lower() if self.out else "") or "pdf"
        how = (form, figure_files.inches(self.width))
        facts = self.facts(context.store)
        drawn, *data = figure_files.figure_files(
            facts, self.name, *how, has_title=self.title
        ).items()
        path = figure_files.write_file(self.out or Path(f"{self.name}.{form}"), drawn[1])
        paths = [figure_files.write_file(path.with_suffix(end), content) for end, content in data]
        return Done(said=[_CITE], files=[*map(str, (path, *paths))])


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ReportTable(Narrowed, Command):
    """Print a table of the report for a paper: LaTeX (booktabs), Markdown or CSV.

    Example: plumbline report table models --format latex --out models.tex
    """

    records = False

    name: Annotated[
        str,
        Field(description="Name of a table of the report; without one, lists them."),
        On(positional=True),
    ] = ""
    format: Annotated[
        Literal["latex", "markdown", "csv"], Field(description="Format of the table.")
    ] = "latex"
    out: Annotated[OutputFile | None, Field(description="File; else standard output.")] = None

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.report.model import plain_rows
        from plumbline.pipelines.report.paper import figure_files, tables

        facts = self.facts(context.store)
        by_name = tables.tables(facts, self.name) or tables.tables(facts)
        if not self.name:
            return _listed({name: table.caption for name, table in by_name.items()}, "table")
        table = figure_files.named(by_name, "table", self.name)
        done = _text_result(tables.table_text(table, self.format, self.name), self.out)
        return replace(done, table=list(plain_rows(table)))


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ReportCard(Command):
    """Print a section for a model's card: figures with intervals, limits, what not to conclude.

    It begins with front matter, `model-index`: figures that the model's page on the hub shows.

    Example: plumbline report card EleutherAI/pythia-70m --out card.md
    """

    reads = "pair_score"
    records = False

    model: Annotated[
        str,
        Field(description="A model's name, directory, or start of its key."),
        On(positional=True),
    ]
    out: Annotated[OutputFile | None, Field(description="File; else standard output.")] = None

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.report.paper.model_card import model_card

        return _text_result(model_card(context.store, self.model), self.out)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Cite(Command):
    """Print BibTeX of Plumbline and of the papers whose methods and data a warehouse uses.

    Example: plumbline report cite
    """

    records = False

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.report.paper import tables

        return _text_result(tables.citations(context.store), None)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Methods(Narrowed, Command):
    """Print the paragraph on methods for a paper, one sentence per line, from the recorded runs.

    Versions, commit, hashes of the corpora, revisions, dtypes, rules, intervals, seeds, and what
    was rejected. Seeds, rejects and versions are those of all runs.

    Example: plumbline report methods --format latex --out methods.tex
    """

    records = False

    format: Annotated[Literal["text", "latex"], Field(description="Format of the text.")] = "text"
    out: Annotated[OutputFile | None, Field(description="File; else standard output.")] = None

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.report.paper import tables
        from plumbline.pipelines.report.paper.methods_paragraph import methods

        lines = methods(self.facts(context.store)).splitlines()
        if self.format == "latex":
            lines = [tables.latex(line) for line in lines]
        return _text_result("".join(f"{line}\n" for line in lines), self.out)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ReportExport(Narrowed, Command):
    """Write results for other tools, with intervals and all pairs: Every Eval Ever, or Inspect.

    Each model and benchmark has one record, in the directories of its datastore, or one log.
    `score import DIR --logs eee` (or inspect) reads the scores back, without loss (docs/hub.md).

    Example: plumbline report export --to eee --out out/records
    """

    reads = "pair_score"
    records = False

    to: Annotated[
        Literal["eee", "inspect"], Field(description="Format: Every Eval Ever, or Inspect.")
    ] = "eee"
    out: Annotated[
        OutputDirectory, Field(description="Directory; records are in DIR/data, logs in DIR/logs.")
    ] = Path("out/records")

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.report.paper.every_eval_ever import evaluations
        from plumbline.pipelines.report.paper.inspect_log import log_files

        rows, form = [], log_files if self.to == "inspect" else None
        for evaluation in evaluations(context.store, self.facts(context.store), form):
            upload.written(evaluation.files, self.out)
            counts = {"n_results": evaluation.n_results, "n_pairs": evaluation.n_pairs}
            rows.append({"model": evaluation.model, "benchmark": evaluation.benchmark, **counts})
        return Done(rows=rows, files=[str(self.out / ("logs" if form else "data"))])


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ReportPush(Command):
    """Push a model's results to its repository of the hub: .eval_results, as a pull request.

    Only benchmarks have results there that were pushed with `benchmark push`, here or by somebody
    else (--dataset). The token is HF_TOKEN, or that of `hf auth login` (docs/hub.md).

    Example: plumbline report push --repo me/gpt --model me/gpt --dry-run out/hub
    """

    reads = "pair_score"
    records = False  # ``run`` itself records a push, but not a dry run

    repo: Annotated[str, Field(description="The model's repository of the hub, OWNER/NAME.")]
    model: Annotated[str, Field(description="A model's name, directory, or start of its key.")]
    dataset: Annotated[
        tuple[str, ...],
        Field(description="Where a benchmark is, as NAME=OWNER/NAME; repeatable."),
        On(repeated=True),
    ] = ()
    direct: Annotated[bool, Field(description="Commit to the model instead of a pull request.")] = (
        False
    )
    dry_run: Annotated[
        OutputDirectory | None,
        Field(description="Write the files to this directory, push nothing."),
    ] = None

    def check(self) -> None:
        """Raise for invalid names of repositories."""
        upload.Repository("model", self.repo)
        _repositories(self.dataset)

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.report.facts import Facts
        from plumbline.pipelines.report.paper import hub
        from plumbline.pipelines.report.paper.data_sets import data_sets

        store = context.store
        sets = data_sets(Facts(store), _repositories(self.dataset))
        results = hub.eval_results(store, self.model, sets)
        for line in results.skipped:
            say(f"Skipped {line}", err=True)
        if self.dry_run:
            paths = upload.written(results.files, self.dry_run)
            said = [*results.lines, "Nothing was pushed; the same command without --dry-run pushes"]
            return Done(said=said, files=[*map(str, paths)])
        to, title = upload.Repository("model", self.repo), "Evaluation results"
        with recorded(store, "report push", values_of(self)):
            done = upload.add(to, results.files, title, pull_request=not self.direct)
        return Done(said=[*results.lines, f"Pushed {len(results.files)} files: {done.url}"])


def _repositories(options: Sequence[str]) -> dict[str, str]:
    """Repositories by benchmark, from options ``NAME=OWNER/NAME``."""
    repositories = {}
    for text in options:
        name, is_pair, repository = text.rpartition("=")
        if not (is_pair and name):
            raise UsageProblem(f"--dataset {text}", "is not a data set", "give NAME=OWNER/NAME")
        repositories[name] = upload.Repository("dataset", repository).name
    return repositories


def _text_result(text: str, out: Path | None) -> Done:
    """A result with a text, in the file ``out`` or as lines to print."""
    from plumbline.pipelines.report.paper.figure_files import write_file

    if out is None:
        return Done(said=text.splitlines())
    write_file(out, text.encode("utf-8", "replace"))
    return Done(said=[_CITE], files=[str(out)])


def _listed(descriptions: Mapping[str, str], kind: str) -> Done:
    if not descriptions:
        start = "`plumbline measure` or `plumbline corpus associate`"
        say(f"no {kind} yet: run {start} first", err=True)
    return Done(rows=[{"name": name, "shows": what} for name, what in descriptions.items()])
