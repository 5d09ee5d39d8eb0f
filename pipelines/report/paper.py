"""Make files for a paper from the report: a chart, a table or the methods paragraph."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TypeVar

from jinja2 import Environment, StrictUndefined

from plumbline.pipelines.report.charts.chart_forms import on_paper
from plumbline.pipelines.report.facts import Facts, TrainingTexts
from plumbline.pipelines.report.metric_tables import IN_BRACKETS, models_table
from plumbline.pipelines.report.model import Figure, Page, PageTable, plain_rows, stem, unique
from plumbline.pipelines.report.write import appendix_of, data_of, front
from plumbline.warehouse.errors import UsageProblem, did_you_mean, disk_problems
from plumbline.warehouse.text.escape import as_csv, terminal

FORMATS = ("pdf", "svg", "png")
_Item = TypeVar("_Item")
#: Maximum length of a table's name. People type names, so longer names are cut at a word's end.
_LONGEST = 60
#: Characters that are LaTeX commands (``[`` and ``*`` at a row's start) or are printed differently.
_LATEX = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    **{c: f"{{{c}}}" for c in "[]*`"},
    **{"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"},
    **{"<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}"},
    **{"−": "$-$", "–": "\\textendash{}", "…": "\\ldots{}", "≤": "$\\leq$", "≥": "$\\geq$"},
}
#: Settings of models. Models with equal settings share a sentence.
_SETTINGS = (
    *("backend", "backend_version", "dtype", "quantisation", "measure", "text_form"),
    "bos_policy",
)


def figures(facts: Facts) -> dict[str, Figure]:
    """Return all charts of the report by name. Charts of the first page come first."""
    pages = front(facts, Page()), appendix_of(facts)
    return {figure.stem: figure for page in pages for figure in page.figures}


def figure_files(
    facts: Facts, name: str, form: str = "pdf", width_in: float = 3.3
) -> dict[str, bytes]:
    """Return the files of a chart: a ``pdf``, ``svg`` or ``png``, and its data (``data_of``).

    The keys are file extensions, and the values are the files' contents. The chart is ``width_in``
    inches wide. Its text is 8-point, but scaled with the chart if there are several panels. PDF
    files embed their fonts. Raises ``UsageProblem`` if the format or the name is unknown.
    """
    if form not in FORMATS:
        raise UsageProblem(f"format {form}", f"expected {', '.join(FORMATS)}")
    figure = named(figures(facts), "figure", name)
    return {f".{form}": on_paper(figure.specification, form, width_in), **data_of(figure)}


def named(items: Mapping[str, _Item], kind: str, name: str) -> _Item:
    """Return the item called ``name``. If it is missing, raise ``UsageProblem`` with similar names.

    >>> named({"us": 1, "pd": 2}, "figure", "pd")
    2
    """
    if name in items:
        return items[name]
    fix = did_you_mean(name, items, f"`plumbline report {kind}` lists all")
    raise UsageProblem(f"{kind} {name}", f"this warehouse has no such {kind}", fix)


def write_file(path: Path, content: bytes) -> Path:
    """Write a file; create its directory if missing. Raises ``BadInput`` if it can't be written."""
    with disk_problems(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return path


def tables(facts: Facts) -> dict[str, PageTable]:
    """Return all tables of the report by name, in the order of the appendix.

    The first table, ``models``, has US, PD and AuFC of each model on all pairs of each benchmark.
    It is missing if these weren't measured. Other tables are named after their section and caption.
    """
    found: list[tuple[str, PageTable]] = []
    if rows := facts.rows("metric").where(subset="all", metric=("us", "pd", "aufc")):
        found.append(("models", models_table(rows, TrainingTexts(facts))))
    for section in appendix_of(facts).sections:
        for page_table in section.tables:
            subject = re.sub(r"[,;] 95% .*$| \([0-9][^)]*\)$", "", page_table.caption)
            name = stem(section.anchor, subject)
            if len(name) > _LONGEST:
                name = name[: _LONGEST + 1].rpartition("-")[0]
            found.append((name, page_table))
    names = unique((name for name, _ in found), "-")
    return {name: page_table for name, (_, page_table) in zip(names, found, strict=True)}


def table_text(page_table: PageTable, form: str, name: str = "") -> str:
    """Return a table as ``latex``, ``markdown`` or ``csv``; ``name`` becomes the LaTeX label.

    The LaTeX code needs the package booktabs and, for non-Latin letters, LuaLaTeX or XeLaTeX. CSV
    has unrounded values, with the ends of intervals in extra columns.
    """
    if form == "csv":
        return as_csv(list(plain_rows(page_table)))
    import pandas as pd

    cells = [[cell.text for cell in row] for row in page_table.rows]
    frame = pd.DataFrame(cells, columns=range(len(page_table.headings)), dtype=object)
    if form == "markdown":
        return str(frame.to_markdown(index=False, headers=list(page_table.headings))) + "\n"
    caption = page_table.caption
    if "brackets" not in caption and any(c.low is not None for row in page_table.rows for c in row):
        caption += f", {IN_BRACKETS}"
    numbers = [all(row[k].is_number for row in page_table.rows) for k in range(len(frame.columns))]
    # Escape braces: pandas formats headings with `str.format`.
    headings = [latex(h).replace("{", "{{").replace("}", "}}") for h in page_table.headings]
    text = frame.map(latex).to_latex(
        index=False,
        header=headings,
        escape=False,
        caption=latex(caption),
        label=f"tab:{name}" if name else None,
        column_format="".join("r" if is_number else "l" for is_number in numbers),
    )
    return "% \\usepackage{booktabs}\n" + str(text)


def latex(words: str) -> str:
    r"""Escape text for LaTeX, including control characters, and join its lines.

    >>> print(latex("50% of a_b & <c>"))
    50\% of a\_b \& \textless{}c\textgreater{}
    """
    one_line = "".join(_LATEX.get(c, c) for c in terminal(" ".join(words.split())))
    return re.sub(r"([-',])(?=\1)", r"\1{}", one_line)  # LaTeX would print `--` as one dash


def methods(facts: Facts) -> str:
    """Return the methods paragraph, which says how the figures were made. Each line is a sentence.

    It describes corpora, models, rules, seeds, rejected rows and versions, which it gets from the
    queries ``sql/report/methods_*.sql``. If the warehouse is empty, returns an empty string.
    """
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    words = (resources.files(__package__) / "methods.txt").read_text("utf-8")
    return environment.from_string(words).render(
        rows=lambda name: facts.rows(f"methods_{name}"),
        rejected=facts.query(
            "SELECT stage, subject, count(*) AS n FROM reject GROUP BY ALL ORDER BY ALL"
        ),
        settings=_SETTINGS,
    )
