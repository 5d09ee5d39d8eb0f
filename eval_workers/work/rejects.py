"""Rows of the ``reject`` table: input that was not used, kept with its reason."""

from __future__ import annotations

from collections.abc import Mapping

from plumbline.warehouse.text.escape import terminal

_EXCERPT_CHARACTERS = 120


def printable(text: str) -> str:
    """The start of a text with everything unprintable escaped, safe for a terminal and for UTF-8.

    >>> printable("a\\x00b\\ud800")
    'a\\\\x00b\\\\ud800'
    """
    return terminal(text[:_EXCERPT_CHARACTERS])


def reject_row(
    *, stage: str, subject: str, source_file: str, source_row: int, reason: str, excerpt: str
) -> dict[str, object]:
    """One row of ``reject`` without its ``run_id``; the excerpt is shortened and made printable.

    >>> row = reject_row(stage="benchmark", subject="demo", source_file="a.csv", source_row=1,
    ...                  reason="the template is empty", excerpt="")
    >>> row["source_row"], row["reason"]
    (1, 'the template is empty')
    """
    return {
        "stage": stage,
        "subject": subject,
        "source_file": source_file,
        "source_row": source_row,
        "reason": reason,
        "excerpt": printable(excerpt),
    }


def rejected(row: Mapping[str, object], reason: str, excerpt: str) -> dict[str, object]:
    """A row of ``reject`` for a row of a table with its source; its step adds the rest."""
    source = {name: row[name] for name in ("source_file", "source_row")}
    return {**source, "reason": reason, "excerpt": printable(excerpt)}
