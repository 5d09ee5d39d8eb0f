"""Writes a warehouse's report: its pages, SVG files and the data behind them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import plumbline
from plumbline.pipelines.report import sections
from plumbline.pipelines.report.explorer.explored_words import MOST_WORDS, SITE_WORDS, explorer
from plumbline.pipelines.report.explorer.pages import (
    explorer_page,
    page_names,
    pair_files,
    pair_page,
    word_files,
)
from plumbline.pipelines.report.explorer.sentence_pairs import pairs
from plumbline.pipelines.report.facts import Facts, narrowed
from plumbline.pipelines.report.front.first_page import Front, figures_of, front, named_after
from plumbline.pipelines.report.model import Figure, Missing, Page, Section, numbered, stem
from plumbline.pipelines.report.rows import set_name, sets
from plumbline.pipelines.report.site import BARE, PageFrame, Site, models_page
from plumbline.pipelines.report.templates import rendered
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.schema.catalog import units_of_columns
from plumbline.warehouse.storage.locks import claimed
from plumbline.warehouse.storage.run_records import package_versions
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.csv_rows import as_csv
from plumbline.warehouse.text.progress import progress

#: The list of a directory's files that a later report may remove.
_LISTING = "plots.txt"


def write_report(
    warehouse: Store | str | Path,
    out: str | Path,
    *,
    is_site: bool = False,
    about: Mapping[str, Sequence[str]] | None = None,
    site: Site | None = None,
) -> Path:
    """Write the report of a warehouse to ``out`` and return the path of its ``index.html``.

    The other files are ``appendix.html``, the plots as SVG with their data (``data_of``), and
    ``words.html`` and ``pairs.html``, which search words and sentence pairs. With ``is_site`` or a
    ``site`` there are also ``models.html``, a page for each model and each benchmark, and the pages
    of ``site``. Files of an earlier report are removed. Raises ``BadInput`` if ``warehouse`` isn't
    a warehouse or ``out`` can't be written, and ``UsageProblem`` if a pattern of ``about``
    (``facts.narrowed``) matches nothing.
    """
    out, is_site = Path(out), is_site or site is not None
    # Lock before reading, so that the last command to write has read the latest version.
    with _directory_lock(out), progress("report"):
        facts = narrowed(Facts(warehouse), about or {})
        appendix = replace(make_page(facts), home="index.html")
        parts = site_parts(facts) if is_site else []
        links = site_links(parts)
        sentence_pairs = pairs(facts)
        words = explorer(facts, sentence_pairs, SITE_WORDS if is_site else MOST_WORDS)
        searches = {
            "words": "words.html" if words else "",
            "pairs": "pairs.html" if sentence_pairs else "",
        }
        added = {"models.html": models_page(facts, links)} if is_site else {}
        added |= site.pages(facts) if site else {}
        extra = {
            name: replace(page, sections=_numbered(page.sections)) for name, page in added.items()
        }
        n_words = len(words.words) if words else 0
        n_pairs = len(sentence_pairs.pairs) if sentence_pairs else 0
        linked = (site or Site()).with_report_links(facts, n_words, n_pairs) if is_site else Site()
        doors = [link for link in linked.every if link.says]
        first = replace(front(facts, appendix), links=links, searches=searches, doors=doors)
        for kind in KINDS:
            fronts = {
                part: named_after(
                    replace(front(part.facts, Page()), searches=searches, questions=(), up="../"),
                    part.stem,
                )
                for part in parts
                if part.kind == kind
            }
            pages_of_kind = {
                f"{part.stem}.html": render_front(page, linked.frame("", kind, part.name, "../"))
                for part, page in fronts.items()
            }
            plots = [figure for page in fronts.values() for figure in figures_of(page)]
            _publish_in(pages_of_kind, plots, out / kind)
        pages = {
            "index.html": render_front(first, linked.frame("index.html")),
            "appendix.html": render(appendix, linked.frame("appendix.html")),
            **{name: render(page, linked.frame(name)) for name, page in extra.items()},
        }
        word_frame = linked.frame("", "words", "", "../")
        if words:
            names = page_names(words) if is_site else {}
            pages["words.html"] = explorer_page(words, names, linked.frame("words.html", "words"))
        if sentence_pairs:
            pages["pairs.html"] = pair_page(sentence_pairs, linked.frame("pairs.html", "pairs"))
        _publish_in(
            dict(word_files(words, is_site, word_frame)) if words else {}, [], out / "words"
        )
        _publish_in(
            dict(pair_files(sentence_pairs, words)) if sentence_pairs else {}, [], out / "pairs"
        )
        drawn = [figure for page in (appendix, *extra.values()) for figure in _figures(page)]
        return _publish(pages, [*figures_of(first), *drawn], out)


def _publish_in(pages: Mapping[str, str], figures: Sequence[Figure], out: Path) -> None:
    """Write pages and plots to a subdirectory; without any, remove an earlier report's files."""
    if pages or (out / _LISTING).is_file():
        with _writable(out):
            out.mkdir(exist_ok=True)
        _publish(pages, figures, out)


def publish(page: Page, out: Path) -> Path:
    """Write a page, its plots and their data to ``out``; returns the path of its ``index.html``.

    If several commands write to one directory, the files of the last one stay. Raises ``BadInput``
    if the directory can't be written.
    """
    with _directory_lock(out):
        numbered = replace(page, sections=_numbered(page.sections))
        return _publish({"index.html": render(numbered)}, _figures(numbered), out)


