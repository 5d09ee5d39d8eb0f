"""Sections as plain text for a terminal and as Markdown, and the answer of a page as either."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from plumbline.pipelines.report.model import PageTable, Section
from plumbline.warehouse.text.escape import terminal

#: Most characters of a cell. A longer cell loses its start if it is right-aligned, else its end.
_WIDEST = 60
#: Parts of a page's HTML: its title, its first section, and the paragraphs of that.
_TITLE, _FIRST, _PARAGRAPH = (
    re.compile(tags, re.DOTALL)
    for tags in ("<h1>(.*?)</h1>", "<section.*?</section>", "<p[^>]*>(.*?)</p>")
)


def plain(section: Section) -> Iterator[str]:
    """A section's title, intro and tables as lines of text; cells are cut to ``_WIDEST``."""
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


def markdown(section: Section) -> Iterator[str]:
    r"""A section's title, intro and tables as lines of Markdown, special characters escaped.

    >>> list(markdown(Section("a", "tea*", ["Hot."], tables=[PageTable("", ["a|b"], [])])))
    ['## tea\\*', '', 'Hot.', '', '****', '', '| a\\|b |', '|---|', '']
    """
    yield from (f"## {_escaped(section.title)}", "")
    for sentence in section.intro:
        yield from (_escaped(sentence), "")
    for table in section.tables:
        right = [any(row[k].is_number for row in table.rows) for k in range(len(table.headings))]
        yield from (f"**{_escaped(table.caption)}**", "")
        yield f"| {' | '.join(map(_escaped, table.headings))} |"
        yield f"|{'|'.join('---:' if r else '---' for r in right)}|"
        yield from (f"| {' | '.join(_escaped(c.text) for c in row)} |" for row in table.rows)
        yield ""


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|~$&])", r"\\\1", terminal(" ".join(text.split())))


def page_answer(page: str) -> list[str]:
    """The title of a page's HTML and the paragraphs of its first section, as text.

    >>> page_answer('<h1>Which?</h1><section><p>To <b>she</b>*.</p></section>')
    ['Which?', 'To she*.']
    """
    first = _FIRST.search(page)
    parts = [*_TITLE.findall(page), *_PARAGRAPH.findall(first[0] if first else "")]
    texts = (html.unescape(re.sub("<[^>]+>", "", part)) for part in parts)
    return [" ".join(text.split()) for text in texts if text.strip()]


def markdown_answer(page: str) -> Iterator[str]:
    r"""``page_answer`` as paragraphs of Markdown.

    >>> list(markdown_answer('<h1>Which?</h1><section><p>To <b>she</b>*.</p></section>'))
    ['## Which?', 'To she\\*.']
    """
    title, *answer = map(_escaped, page_answer(page))
    yield from (f"## {title}", *answer)
