"""Texts without what differs from run to run: times, durations, sizes, versions, paths, run ids."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

from plumbline.warehouse.storage.run_records import package_versions
from tools.frozen.rows import number

REPOSITORY = Path(__file__).resolve().parents[2]

#: A run of this warehouse, but for the stored ones, whose names begin with 2020.
RUN = re.compile(r"\b(?!2020)20\d{6}T\d{12}-[0-9a-f]{6}\b")

_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.M), put)
    for pattern, put in (
        (
            r"\b(?!2020)20\d\d-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?"
            r"(?:\+00:00|Z| UTC)?",
            "TIME",
        ),
        (r"\b(Date:? )(?!2020)20\d\d-\d\d-\d\d\b", r"\1DAY"),
        (r"TIME ([│|]) *[\d.]+ *", r"TIME \1 N "),
        (r"(│ counted +│ +[\d,]+ +│ +)[\d.]+ *", r"\1N "),
        (r'("(?:seconds|n_bytes)": )[\d.]+', r"\1N"),
        (r"\b[\d,]+(?:\.\d+)?(?:e-\d+)? (s|ms|min)\b", r"N \1"),
        (r"\b[\d,]+(?:\.\d+)? (\w+)/s\b", r"N \1/s"),
        (r"\b[\d,]+(?:\.\d+)? (?:bytes|kB|KB|MB|GB|KiB|MiB|GiB|B)\b(?! each)", "SIZE"),
        (r"\b[0-9a-f]{20}\.parquet\b", "FILE.parquet"),
    )
)
_LONG = re.compile(r"(?<![\w.])-?\d+\.\d{9,}(?:e[-+]?\d+)?")


def fixer() -> Callable[[str], str]:
    """A function that replaces in a text what isn't the same in every run."""
    folders = {
        str(Path().resolve()): "WORK",
        str(REPOSITORY): "REPOSITORY",
        str(Path.home()): "HOME",
    }
    paths = {re.compile(rf"{re.escape(path)}(?![\w-])"): name for path, name in folders.items()}
    versions = sorted(set(package_versions().values()), key=len, reverse=True)
    version = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, versions))})(?![\w.])")

    def fix(text: str) -> str:
        text = RUN.sub("RUN", text)
        for path, name in paths.items():
            text = path.sub(name, text)
        for pattern, put in _RULES:
            text = pattern.sub(put, text)
        text = _LONG.sub(lambda m: number(float(m[0])), text)
        return version.sub("VERSION", text)

    return cache(fix)


#: Elements inside a line of text.
_INLINE = frozenset(
    (
        *("a", "abbr", "b", "br", "code", "em", "i", "kbd", "mark", "q", "small", "span", "strong"),
        *("sub", "sup", "time", "tspan"),
    )
)
_SKIPPED = frozenset(("script", "style"))
_VOID = frozenset(("base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"))


class _Text(HTMLParser):
    """Lines of a page in reading order; a row of a table is one line."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._line: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self._open.append(tag)
        self._between(tag)
        values = dict(attrs)
        for name in ("alt", "aria-label", "placeholder"):
            if values.get(name):
                self._line.append(f"[{values[name]}]")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass
        self._between(tag)

    def handle_data(self, data: str) -> None:
        if not _SKIPPED.intersection(self._open):
            self._line.append(data)

    def _between(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._line.append(" ¦ ")
        elif tag not in _INLINE and not {"td", "th"}.intersection(self._open[:-1]):
            self.end_line()

    def end_line(self) -> None:
        line = re.sub(r"(?:\s*¦)+\s*", " | ", " ".join("".join(self._line).split()))
        self._line = []
        if line := line.strip(" |"):
            self.lines.append(line)


def text_of(page: str) -> str:
    """The text of an HTML page in reading order, without markup, scripts and styles.

    >>> text_of("<h1>Two</h1><table><tr><td>a</td><td>1</td></tr></table><script>x</script>")
    'Two\\na | 1'
    """
    parser = _Text()
    parser.feed(page)
    parser.close()
    parser.end_line()
    return "\n".join(parser.lines)
