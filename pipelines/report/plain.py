"""Print sections as plain text, and what a first page says."""

from __future__ import annotations

import re
from collections.abc import Iterator

from plumbline.pipelines.report.model import Page, PageTable, Section
from plumbline.warehouse.text.escape import terminal

#: Most characters of a cell. Longer cells are cut at the end, or at the start if right-aligned.
_WIDEST = 60


def plain(section: Section) -> Iterator[str]:
    """Yield a section's title, intro and tables as lines of text; cells are cut to ``_WIDEST``."""
    yield terminal(section.title)
    yield from (f"  {terminal(sentence)}" for sentence in section.intro)
    for table in section.tables:
        yield ""
        yield f"  {terminal(table.caption)}"
        yield from (f"    {line}" for line in _aligned(table))


def _aligned(table: PageTable) -> Iterator[str]:
    right = [any(row[k].is_number for row in table.rows) for k in range(len(table.headings))]
    cells = [[_cut(cell.text, r) for cell, r in zip(row, right, strict=True)] for row in table.rows]
    lines = [list(map(terminal, table.headings)), *cells]
    widths = [max(len(line[k]) for line in lines) for k in range(len(right))]
    for line in lines:
        columns = zip(line, widths, right, strict=True)
        yield "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in columns).rstrip()


def _cut(text: str, right: bool) -> str:
    text = terminal(text)
    if len(text) <= _WIDEST:
        return text
    if right:
        return "… " + text[2 - _WIDEST :].partition(" ")[2]
    return text[: _WIDEST - 2].rpartition(" ")[0] + " …"


def escaped(text: str) -> str:
    """Escape text for Markdown, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>#|~$&])", r"\\\1", terminal(" ".join(text.split())))


def answer(page: Page) -> Iterator[str]:
    """Yield the first page in sentences: title, text below the title, and further answers."""
    yield page.title
    yield from page.sections[0].intro
    for _, question, sentence in page.answers:
        yield f"{question} {sentence}"
