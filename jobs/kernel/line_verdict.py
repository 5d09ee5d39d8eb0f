"""Check, in Python, the lines of JSON that the compiled parser doesn't accept."""

from __future__ import annotations

import json
from dataclasses import dataclass

from plumbline.warehouse.input.shards import MISSING, field_value

#: Longest line, in bytes, that Python parses. Parsing needs many times as much memory. A longer
#: line is rejected unless the compiled parser accepts it.
LONGEST_JUDGED = 1 << 25


@dataclass(frozen=True)
class LineVerdict:
    """Python's verdict on a line: its text and source, or why it is rejected."""

    text: str | None = None
    reason: str | None = None
    source: str | None = None


def judge(line: bytes, field: str = "text", source_field: str = "") -> LineVerdict:
    """Return the text of one line, or why it is rejected.

    A blank line is not a document. A line is rejected if it isn't valid UTF-8, or if ``json.loads``
    can't parse it. The line must be an object, whose ``field`` must be a string without lone
    surrogates. A field ``a.b`` means the key ``a.b`` if there is one, else ``b`` in object ``a``.

    >>> judge(b'{"doc": {"body": "tea"}}', "doc.body").text
    'tea'
    >>> judge(b'["tea"]').reason
    'record is not an object but array'
    """
    if not line.strip(b" \t\r\n"):
        return LineVerdict()
    try:
        record = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as e:
        return LineVerdict(reason=f"invalid UTF-8 at byte {e.start}: {e.reason}")
    except json.JSONDecodeError as e:
        nul = ", the line holds NUL bytes" if b"\0" in line else ""
        return LineVerdict(reason=f"not JSON: {e.msg} at character {e.pos}{nul}")
    except ValueError as e:
        return LineVerdict(reason=f"not JSON Python can hold: {e}")
    except RecursionError:
        return LineVerdict(reason="not JSON Python can hold: nested too deeply")
    if not isinstance(record, dict):
        return LineVerdict(reason=f"record is not an object but {_kind(record)}")
    text = field_value(record, field)
    if text is MISSING:
        return LineVerdict(reason=f"record has no `{field}`")
    if not isinstance(text, str):
        return LineVerdict(reason=f"`{field}` is not a string but {_kind(text)}")
    try:
        text.encode()
    except UnicodeEncodeError as e:
        return LineVerdict(reason=f"`{field}` holds a lone surrogate at character {e.start}")
    return LineVerdict(text=text, source=_source(record, source_field))


def _source(record: object, field: str) -> str | None:
    """Return the string in a field, or None if there isn't one. ``a.b`` means ``b`` in ``a``."""
    for name in field.split(".") if field else ():
        record = record.get(name) if isinstance(record, dict) else None
    return record if isinstance(record, str) else None


def _kind(value: object) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")


def excerpt(line: bytes, limit: int = 120) -> str:
    """Return the start of a line. Escape control characters and bytes that aren't UTF-8.

    >>> excerpt(bytes([97, 0, 255]))
    'a\\\\x00\\\\xff'
    """
    text = line[: 4 * limit].decode("utf-8", "backslashreplace")
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:limit])
    return shown + ("..." if len(text) > limit or len(line) > 4 * limit else "")
