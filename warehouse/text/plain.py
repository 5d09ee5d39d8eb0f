"""Text of corpora and models made harmless for terminals and spreadsheets."""

from __future__ import annotations

#: What a spreadsheet takes a cell for a formula by, when it comes first.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def printable(value: object) -> str:
    """A value as one line of text that cannot steer a terminal; NULL is empty.

    >>> printable(0.30000000000000004), printable("a\\x1b[31mb"), printable(None)
    ('0.3', 'a\\\\x1b[31mb', '')
    """
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def spreadsheet_cell(value: object) -> object:
    """A CSV cell that no spreadsheet computes: text that starts like a formula gets a ``'``.

    >>> spreadsheet_cell("=1+1"), spreadsheet_cell("tea"), spreadsheet_cell(-1.5)
    ("'=1+1", 'tea', -1.5)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value
