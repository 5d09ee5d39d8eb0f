"""Remove from texts what differs between runs: times, sizes, versions, paths and run ids."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from html import unescape
from pathlib import Path

from plumbline.warehouse.run_records import package_versions
from tools.frozen.rows import number

REPOSITORY = Path(__file__).resolve().parents[2]

#: A run of this warehouse, except stored runs, whose names begin with 2020.
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
        (r"TIME( [│|]|\n) *[\d.]+ *", r"TIME\1 N "),
        (r"(│ counted +│ +[\d,]+ +│ +)[\d.]+ *", r"\1N "),
        (r'("(?:seconds|n_bytes)": )[\d.]+', r"\1N"),
        (r"\b[\d,]+(?:\.\d+)?(?:e-\d+)? (s|ms|min)\b", r"N \1"),
        (r"\b[\d,]+(?:\.\d+)? (\w+)/s\b", r"N \1/s"),
        (r"\b[\d,]+(?:\.\d+)? (?:bytes|kB|KB|MB|GB|KiB|MiB|GiB|B)\b(?! each)", "SIZE"),
        (r"\b[0-9a-f]{20}\.parquet\b", "FILE.parquet"),
        (r"\bunicode-[\d.]+", "unicode-VERSION"),
    )
)
_LONG = re.compile(r"(?<![\w.])-?\d+\.\d{9,}(?:e[-+]?\d+)?")


def fixer() -> Callable[[str], str]:
    """Return a function that replaces what differs between runs in a text."""
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
        text = _LONG.sub(lambda m: number(float(m[0]), 6), text)
        return version.sub("VERSION", text)

    return cache(fix)


_UNSHOWN = re.compile(r"<(script|style)>.*?</\1>|<[^>]+>", re.S)


def text_of(page: str) -> str:
    """Return the text of an HTML page in reading order, without markup, scripts and styles.

    >>> text_of("<h1>Two</h1><table><tr><td>a</td><td>1</td></tr></table><script>x</script>")
    'Two\\na\\n1'
    """
    lines = (" ".join(line.split()) for line in unescape(_UNSHOWN.sub("\n", page)).splitlines())
    return "\n".join(filter(None, lines))
