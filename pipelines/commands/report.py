"""`plumbline report`, and commands that write its plots and tables for a paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from plumbline.pipelines.command.base import Command, Context, Done, On
from plumbline.pipelines.command.fields import OutputDirectory, OutputFile
from plumbline.pipelines.report.facts import Facts, narrowed
from plumbline.pipelines.report.model import plain_rows
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import say

#: Corpora and contrasts with words that `why` must explain before the report ranks them.
_TO_ASK = """
SELECT DISTINCT corpus, contrast
FROM lean_candidate SEMI JOIN shown_contrast USING (corpus, contrast)
ANTI JOIN word_evidence USING (corpus, contrast, word)
ORDER BY ALL;"""

#: The name under which `report table` prints the paragraph on methods.
_METHODS = "methods"
_Patterns: TypeAlias = Annotated[tuple[str, ...], On(repeated=True, metavar="PATTERN")]


class Report(Command):
    """Write the report: a first page with the main answer, and an appendix with everything else.

    On two more pages, words.html and pairs.html, you can search words and sentence pairs. All pages
    work offline, and the data of each chart is saved as a CSV file. --benchmark keeps only matching
    benchmarks and prompts, and the models scored on them. --model keeps only matching models, and
    no findings about several models. Both leave out corpora that no remaining result is compared
    with. --corpus keeps only matching corpora. Ranks and q-values still include all models.

    Example: plumbline report --warehouse out/warehouse --out out/report
    """

    records = False

    out: Annotated[OutputDirectory, Field(description="Directory for the report's files.")] = Path(
        "out/report"
    )
    benchmark: Annotated[
        _Patterns,
        Field(description="Show only matching benchmarks or prompts ('ages*'). Can be repeated."),
    ] = ()
    model: Annotated[
        _Patterns,
        Field(description="Show only matching models, such as 'pythia-*'. Can be repeated."),
    ] = ()
    corpus: Annotated[
        _Patterns,
        Field(description="Show only matching corpora, such as 'news*'. Can be repeated."),
    ] = ()

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.report.write import write_report

        store = context.store
        about = {"benchmark": self.benchmark, "model": self.model, "corpus": self.corpus}
        by_counts = list(_ask_first(store, narrowed(Facts(store), about)))
        page, first = write_report(store, self.out, about=about)
        questions = [f"{question} {sentence}" for _, question, sentence in first.answers]
        said = [first.title, *first.sections[0].intro, *questions, *by_counts]
        return Done(said=said, files=[str(page)], next="plumbline report figure")


def _ask_first(store: Store, facts: Facts) -> Iterator[str]:
    """Compute the leans of words that the report ranks. If this fails, yield a line to print."""
    from plumbline.jobs.evidence.explanation import explain_candidates

    problems = []
    for row in facts.query(_TO_ASK):
        corpus, contrast = row["corpus"], row["contrast"]
        try:
            explain_candidates(store, corpus, contrast)
        except (BadInput, MissingComponent, UsageProblem) as e:
            problems.append(f"{e.args[0]} {e.args[1]}")
    if problems:
        why = "; ".join(dict.fromkeys(problems))
        yield f"words are ranked over co-occurrences: {why}"


class ReportFigure(Command):
    """Save one of the report's plots as a file for a paper.

    Choose the width with --width. Text in the plot is 8-point, and PDF files embed their fonts.

    Example: plumbline report figure pd-use-5 --width 3.3 --out pd.svg
    """

    records = False

    name: Annotated[
        str,
        Field(description="Plot to write; default: list the names of all plots."),
        On(positional=True),
    ] = ""
    width: Annotated[float, Field(ge=2, le=40, description="Width in inches.")] = 3.3
    out: Annotated[
        OutputFile | None, Field(description="File to write (.pdf, .svg, .png); default: NAME.pdf.")
    ] = None

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.report import paper

        facts = Facts(context.store)
        if not self.name:
            plots = paper.figures(facts)
            return _listed({stem: plot.caption for stem, plot in plots.items()}, "plot")
        form = (self.out.suffix[1:].lower() if self.out else "") or "pdf"
        drawn, *data = paper.figure_files(facts, self.name, form, self.width).items()
        path = paper.write_file(self.out or Path(f"{self.name}.{form}"), drawn[1])
        paths = [paper.write_file(path.with_suffix(end), content) for end, content in data]
        return Done(files=[*map(str, (path, *paths))])


class ReportTable(Command):
    """Print a table of the report for a paper, as LaTeX (booktabs), Markdown or CSV.

    `plumbline report table methods` prints a paragraph for the methods section: versions, corpus
    hashes, rules, intervals, seeds and rejected rows of the recorded runs.

    Example: plumbline report table models --format markdown
    """

    records = False

    name: Annotated[
        str,
        Field(description="Table to print; default: list the names of all tables."),
        On(positional=True),
    ] = ""
    format: Annotated[
        Literal["latex", "markdown", "csv"], Field(description="Format of the table.")
    ] = "latex"

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.report import paper

        facts = Facts(context.store)
        if self.name == _METHODS:
            lines = paper.methods(facts).splitlines()
            if self.format == "latex":
                lines = [paper.latex(line) for line in lines]
            return Done(said=lines)
        by_name = paper.tables(facts)
        if not self.name:
            captions = {name: table.caption for name, table in by_name.items()}
            return _listed(captions and {**captions, _METHODS: "Paragraph on methods"}, "table")
        table = paper.named(by_name, "table", self.name)
        text = paper.table_text(table, self.format, self.name)
        return Done(said=text.splitlines(), table=list(plain_rows(table)))


def _listed(descriptions: Mapping[str, str], kind: str) -> Done:
    if not descriptions:
        start = "`plumbline measure` or `plumbline corpus associate`"
        say(f"no {kind} yet: run {start} first", err=True)
    return Done(rows=[{"name": name, "shows": what} for name, what in descriptions.items()])
