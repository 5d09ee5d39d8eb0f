"""Write a warehouse's report: the first page, the appendix, and the charts with their data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from operator import itemgetter
from pathlib import Path

import plumbline
from plumbline.eval_workers.models.model_texts import text_name
from plumbline.eval_workers.pairs.benchmarks.closed_world import LEXICON
from plumbline.pipelines.report import sections
from plumbline.pipelines.report.estimates import SUBSETS, finding
from plumbline.pipelines.report.facts import Facts, TrainingTexts, narrowed
from plumbline.pipelines.report.model import Figure, Page, count, counted, first_of, stem, unique
from plumbline.pipelines.report.rows import FIT, Row, Rows, by_set, set_name
from plumbline.pipelines.report.search import (
    block_files,
    n_pairs_by_word,
    pairs,
    search_page,
    words,
)
from plumbline.pipelines.report.templates import rendered, sections_from
from plumbline.warehouse.errors import MissingComponent, disk_problems
from plumbline.warehouse.paths import replacing
from plumbline.warehouse.run_records import package_versions
from plumbline.warehouse.schema.catalog import units_of_columns
from plumbline.warehouse.storage.locks import claimed
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import as_csv
from plumbline.warehouse.text.progress import progress

#: Maximum number of benchmarks, models or corpora to name above the title, and of warnings.
_NAMED = 3
#: Names of temporary files that a killed command leaves (``paths.replacing``).
_TEMPORARY = f"_{'[0-9a-f]' * 32}.tmp"
#: Sections of the appendix that the first page covers in full, or that answer no question.
_OWN = ("methods", "limits", "preference", "follow", "text", "models")


def write_report(
    warehouse: Store | str | Path,
    out: str | Path,
    *,
    about: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Path, Page]:
    """Write a warehouse's report to ``out``; return the path and content of ``index.html``.

    Also writes ``appendix.html``, the files of each chart (``data_of``), and the search pages
    ``words.html`` and ``pairs.html`` unless they would be empty. ``about`` has name patterns that
    limit the report (``facts.narrowed``). Raises ``UsageProblem`` if a pattern matches nothing.
    Raises ``BadInput`` if ``warehouse`` isn't a warehouse, or if ``out`` can't be written.
    """
    out = Path(out)
    # Lock before reading, so that a report isn't overwritten with older results.
    with disk_problems(out), claimed(out / ".index.claim", wait=True), progress("report"):
        facts = narrowed(Facts(warehouse), about or {})
        appendix = appendix_of(facts)
        found_pairs = pairs(facts)
        found_words = words(facts, n_pairs_by_word(found_pairs) if found_pairs else {})
        searches = [search for search in (found_words, found_pairs) if search]
        first = front(facts, appendix)
        links = [(f"{search.kind}.html", f"Search: {search.title}") for search in searches]
        first.links = [("appendix.html", "Appendix: all figures and tables"), *links, *first.links]
        pages = {"index.html": render(first), "appendix.html": render(appendix)}
        for search in searches:
            pages[f"{search.kind}.html"] = search_page(search)
            pages |= {f"{search.kind}/{name}": text for name, text in block_files(search)}
        files = {name: text.encode("utf-8", "replace") for name, text in pages.items()}
        figures = [*first.figures, *appendix.figures]
        for figure in figures:
            files |= {f"{figure.stem}{ending}": data for ending, data in data_of(figure).items()}
        if figures:
            files["vega.js"] = _vega()
        for name, content in files.items():
            with replacing(out / name) as temporary:
                temporary.write_bytes(content)
        stale = [out / name for name in {"words.html", "pairs.html"} - set(pages)]
        for path in (*stale, *out.glob(_TEMPORARY), *out.glob(f"*/{_TEMPORARY}")):
            path.unlink(missing_ok=True)
    return out / "index.html", first


def appendix_of(facts: Facts) -> Page:
    """Return the appendix. Repeated section anchors and chart names get numbers."""
    found = sections.sections(facts)
    anchors = unique((section.anchor for section in found), "-")
    stems = iter(unique((f.stem for section in found for f in section.figures), "-"))
    made = [
        replace(
            section,
            anchor=anchor,
            figures=[replace(figure, stem=next(stems)) for figure in section.figures],
        )
        for section, anchor in zip(found, anchors, strict=True)
    ]
    return Page(made, title="Appendix: all figures and tables", home="index.html")


def render(page: Page) -> str:
    return rendered("page.html", "page.js", page=page)


def data_of(figure: Figure) -> dict[str, bytes]:
    """Return a chart's files by extension: its Vega-Lite specification, and its rows as CSV.

    A chart without rows has no CSV file. The specification's ``usermeta`` has the caption, the
    columns with their units, the query, versions, and how to cite Plumbline.
    """
    units = units_of_columns()
    about = {
        "name": figure.stem,
        "caption": figure.caption,
        "n_rows": len(figure.rows),
        "columns": {name: units.get(name, "") for name in (figure.rows or [{}])[0]},
        "query": figure.rows.sql,
        "methods": "docs/methods.md",
        "versions": package_versions(),
        "cite": f"Plumbline {plumbline.__version__}, CITATION.cff",
    }
    spec = {**figure.specification, "usermeta": about}
    files = {".vl.json": json.dumps(spec, ensure_ascii=False).encode("utf-8", "replace")}
    if figure.rows:
        files[".csv"] = as_csv(figure.rows).encode("utf-8", "replace")
    return files


def _vega() -> bytes:
    """Return the script that draws charts. Building the package puts it into this folder."""
    script = resources.files(__package__) / "vega.js"
    if not script.is_file():
        raise MissingComponent("vega.js", "is missing from the package", "pip install .")
    return script.read_bytes()


@dataclass(frozen=True)
class Headline:
    """The slopes that the first page is about, on one benchmark and one corpus.

    Attributes:
        slopes: the slopes of all models (rows of ``metric_value``), smallest first.
        own: the slopes of models that were trained on the corpus.
        fit: the row of view ``fit`` to draw. Its slope is the median of the slopes in ``about``.
    """

    slopes: Rows
    own: Rows
    fit: Row
    texts: TrainingTexts

    @property
    def about(self) -> Rows:
        """The slopes that the page describes: ``own`` or, if ``own`` is empty, all ``slopes``."""
        return self.own or self.slopes

    @property
    def is_cause(self) -> bool:
        """True if every model was trained in this warehouse, and only on this corpus."""
        return len(self.own) == len(self.slopes) and self.texts.are_ours(self.slopes)


def front(facts: Facts, appendix: Page) -> Page:
    """Return the first page of the report. Warnings and links come from ``appendix``.

    The first section has the main answer. Later sections cover models, corpus and benchmarks.
    """
    others = [s for s in appendix.sections if s.intro and s.anchor not in _OWN]
    questions = [section for section in others if "?" in section.title]
    head, pd = headline(facts), headline_pd(facts)
    values = {"head": head, "others": questions, "pd": pd}
    answer, *parts = sections_from('{% include "_front" %}', facts, **values)
    alerts = [alert for section in appendix.sections for alert in section.alerts]
    if len(alerts) > _NAMED:
        alerts[_NAMED:] = [f"The appendix has {counted(len(alerts) - _NAMED, 'more warning')}."]
    rows = facts.metrics("pd", subset="all").but(n=0, benchmark=pd[0]["benchmark"] if pd else "")
    charts = {stem("pd", row["benchmark"]): row["benchmark"] for row in rows}
    asked = [figure.stem for figure in appendix.figures if figure.stem in charts]
    links = [
        (f"appendix.html#{x}", f"Which sentences of {charts[x]} do models prefer?") for x in asked
    ]
    links += [(f"appendix.html#{s.anchor}", s.title) for s in others if "?" not in s.title]
    return Page(
        [replace(answer, alerts=alerts), *parts],
        title=answer.title,
        about=list(_about(facts, pd[0]["benchmark"] if pd else "")),
        answers=[(f"appendix.html#{s.anchor}", s.title, s.intro[0]) for s in questions],
        links=links,
        is_front=True,
    )


def _about(facts: Facts, benchmark: str) -> Iterator[str]:
    yield max((str(row["started"])[:10] for row in facts.rows("run")), default="")
    for noun, plural in (("benchmark", "benchmarks"), ("model", "models")):
        scored = sorted(facts.rows("score"), key=lambda row: row["benchmark"] != benchmark)
        names = list(dict.fromkeys(str(row[noun]) for row in scored))
        what = noun if len(names) == 1 else f"{len(names)} {plural}"
        yield f"{what}: {first_of(names, _NAMED)}" if names else ""
    texts = [
        f"{text_name(row['corpus'])} ({count(row['n_tokens'] or row['n_kept_tokens']).text} tokens)"
        for row in facts.rows("ledger")
    ]
    yield f"text: {first_of(texts, _NAMED)}" if texts else ""


def headline_pd(facts: Facts) -> Rows:
    """Choose the benchmark that the first page is about; return its rows of metric PD.

    This is the benchmark on which the most models have a preference in at least one pair. Models
    with too few clusters for a verdict aren't counted. Ties go to benchmarks about she/he or
    female/male, then to the first one in ``_first_slopes``, then to the one with the most pairs.
    If the benchmark has several pairs of groups, the pair with the most clear preferences and
    slopes is chosen. Returns no rows if PD wasn't measured.
    """
    moved = facts.metrics("us", subset="all").only(
        lambda r: r["n"] and r["value"] < 1 and not finding(r).lack
    )
    n_models = Counter(name for name, _ in {(r["benchmark"], r["model_key"]) for r in moved})
    fits = _first_slopes(facts)

    def place(pd_rows: Rows) -> tuple[int, bool, int, int]:
        row, name = pd_rows[0], set_name(pd_rows[0])
        is_other = row["groups"] not in ("female/male", "she/he")
        at = [*fits].index(name) if name in fits else len(fits)
        return -n_models[row["benchmark"]], is_other, at, -row["n"]

    def n_clear(pd_rows: Rows) -> int:
        results = (*pd_rows, *fits.get(set_name(pd_rows[0]), ()))
        return sum(finding(row).verdict in ("above", "below") for row in results)

    ordered = sorted(by_set(facts.metrics("pd", subset="all").only(lambda r: r["n"])), key=place)
    same = [of for of in ordered if of[0]["benchmark"] == ordered[0][0]["benchmark"]]
    return max(same, key=n_clear, default=Rows())


def headline(facts: Facts) -> Headline | None:
    """Return slopes on the benchmark that ``headline_pd`` chooses, or ``None`` without slopes."""
    name = next(map(set_name, headline_pd(facts)), "")
    first = _first_slopes(facts).get(name)
    if first is None:
        return None
    texts = TrainingTexts(facts)
    ordered = Rows(sorted(first, key=lambda r: r["value"]), first.sql)
    own = ordered.only(lambda r: texts.relation(r) == "same")
    about = own or ordered
    return Headline(ordered, own, _fits(facts)[_of_fit(about[(len(about) - 1) // 2])], texts)


def _first_slopes(facts: Facts) -> dict[str, Rows]:
    """For each benchmark, choose a corpus, and return the models' slopes on it.

    The corpora are sorted by these rules, and the first one is chosen. Later rules break ties.

    1. Made-up texts come last, except on benchmarks that were made for them.
    2. Corpora on which all of the models were trained come first.
    3. Leans planted in a made-up text come before measured leans, and measured leans before MaxPMI.
    4. Word pairs such as she/he come before word lists.
    5. A wider spread of leans comes first, since it makes the slope's error smaller.
    """
    fits = _fits(facts)
    made_up = {row["corpus"] for row in facts.query("SELECT DISTINCT corpus FROM planted_word;")}
    own = {row["benchmark"] for row in facts.rows("benchmark") if LEXICON in row["sources"]}
    trained_on = {(r["model"], r["trained_on"]) for r in facts.rows("model")}

    def rank(slope_rows: Rows) -> tuple[bool, bool, int, bool, float]:
        is_demo = slope_rows[0]["corpus"] in made_up and slope_rows[0]["benchmark"] not in own
        spread = max(fits[_of_fit(row)]["sxx"] for row in slope_rows)
        is_foreign = not all((row["model"], row["corpus"]) in trained_on for row in slope_rows)
        is_list = "/" not in (slope_rows[0]["contrast"] or "/")
        return is_demo, is_foreign, SUBSETS.index(slope_rows[0]["subset"]), is_list, -spread

    first_text: dict[str, Rows] = {}
    slopes = facts.rows("slope").where(subset=SUBSETS).only(lambda r: _of_fit(r) in fits)
    for slope_rows in sorted(
        slopes.groups(*(column for column in FIT if column != "model_key")), key=rank
    ):
        first_text.setdefault(set_name(slope_rows[0]), slope_rows)
    return first_text


def _fits(facts: Facts) -> dict[tuple[object, ...], Row]:
    return {_of_fit(fit): fit for fit in facts.rows("fit")}


_of_fit = itemgetter(*FIT)
