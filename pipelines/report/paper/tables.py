"""The report's tables by name as LaTeX, Markdown or CSV."""

from __future__ import annotations

import re
from collections import Counter

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.metric_tables import IN_BRACKETS, models_table
from plumbline.pipelines.report.model import PageTable, numbered, plain_rows, stem
from plumbline.pipelines.report.write import make_page
from plumbline.warehouse.text.escape import as_csv, terminal

#: Most characters of a table's name. People type it, so a longer one is cut between words.
_LONGEST = 60
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

    ``models`` has US, PD and AuFC of each model on each benchmark over all pairs, if there are any.
    The other names are made of a section's anchor and a table's caption. With ``wanted``, only
    sections that may have a table of that name are run.
    """
    by_name, seen = dict[str, PageTable](), Counter[str]()
    if rows := facts.rows("metric").where(subset="all", metric=("us", "pd", "aufc")):
        by_name["models"] = models_table(rows)
    for section in make_page(facts, wanted).sections:
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
    # pandas fills braces of a heading, as `str.format` does.
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
    r"""Text escaped for LaTeX, on one line; invisible characters are shown as escapes.

    >>> print(latex("50% of a_b & <c>"))
    50\% of a\_b \& \textless{}c\textgreater{}
    """
    one_line = "".join(_LATEX.get(c, c) for c in terminal(" ".join(words.split())))
    return re.sub(r"([-',])(?=\1)", r"\1{}", one_line)  # else LaTeX joins two into one
