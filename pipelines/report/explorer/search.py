"""A search page: a list of things to filter by typing, and files with the details of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import quote

from plumbline.pipelines.report.templates import rendered
from plumbline.warehouse.text.escape import terminal

#: Number of things in each file of ``block_files``.
_PER_FILE = 100

#: A text, or its parts: plain text, and lists of marked texts, shown as "this / that".
Parts: TypeAlias = str | Sequence[str | Sequence[str]]
#: A row of a table: its cells, or only the second cell if the table stores row names.
Line: TypeAlias = Sequence[Parts] | str
#: A paragraph, a link (its text and address), or a table (its number in ``Search.tables``, rows).
Block: TypeAlias = str | tuple[str, str] | tuple[int, Sequence[Line]]


@dataclass
class Thing:
    """A word or a sentence pair: its text and a note in the list, and what its page shows."""

    text: Parts
    note: str = ""
    blocks: list[Block] = field(default_factory=list)


@dataclass
class Search:
    """A page that searches things.

    Attributes:
        kind: ``words`` or ``pairs``, the name of the page and of the directory with its files.
        title, label: the page's heading, and the label of its search field.
        lede: what the page shows, in sentences.
        things: the things by key, in the order of the list. ``KIND.html#KEY`` opens a thing.
        tables: maps caption, headings and row names of a table to the table's number.
    """

    kind: str
    title: str
    label: str
    lede: str = ""
    things: dict[str, Thing] = field(default_factory=dict)
    tables: dict[tuple[str, tuple[str, ...], tuple[str, ...]], int] = field(default_factory=dict)

    def table(
        self, caption: str, headings: Sequence[str], rows: Sequence[Line], names: Sequence[str] = ()
    ) -> Block:
        """Return a table for a thing's page; ``names`` are row names that many tables share."""
        shape = (caption, tuple(headings), tuple(names))
        return self.tables.setdefault(shape, len(self.tables)), rows


def link(text: str, kind: str, key: str) -> Block:
    """Return a link to a thing, or to a search for it, on the page of a ``kind``.

    >>> link("either", "words", "and/or")
    ('either', 'words.html#and%2For')
    """
    return text, f"{kind}.html#{quote(terminal(key), safe='')}"


def search_page(search: Search) -> str:
    """Return the page. It loads files of ``block_files`` from a directory named after its kind."""
    index = {
        "kind": search.kind,
        "size": _PER_FILE,
        "tables": _visible([*search.tables]),
        "things": _visible([(key, thing.text, thing.note) for key, thing in search.things.items()]),
    }
    return rendered("search.html", "search.js", search=search, index=_json(index))


def block_files(search: Search) -> Iterator[tuple[str, str]]:
    """Yield names and contents of the files that hold the blocks of all things.

    The files are scripts, since a page that is opened from disk may load nothing else.
    """
    blocks = [thing.blocks for thing in search.things.values()]
    for k, start in enumerate(range(0, len(blocks), _PER_FILE)):
        text = _json(_visible(blocks[start : start + _PER_FILE]))
        yield f"{k}.js", f"plumblineBlocks({k}, {text});\n"


def _json(value: object) -> str:
    """Return JSON that is safe inside a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _visible(value: object) -> object:
    """Return nested lists of texts with their invisible characters replaced by escapes."""
    if isinstance(value, str):
        return terminal(value)
    return [*map(_visible, value)] if isinstance(value, list | tuple) else value
