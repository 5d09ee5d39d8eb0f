"""Rows of the ``reject`` table: unused input with the reason."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from plumbline.warehouse.text.escape import terminal

_EXCERPT_CHARACTERS = 120
#: Most reasons that a message names.
_REASONS = 3


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
    """Columns of ``reject`` for a row with source file and row; the step adds the other columns."""
    source = {name: row[name] for name in ("source_file", "source_row")}
    return {**source, "reason": reason, "excerpt": printable(excerpt)}


def reasons(rejects: Sequence[Mapping[str, object]]) -> str:
    """The commonest reasons and their counts; differences of a word or number are ignored.

    >>> causes = ["has 3 fields", "has 4 fields", "is empty"]
    >>> reasons([{"reason": reason} for reason in causes])
    '"has 3 fields" and alike (2), "is empty" (1)'
    """
    by_kind: dict[str, list[str]] = {}
    for row in rejects:
        # A list of words is the same reason as a single word.
        kind = re.sub(r"words?( '[^']*',?)+|\d+", "", str(row["reason"]))
        by_kind.setdefault(kind, []).append(str(row["reason"]))
    kinds = sorted(by_kind.values(), key=lambda alike: -len(alike))
    listed = [
        f'"{alike[0]}"{" and alike" if len(set(alike)) > 1 else ""} ({len(alike):,})'
        for alike in kinds[:_REASONS]
    ]
    return ", ".join([*listed, *(["..."] if len(kinds) > _REASONS else [])])