@contextmanager
def _directory_lock(out: Path) -> Iterator[None]:
    """Create the directory ``out`` and lock it. Waits until no other command writes to it."""
    with ExitStack() as stack:
        with _writable(out):
            stack.enter_context(claimed(out / ".index.claim", wait=True))
        yield


@contextmanager
def _writable(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        problem = f"cannot be written: {e.strerror or e}"
        raise BadInput(f"report {out}", problem, "give another --out") from e


def _publish(pages: Mapping[str, str], figures: Sequence[Figure], out: Path) -> Path:
    """Write the new pages and plots, then remove files that only an earlier report had."""
    files = _files(figures) | {n: text.encode("utf-8", "replace") for n, text in pages.items()}
    listing = out / _LISTING
    with _writable(out):
        before = listing.read_text(encoding="utf-8").splitlines() if listing.is_file() else []
        for name in (*before, *files, listing.name):
            if Path(name).name == name:  # a killed command may have left its temporary file
                _temporary(out / name).unlink(missing_ok=True)
        removable = set(files) - {"index.html"}
        _list(listing, {*before, *removable})
        for name, content in files.items():
            _write(out / name, content)
        for name in set(before) - set(files):
            if name.endswith((".svg", ".csv", ".json", ".html", ".js")) and Path(name).name == name:
                (out / name).unlink(missing_ok=True)
        _list(listing, removable)
    return out / "index.html"


def make_page(facts: Facts) -> Page:
    """The content of the appendix: answers, sections, and sections left out without data."""
    parts = sections.sections(facts)
    missing = [part for part in parts if isinstance(part, Missing)]
    return Page(answer=sections.leads(facts), sections=_numbered(parts), missing=missing)


def named_sections(facts: Facts, name: str = "") -> list[Section]:
    """The appendix's sections; with ``name``, those that may have a plot or table of that name."""
    return _numbered(sections.sections(facts, name))


def _numbered(parts: Sequence[Section | Missing]) -> list[Section]:
    """The sections that aren't missing. Repeated anchors and figures' stems get numbers."""
    anchors, stems = Counter[str](), Counter[str]()
    return [
        replace(
            part,
            anchor=numbered(anchors, part.anchor),
            figures=[replace(f, stem=numbered(stems, f.stem)) for f in part.figures],
        )
        for part in parts
        if isinstance(part, Section)
    ]


def render(page: Page, frame: PageFrame = BARE) -> str:
    """The page as HTML. Everything that comes from data is escaped."""
    return rendered("page.html", page=page, frame=frame)


def render_front(first: Front, frame: PageFrame = BARE) -> str:
    """The first page as HTML; its plots are part of it."""
    return rendered("front.html", front=first, frame=frame)


def _figures(page: Page) -> list[Figure]:
    return [figure for section in page.sections for figure in section.figures]


def _files(figures: Sequence[Figure]) -> dict[str, bytes]:
    files = {}
    for figure in figures:
        files[f"{figure.stem}.svg"] = figure.svg.encode("utf-8", "replace")
        files |= {f"{figure.stem}{ending}": data for ending, data in data_of(figure).items()}
    return files


def data_of(figure: Figure) -> dict[str, bytes]:
    """The files beside a plot by ending: its rows as CSV, a description as JSON; none without rows.

    The description has the plot's caption, its columns with their units, its query, versions, and
    how to cite it.
    """
    if not figure.rows:
        return {}
    units = units_of_columns()
    about = {
        "name": figure.stem,
        "shows": figure.alt,
        "caption": figure.caption,
        "n_rows": len(figure.rows),
        "columns": {name: units.get(name, "") for name in figure.rows[0]},
        "query": figure.rows.sql,
        "methods": "docs/methods.md",
        "versions": package_versions(),
        "cite": f"Plumbline {plumbline.__version__}, and what `plumbline report cite` names",
    }
    described = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
    return {
        ".csv": as_csv(figure.rows).encode("utf-8", "replace"),
        ".metadata.json": described.encode("utf-8", "replace"),
    }


def _list(listing: Path, names: Collection[str]) -> None:
    _write(listing, "".join(f"{name}\n" for name in sorted(names)).encode())


def _write(path: Path, content: bytes) -> None:
    temporary = _temporary(path)
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    return path.with_name(f"{path.name}.tmp")


#: Directories of the site's pages on single models and benchmarks.
KINDS = ("models", "benchmarks")


@dataclass(frozen=True, eq=False)
class SitePart:
    """A page on the model or benchmark ``name``, in the directory ``kind``, showing ``facts``."""

    kind: str
    name: str
    stem: str
    facts: Facts


def site_parts(facts: Facts) -> list[SitePart]:
    """A page for each measured model, then one for each benchmark with its groups."""
    rows = facts.rows("metric").where(subset="all", metric="us")
    models = {str(r["model_key"]): str(r["model"]) for r in rows}
    subjects = [("models", name, {"model_key": key}) for key, name in models.items()]
    subjects += [("benchmarks", set_name(key_columns), key_columns) for key_columns in sets(rows)]
    seen = {kind: Counter[str]() for kind in KINDS}
    return [
        SitePart(
            kind, name, numbered(seen[kind], stem(name) or "page"), facts.within(**key_columns)
        )
        for kind, name, key_columns in subjects
    ]


def site_links(pages: Sequence[SitePart]) -> dict[str, str]:
    """Name of a model or benchmark -> path of its page, relative to the site's first page."""
    return {part.name: f"{part.kind}/{part.stem}.html" for part in pages}
