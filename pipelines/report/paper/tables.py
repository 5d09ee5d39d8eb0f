"""The report's tables by name as LaTeX, Markdown or CSV."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.metric_tables import IN_BRACKETS, models_table
from plumbline.pipelines.report.model import Cell, PageTable, numbered, plain_rows, stem
from plumbline.pipelines.report.plain import markdown_table
from plumbline.pipelines.report.write import named_sections
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.text.escape import as_csv, terminal

FORMATS = ("latex", "markdown", "csv")
#: Most characters of a table's name. People type it, so a longer one is cut between words.
_LONGEST = 60
_ENDS = re.compile(r" \((\S+) to (\S+)\)$")
#: Characters that are LaTeX commands (``[`` and ``*`` at a row's start) or are printed differently.
_LATEX = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    **{c: f"{{{c}}}" for c in "[]*`"},
    **{"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"},
    **{"<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}"},
    **{"−": "$-$", "–": "\\textendash{}", "…": "\\ldots{}", "≤": "$\\leq$", "≥": "$\\geq$"},
}


def tables(facts: Facts, wanted: str = "") -> dict[str, PageTable]:
    """The table ``models``, then every table of the report in the page's order, by name.

    ``models`` has US and PD of each model on each benchmark over all pairs, if there are any. The
    other names are made of a section's anchor and a table's caption. With ``wanted``, only sections
    that may have a table of that name are run.
    """
    by_name, seen = dict[str, PageTable](), Counter[str]()
    if rows := facts.rows("metric").where(subset="all", metric=("us", "pd")):
        by_name["models"] = models_table(rows)
    for section in named_sections(facts, wanted):
        for page_table in section.tables:
            subject = re.sub(r"[,;] 95% .*$| \([0-9][^)]*\)$", "", page_table.caption)
            name = stem(section.anchor, subject)
            if len(name) > _LONGEST:
                name = name[: _LONGEST + 1].rpartition("-")[0]
            by_name[numbered(seen, name)] = page_table
    return by_name


def table_text(page_table: PageTable, form: str, name: str = "") -> str:
    """A table as ``latex``, ``markdown`` or ``csv``; ``name`` is for LaTeX's label.

    LaTeX needs the package booktabs and, for letters beyond Latin, LuaLaTeX or XeLaTeX. CSV has
    unrounded values, and extra columns for the ends of intervals. Raises ``UsageProblem`` for
    another format.
    """
    if form not in FORMATS:
        raise UsageProblem(f"format {form}", f"expected {', '.join(FORMATS)}")
    if form == "csv":
        return as_csv(list(plain_rows(page_table)))
    lines = _latex_table(page_table, name) if form == "latex" else markdown_table(page_table)
    return "\n".join(lines) + "\n"


def latex(words: str) -> str:
    r"""Text escaped for LaTeX, on one line; invisible characters are shown as escapes.

    >>> print(latex("50% of a_b & <c>"))
    50\% of a\_b \& \textless{}c\textgreater{}
    """
    one_line = "".join(_LATEX.get(c, c) for c in terminal(" ".join(words.split())))
    return re.sub(r"([-',])(?=\1)", r"\1{}", one_line)  # else LaTeX joins two into one


def _latex_table(page_table: PageTable, name: str) -> Iterator[str]:
    """A table float with booktabs' rules. Estimates take two columns: value and interval."""
    columns = list(zip(*page_table.rows, strict=True)) or [() for _ in page_table.headings]
    kinds = [_kind(column) for column in columns]
    has_ends = "r@{ }l" in kinds
    caption = page_table.caption
    if has_ends and "brackets" not in caption:
        caption += f", {IN_BRACKETS}"
    yield "% \\usepackage{booktabs}"
    yield from ("\\begin{table}", "\\centering", f"\\caption{{{latex(caption)}.}}")
    if name:
        yield f"\\label{{tab:{name}}}"
    yield from (f"\\begin{{tabular}}{{{''.join(kinds)}}}", "\\toprule")
    yield _row(
        f"\\multicolumn{{2}}{{c}}{{{latex(heading)}}}" if "@" in kind else latex(heading)
        for heading, kind in zip(page_table.headings, kinds, strict=True)
    )
    yield "\\midrule"
    for row in page_table.rows:
        yield _row(_latex_cell(cell, kind) for cell, kind in zip(row, kinds, strict=True))
    yield from ("\\bottomrule", "\\end{tabular}", "\\end{table}")


def _kind(column: Sequence[Cell]) -> str:
    if any(cell.low is not None for cell in column):
        return "r@{ }l"
    return "r" if any(cell.is_number for cell in column) else "l"


def _latex_cell(cell: Cell, kind: str) -> str:
    if "@" not in kind:
        return latex(cell.text)
    ends = _ENDS.search(cell.text)
    if ends is None:
        return f"{latex(cell.text)} &"
    return f"{latex(cell.text[: ends.start()])} & [{latex(ends[1])}, {latex(ends[2])}]"


def _row(cells: Iterator[str]) -> str:
    return f"{' & '.join(cells)} \\\\"
