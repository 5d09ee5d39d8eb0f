"""Write a report's charts, tables and methods paragraph as files for a paper.

The user names the chart or table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TypeVar

from jinja2 import Environment, StrictUndefined

from plumbline.pipelines.report.charts.chart_forms import on_paper
from plumbline.pipelines.report.facts import Facts, TrainingTexts
from plumbline.pipelines.report.metric_tables import IN_BRACKETS, models_table
from plumbline.pipelines.report.model import Figure, Page, PageTable, numbered, plain_rows, stem
from plumbline.pipelines.report.write import data_of, front, make_page
from plumbline.warehouse.errors import UsageProblem, did_you_mean, disk_problems
from plumbline.warehouse.text.escape import as_csv, terminal

FORMATS = ("pdf", "svg", "png")
_Item = TypeVar("_Item")
#: Most characters of a table's name. People type names, so longer ones are cut between words.
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
    """Return every chart of the report by its file stem; the first page's charts come first."""
    pages = front(facts, Page()), make_page(facts)
    return {figure.stem: figure for page in pages for figure in page.figures}


def figure_files(
    facts: Facts, name: str, form: str = "pdf", width_in: float = 3.3
) -> dict[str, bytes]:
    """Return a chart as ``pdf``, ``svg`` or ``png``, ``width_in`` inches wide, and its data.

    Keys are file endings. ``write.data_of`` says which files hold the data. Text is 8 points
    (charts of several panels are scaled as a whole), and PDF embeds its fonts. Raises
    ``UsageProblem`` if the format or the name doesn't exist.
    """
    if form not in FORMATS:
        raise UsageProblem(f"format {form}", f"expected {', '.join(FORMATS)}")
    figure = named(figures(facts), "figure", name)
    return {f".{form}": on_paper(figure.specification, form, width_in), **data_of(figure)}


def named(items: Mapping[str, _Item], kind: str, name: str) -> _Item:
    """Return the item with a name. Raises ``UsageProblem`` with similar names if there is none.

    >>> named({"us": 1, "pd": 2}, "figure", "pd")
    2
    """
    if name in items:
        return items[name]
    fix = did_you_mean(name, items, f"`plumbline report {kind}` lists all")
    raise UsageProblem(f"{kind} {name}", f"this warehouse has no such {kind}", fix)


def write_file(path: Path, content: bytes) -> Path:
    """Write a file, and create its directory. Raises ``BadInput`` if the disk can't be written."""
    with disk_problems(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return path


def tables(facts: Facts) -> dict[str, PageTable]:
    """Map names to tables: ``models`` first, then the report's tables in the page's order.

    ``models`` has US, PD and AuFC of each model and benchmark over all pairs, if there are any.
    Other names combine a section's anchor and a table's caption.
    """
    by_name, seen = dict[str, PageTable](), Counter[str]()
    if rows := facts.rows("metric").where(subset="all", metric=("us", "pd", "aufc")):
        by_name["models"] = models_table(rows, TrainingTexts(facts))
    for section in make_page(facts).sections:
        for page_table in section.tables:
            subject = re.sub(r"[,;] 95% .*$| \([0-9][^)]*\)$", "", page_table.caption)
            name = stem(section.anchor, subject)
            if len(name) > _LONGEST:
                name = name[: _LONGEST + 1].rpartition("-")[0]
            by_name[numbered(seen, name)] = page_table
    return by_name


def table_text(page_table: PageTable, form: str, name: str = "") -> str:
    """Return a table as ``latex``, ``markdown`` or ``csv``; ``name`` is for LaTeX's label.

    LaTeX needs the package booktabs and, for letters beyond Latin, LuaLaTeX or XeLaTeX. CSV has
    unrounded values, and extra columns for the ends of intervals.
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
    # pandas fills braces in a heading, like `str.format`.
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
    r"""Escape text for LaTeX, on one line; show invisible characters as escapes.

    >>> print(latex("50% of a_b & <c>"))
    50\% of a\_b \& \textless{}c\textgreater{}
    """
    one_line = "".join(_LATEX.get(c, c) for c in terminal(" ".join(words.split())))
    return re.sub(r"([-',])(?=\1)", r"\1{}", one_line)  # or LaTeX would join two into one


def methods(facts: Facts) -> str:
    """Return sentences, one per line, on corpora, models, rules, seeds, rejects and versions.

    Empty for an empty warehouse. The rows come from ``sql/report/methods_*.sql``.
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
