"""Escape untrusted text for a terminal, a spreadsheet, a SQL statement or a Markdown table.

Text is escaped only when it is shown to a person. Files for programs have the text unchanged.
Secrets are hidden, because the messages of servers and libraries may contain them.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import sys
import unicodedata
from base64 import b64encode
from collections.abc import Mapping, Sequence
from urllib.parse import quote

#: Matches a text that spreadsheets read as a formula. It starts with a tab, a line break, or a
#: sign such as ``=``. Blanks may precede the sign, and some signs may be in full width.
_is_formula = re.compile(r"[\t\r\n]|\s*[=+\-@|%＝＋－＠]").match
_is_number = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?").fullmatch
HIDDEN = "***"
#: Shortest secret; shorter values are plain words or dummies (`EMPTY`).
_SHORTEST = 8
#: Matches environment variables for secrets of S3, Azure, the hub, chat servers, ...
_SECRET = re.compile(
    r"(?:^|_)(?:(?:API)?KEYS?|TOKENS?|SECRETS?|PASSPHRASE|SAS|CONNECTION_STRING)(?:_|$)|PASSWORD"
)
#: If a variable's name also matches this pattern, it contains a path or address, not a secret.
_PLACE = re.compile(r"_(?:FILE|PATH|URI|URL|ENDPOINT|DIR)$")
_SECRET_PARAMETERS = (
    r"x-(?:amz|goog)-(?:signature|credential|security-token)|sig|signature|(?:access[_-]?)?token|"
    r"(?:api[_-]?)?key|password|passwd|secret|awsaccesskeyid"
)
_FORMS = (
    # Hide user:password before @. In a web address, also hide a user name that has no password.
    # In abfs://container@account, the text before @ is not a user name.
    re.compile(r"(?<=://)[^\s/?#@:]*:[^\s/?#]*(?=@)|(?<=http://)[^\s/?#]+(?=@)"),
    re.compile(r"(?<=https://)[^\s/?#]+(?=@)"),
    re.compile(rf"(?<=[?&;])((?:{_SECRET_PARAMETERS})=)[^\s&\"'<>)]+", re.I),
    re.compile(r"\b((?:AccountKey|SharedAccessSignature|Credential|Signature)=)[^\s,;&\"'<>)]+"),
    re.compile(r"(authorization['\"]?\s*[:=]\s*['\"]?(?:bearer|basic) )[\w.~+/=-]{8,}", re.I),
    # A word after Bearer or Basic is a token only if it has a digit or at least 24 characters.
    re.compile(r"\b((?:Bearer|Basic) )(?=\S*\d|\S{24})[\w.~+/=-]{8,}"),
    re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END|\Z)", re.S),
)


def terminal(text: str, *, lines: bool = False) -> str:
    """Replace unprintable characters with escapes such as ``\\x1b``.

    The text then can't control a terminal. The function escapes control characters, which start
    ANSI sequences, and line breaks. It also escapes invisible characters such as zero-width spaces,
    marks that change the direction of text, and halves of surrogate pairs. Letters of all scripts,
    spaces and combining marks are unchanged. With ``lines``, ``\\n`` and tabs are unchanged too.
    Escaping the result again doesn't change it.

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
    """Return whether UTF-8 can encode a text. It can't encode half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def csv_cell(value: object) -> object:
    """Put an apostrophe before text that a spreadsheet would read as a formula.

    Other values, including numbers such as ``-1`` written as text, are returned unchanged.
    """
    if isinstance(value, str) and _is_formula(value) and not _is_number(value):
        return f"'{value}"
    return value


def as_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows as CSV text, with all digits. Formulas are escaped (see ``csv_cell``).

    If there are no rows, return an empty string.
    """
    if not rows:
        return ""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(csv_cell, rows[0]))
    writer.writerows(map(csv_cell, row.values()) for row in rows)
    return out.getvalue()


def sql_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def markdown_row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def policy_hash(text: str) -> str:
    """Return the hash that makes a content security policy allow an inline style or script."""
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def say(text: str = "", *, err: bool = False) -> None:
    """Print text to standard output or, with ``err``, to standard error.

    The text is escaped with ``terminal``, and so are characters that the stream can't encode.
    """
    stream = sys.stderr if err else sys.stdout
    encoding = stream.encoding or "utf-8"
    line = terminal(text, lines=True).encode(encoding, "backslashreplace").decode(encoding)
    print(line, file=stream, flush=True)


def hidden(text: str, environment: Mapping[str, str] | None = None) -> str:
    """Replace each secret in a text with ``***``. Repeating this doesn't change the result.

    Secrets are credentials in addresses and headers, and the values of environment variables with
    names like ``HF_TOKEN``. Such a value is also found if it is percent-encoded, escaped for JSON,
    or cut off at the text's end.
    """
    for name, value in (os.environ if environment is None else environment).items():
        if _SECRET.search(name.upper()) and not _PLACE.search(name.upper()):
            for spelling in spellings(value.strip()):
                text = _without(text, spelling)
    for form in _FORMS:
        text = form.sub(lambda match: (match[1] if match.re.groups else "") + HIDDEN, text)
    return text


def spellings(secret: str) -> tuple[str, ...]:
    """Return the forms that a secret may have in a text, longest first. Skip short secrets."""
    if len(secret) < _SHORTEST:
        return ()
    forms = {secret, quote(secret, safe=""), quote(secret), json.dumps(secret)[1:-1]}
    return tuple(sorted(forms, key=len, reverse=True))


def _without(text: str, secret: str) -> str:
    text = text.replace(secret, HIDDEN)
    cut = next((n for n in range(len(secret), _SHORTEST - 1, -1) if text.endswith(secret[:n])), 0)
    return text[:-cut] + HIDDEN if cut else text
