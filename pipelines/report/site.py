"""A report as a site: links between its pages, and the source files of their figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.models_by_text import TrainingTexts
from plumbline.pipelines.report.findings.sentences import capital, preferences
from plumbline.pipelines.report.front.matrix import brief, name_order
from plumbline.pipelines.report.metric_tables import (
    IN_BRACKETS,
    by_metric,
    metric_columns,
    rank_columns,
)
from plumbline.pipelines.report.model import (
    Cell,
    Columns,
    Figure,
    Link,
    Page,
    PageTable,
    Section,
    counted,
    first_of,
    stem,
    table,
)
from plumbline.pipelines.report.plots.svg import INK, Panel, short, svg
from plumbline.pipelines.report.rows import Row, Rows, by_set, set_name

_MEANING = (
    "US is the share of pairs without a preference, PD the share that prefers the first sentence "
    "less the share that prefers the second. Ranks are by US, the largest first; a model has all "
    "ranks that its 95% interval allows. Models whose ranks overlap can't be told apart."
)
_UNKNOWN = "Models of no known family"


@dataclass(frozen=True)
class SourceFiles:
    """The files that a page's figures come from; ``name`` is their name or pattern.

    ``sha256`` is the file's hash or, for several files, the hash of the list that ``sha256sum``
    prints. ``address`` is the site's page that lists the files.
    """

    name: str
    n_files: int
    sha256: str
    address: str


@dataclass(frozen=True)
class PageFrame:
    """Links above a page, and the sources below it.

    ``here`` is the page's own address among the links, ``up`` the path to the directory of the
    site's first page, and ``command`` the command that makes the site.
    """

    links: Sequence[Link] = ()
    here: str = ""
    up: str = ""
    sources: Sequence[SourceFiles] = ()
    command: str = ""


#: The frame of a page that isn't part of a site: without links and sources.
BARE = PageFrame()


def _no_sources(kind: str, name: str) -> Sequence[SourceFiles]:
    return ()


def _no_pages(facts: Facts) -> Mapping[str, Page]:
    return {}


@dataclass(frozen=True)
class Site:
    """A report as a site, which may have further pages.

    Attributes:
        links: links to the further pages.
        command: the command that makes the site.
        sources: function from a page's kind (`models`, `benchmarks`, `words`, `pairs` or empty) and
            subject to the files behind the page.
        pages: function from facts to the further pages by file name.
        report_links: links to the report's own pages (``with_report_links``).
    """

    links: Sequence[Link] = ()
    command: str = ""
    sources: Callable[[str, str], Sequence[SourceFiles]] = _no_sources
    pages: Callable[[Facts], Mapping[str, Page]] = _no_pages
    report_links: Sequence[Link] = ()

    @property
    def every(self) -> list[Link]:
        """The links above every page: first to the report's pages, then to the further pages."""
        return [*self.report_links, *self.links]

    def frame(self, here: str, kind: str = "", name: str = "", up: str = "") -> PageFrame:
        """The frame of the page at ``here``; ``kind`` and ``name`` are as for ``sources``."""
        return PageFrame(self.every, here, up, self.sources(kind, name), self.command)

    def with_report_links(self, facts: Facts, n_words: int, n_pairs: int) -> Site:
        """The site with links to those pages of its report that have content."""
        texts, rows = TrainingTexts(facts), _measured(facts)
        models = {r["model_key"]: r for r in rows}
        links = [Link("Overview", "index.html")]
        if models:
            families = [*filter(None, texts.families(list(models.values())))]
            by_family = f" by family ({first_of(families, 8)})" if families else ""
            benchmarks_text = counted(len(by_set(rows)), "benchmark")
            models_text = f"{counted(len(models), 'model')}{by_family} on {benchmarks_text}"
            links.append(Link("Models", "models.html", f"{models_text}: US, PD, and ranks."))
        if n_words:
            says = "lean in the text, frequency, and what models make of sentences about them."
            links.append(Link("Words", "words.html", f"{counted(n_words, 'word')}: {says}"))
        if n_pairs:
            says = f"{counted(n_pairs, 'sentence pair')}, each with the log ratio of every model."
            links.append(Link("Pairs", "pairs.html", says))
        says = "Methods, limits, every figure and table with its query."
        links.append(Link("Appendix", "appendix.html", says))
        return replace(self, report_links=links)


def _measured(facts: Facts) -> Rows:
    return facts.rows("metric").where(subset="all", metric=("us", "pd")).only(lambda r: r["n"])


def _by_family(facts: Facts) -> Rows:
    """Rows of US and PD, sorted by benchmark, family and model (``name_order``)."""
    rows, texts = _measured(facts), TrainingTexts(facts)

    def place(row: Row) -> tuple[object, ...]:
        return (
            name_order((set_name(row), "")),
            *texts.place(row),
            *name_order((row["model"], row["model_key"])),
        )

    return Rows(sorted(rows, key=place), rows.sql)


def models_page(facts: Facts, links: Mapping[str, str]) -> Page:
    """Models by family: US and PD with intervals, and the ranks that each may have.

    Args:
        links: name of a model or benchmark -> address of its page.
    """
    rows, texts = _by_family(facts), TrainingTexts(facts)
    sections = [
        Section(
            f"family-{k}",
            name or _UNKNOWN,
            _preferred(texts, family_rows),
            tables=[_table(name or _UNKNOWN, family_rows, links)],
        )
        for k, (name, family_rows) in enumerate(texts.families(rows).items())
    ]
    ranked = rows.where(metric="us").only(lambda r: r["rank"] is not None)
    if figures := [_ranks(family_rows) for family_rows in by_set(ranked)]:
        sections.append(Section("ranks", "Ranks by US", figures=figures))
    return Page(sections=sections, title="Models by family", lede=_MEANING, home="index.html")


def _preferred(texts: TrainingTexts, rows: Rows) -> list[str]:
    pd_by_set = by_set(rows.where(metric="pd"))
    return [f"{capital(preferences(texts, rows_of_set))}." for rows_of_set in pd_by_set]


def _table(family: str, rows: Rows, links: Mapping[str, str]) -> PageTable:
    def linked(name: str) -> Cell:
        return Cell(name, link=links.get(name, ""))

    metric_rows = by_metric(rows, "model", "benchmark", "groups")
    columns: Columns = [
        ("model", lambda r: linked(r["model"])),
        ("benchmark", lambda r: linked(set_name(r))),
        *metric_columns(rows),
        *rank_columns(rows),
        ("pairs", "n"),
    ]
    return table(f"{family}: all pairs, {IN_BRACKETS}", metric_rows, columns, searchable=True)


def _ranks(rows: Rows) -> Figure:
    """A plot of the ranks that each model may have on one benchmark, models in order of rows."""
    models = [str(r["model"]) for r in rows]
    panel = Panel("rank by US (1: the largest share without a preference)")
    benchmark = set_name(rows[0])
    panel.estimates(enumerate(rows), "rank", INK, size=5)
    panel.list_down((brief(model, models) for model in models), len(rows) - 0.3, -0.7)
    return Figure(
        stem("ranks", benchmark),
        f"The ranks by US that each model may have on {benchmark}, as in the tables of this page.",
        f"{benchmark}: the rank of each model by US, and the ranks that its 95% interval allows. "
        "Models of a family stand together.",
        svg(short(f"{benchmark}: ranks by US", 66), [panel], 120 + 22 * len(rows)),
        rows,
    )
