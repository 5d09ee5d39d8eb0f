"""Write a warehouse's report: its pages, and the charts with their data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

import plumbline
from plumbline.pipelines.report import sections
from plumbline.pipelines.report.facts import Facts, narrowed
from plumbline.pipelines.report.front import front
from plumbline.pipelines.report.model import Figure, Page, numbered
from plumbline.pipelines.report.search import (
    block_files,
    n_pairs_by_word,
    pairs,
    search_page,
    words,
)
from plumbline.pipelines.report.templates import rendered
from plumbline.warehouse.errors import MissingComponent, disk_problems
from plumbline.warehouse.paths import replacing
from plumbline.warehouse.run_records import package_versions
from plumbline.warehouse.schema.catalog import units_of_columns
from plumbline.warehouse.storage.locks import claimed
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import as_csv
from plumbline.warehouse.text.progress import progress


def write_report(
    warehouse: Store | str | Path,
    out: str | Path,
    *,
    about: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Path, Page]:
    """Write a warehouse's report to ``out``; return the path and content of ``index.html``.

    The other files are ``appendix.html``, the files of each chart (``data_of``), and
    ``words.html`` and ``pairs.html``, which search words and sentence pairs. A search page without
    anything to search is left out. Raises ``BadInput`` if ``warehouse`` isn't a warehouse or
    ``out`` can't be written, and ``UsageProblem`` if a pattern of ``about`` (``facts.narrowed``)
    matches nothing.
    """
    out = Path(out)
    # Lock before reading, so that the last command to write has read the latest version.
    with disk_problems(out), claimed(out / ".index.claim", wait=True), progress("report"):
        facts = narrowed(Facts(warehouse), about or {})
        appendix = make_page(facts)
        found_pairs = pairs(facts)
        found_words = words(facts, n_pairs_by_word(found_pairs) if found_pairs else {})
        searches = [search for search in (found_words, found_pairs) if search]
        first = front(facts, appendix)
        links = [(f"{search.kind}.html", f"Search: {search.title}") for search in searches]
        first.links = [("appendix.html", "Appendix: all of it"), *links, *first.links]
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
        for name in {"words.html", "pairs.html"} - set(pages):  # of an earlier report
            (out / name).unlink(missing_ok=True)
    return out / "index.html", first


def make_page(facts: Facts) -> Page:
    """Return the appendix. Repeated anchors of sections and stems of figures get numbers."""
    anchors, stems = Counter[str](), Counter[str]()
    made = [
        replace(
            section,
            anchor=numbered(anchors, section.anchor),
            figures=[replace(f, stem=numbered(stems, f.stem)) for f in section.figures],
        )
        for section in sections.sections(facts)
    ]
    return Page(made, title="Appendix: all figures and tables", home="index.html")


def render(page: Page) -> str:
    """Return the page as HTML. Everything that comes from data is escaped."""
    return rendered("page.html", "page.js", page=page)


def data_of(figure: Figure) -> dict[str, bytes]:
    """Return a chart's files by ending: its Vega-Lite specification, and any rows as CSV.

    The specification's ``usermeta`` has the caption, the columns with their units, the query,
    versions, and how to cite it.
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
    """Return the script that draws charts, which the package's build puts into this folder."""
    script = resources.files(__package__) / "vega.js"
    if not script.is_file():
        raise MissingComponent("vega.js", "is missing from the package", "pip install .")
    return script.read_bytes()
