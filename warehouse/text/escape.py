"""Foreign text made harmless for a terminal and for a spreadsheet. Pure.

Words, prompts, continuations and names come from corpora, models and other people's warehouses;
what shows them to a person goes through here. Files that machines read back hold them unchanged.
"""

from __future__ import annotations

import re
import unicodedata

#: What spreadsheets take for the start of a formula, the wide forms of East Asian input too.
_FORMULA = tuple("=+-@\t\r\n|%＝＋－＠")
_NUMBER = re.compile(r"[+-]?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,4})?", re.ASCII)


def terminal(text: str, *, lines: bool = False) -> str:
    """Text of which nothing steers a terminal: what can't be seen is shown as an escape.

    Controls (ANSI sequences start with one), line breaks, marks that turn the direction of text or
    have no width, and halves of surrogate pairs become such as ``\\x1b``; letters of all scripts,
    spaces and combining marks stay. Applied twice it changes nothing more.

    Args:
        lines: of a text of several lines, which stay lines; tabs stay too.

    >>> print(terminal("a\\x1b[2Jb\\u202ec\\nd"))
    a\\x1b[2Jb\\u202ec\\nd
    >>> terminal("naïve 少女 \\u00a0x\\n", lines=True)
    'naïve 少女 \\xa0x\\n'
    """
    if text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(c if _is_seen(c) or c in kept else _escape(c) for c in text)


def csv_cell(value: object) -> object:
    """A value to write to a CSV file that a spreadsheet may open: no text is taken for a formula.

    Text that starts as a formula does, blanks aside, gets an apostrophe in front, unless it is a
    plain number. All that is not text stays as it is, so numbers stay numbers.

    >>> [csv_cell(v) for v in ("=1+1", "tea", "-0.5", "-x", " @SUM(A1)", -0.5, None, "")]
    ["'=1+1", 'tea', '-0.5', "'-x", "' @SUM(A1)", -0.5, None, '']
    """
    if not isinstance(value, str) or not _starts_formula(value) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"


def _starts_formula(text: str) -> bool:
    return text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA)


def _is_seen(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
