"""Sections as plain text for a terminal, and as Markdown for a paper."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from plumbline.pipelines.report.model import PageTable, Section
from plumbline.warehouse.text.escape import terminal

#: Most characters of a cell. A longer cell loses its start if it is right-aligned, else its end.
_WIDEST = 60
#: Parts of a page's HTML: the title, a paragraph of its answer, and markup to drop (tags, and links
#: to the appendix with their text).
_TITLE = re.compile("<h1>(.*?)</h1>", re.DOTALL)
_ANSWER = re.compile('<p class="(?:answer|bounds|alert|lede)">(.*?)</p>', re.DOTALL)
_MARKUP = re.compile(r"<a [^>]*appendix\.html.*?</a>|<[^>]+>", re.DOTALL)


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

    >>> list(markdown(Section("a", "tea*", ["Hot."])))
    ['## tea\\*', '', 'Hot.', '']
    """
    yield from (f"## {_escaped(section.title)}", "")
    for sentence in section.intro:
        yield from (_escaped(sentence), "")
    for table in section.tables:
        yield from (f"**{_escaped(table.caption)}**", "")
        yield from (*markdown_table(table), "")


def markdown_table(table: PageTable) -> Iterator[str]:
    r"""A table as lines of Markdown, without its caption.

    >>> list(markdown_table(PageTable("", ["a|b"], [])))
    ['| a\\|b |', '|---|']
    """
    yield f"| {' | '.join(map(_escaped, table.headings))} |"
    right = [any(row[k].is_number for row in table.rows) for k in range(len(table.headings))]
    yield f"|{'|'.join('---:' if r else '---' for r in right)}|"
    for row in table.rows:
        yield f"| {' | '.join(_escaped(cell.text) for cell in row)} |"


def _escaped(text: str) -> str:
    shown = terminal(" ".join(text.split()))
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~$&" else c for c in shown)


def page_answer(page: str) -> list[str]:
    """The title and the paragraphs of the answer of a page's HTML, as text.

    Links to the appendix are left out.

    >>> page_answer('<h1>Which?</h1><p class="answer">To <b>she</b>*.</p>')
    ['Which?', 'To she*.']
    """
    parts = [*_TITLE.findall(page), *_ANSWER.findall(page)]
    texts = (" ".join(html.unescape(_MARKUP.sub("", part)).split()) for part in parts)
    return [text for text in texts if text]


def markdown_answer(page: str) -> Iterator[str]:
    r"""``page_answer`` as paragraphs of Markdown.

    >>> list(markdown_answer('<h1>Which?</h1><p class="answer">To <b>she</b>*.</p>'))
    ['## Which?', 'To she\\*.']
    """
    title, *answer = map(_escaped, page_answer(page))
    yield from (f"## {title}", *answer)
