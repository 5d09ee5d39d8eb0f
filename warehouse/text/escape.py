"""Foreign text escaped for a terminal, a spreadsheet, a SQL statement and a Markdown table.

Code that shows text to a person escapes it here; files for machines hold it unchanged.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import sys
import unicodedata
from base64 import b64encode
from collections.abc import Mapping, Sequence

#: The characters that ``str.isspace`` accepts, to be put in a character class.
_BLANK = "\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
#: The start of a text that spreadsheets take for a formula: a tab, a line break, or blanks and a
#: sign, some signs also in full width. This pattern and ``_NUMBER`` match the same texts in Python
#: and in DuckDB (RE2).
_FORMULA = rf"^([\t\r\n]|[{_BLANK}]*[=+\-@|%＝＋－＠])"
_NUMBER = r"[+-]?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,4})?"
_is_formula = re.compile(_FORMULA).match
_is_number = re.compile(_NUMBER).fullmatch


def terminal(text: str, *, lines: bool = False) -> str:
    """The text with an escape such as ``\\x1b`` for each character that isn't printable.

    So the text can't steer a terminal. Escaped are controls (ANSI sequences start with one), line
    breaks, invisible characters such as zero-width spaces, marks that turn the direction of text,
    and halves of surrogate pairs. Letters of all scripts, spaces and combining marks stay; with
    ``lines`` also ``\\n`` and tabs. Idempotent.

    >>> print(terminal("a\\x1b[2Jb\\u202ec\\nd"))
    a\\x1b[2Jb\\u202ec\\nd
    >>> terminal("naïve 少女 \\u00a0x\\n", lines=True)  # unchanged: Python's repr writes \\xa0
    'naïve 少女 \\xa0x\\n'
    """
    if text.isprintable():
        return text
    allowed = "\n\t" if lines else ""
    return "".join(
        c
        if c.isprintable() or c in allowed or unicodedata.category(c) == "Zs"
        else c.encode("unicode_escape").decode("ascii")
        for c in text
    )


def is_unicode(text: str) -> bool:
    """True if a text can be encoded as UTF-8: it holds no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def csv_cell(value: object) -> object:
    """A value for a CSV file, such that a spreadsheet takes no text for a formula.

    Text that starts like a formula, after any blanks, gets an apostrophe in front, unless it is a
    plain number. Other values are returned unchanged.
    """
    if isinstance(value, str) and _is_formula(value) and not _is_number(value):
        return f"'{value}"
    return value


def as_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as CSV, unrounded, with formulas escaped by ``csv_cell``; empty without rows."""
    if not rows:
        return ""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(csv_cell, rows[0]))
    writer.writerows(map(csv_cell, row.values()) for row in rows)
    return out.getvalue()


def sql_text(text: str) -> str:
    """Text as a SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def markdown_row(*cells: str) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def policy_hash(text: str) -> str:
    """The hash of an inline style or script, for a content security policy that allows it."""
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def say(text: str = "", *, err: bool = False) -> None:
    """Print lines, escaped by ``terminal``, to standard output, or to standard error with ``err``.

    Characters that the stream can't encode are escaped, too.
    """
    stream = sys.stderr if err else sys.stdout
    encoding = stream.encoding or "utf-8"
    line = terminal(text, lines=True).encode(encoding, "backslashreplace").decode(encoding)
    print(line, file=stream, flush=True)
