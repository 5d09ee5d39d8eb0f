"""Rows of table ``reject``: input that could not be used, with the reason."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from plumbline.warehouse.text.escape import terminal

_EXCERPT_CHARACTERS = 120
#: Most reasons that a message names.
_REASONS = 3


def printable(text: str) -> str:
    """The start of a text, with unprintable characters escaped."""
    return terminal(text[:_EXCERPT_CHARACTERS])


def rejected(
    row: Mapping[str, object], reason: str, excerpt: str, **partition: str
) -> dict[str, object]:
    """A row of ``reject`` for an input row with its source; the excerpt is made printable.

    ``partition``: stage and subject, unless whoever publishes the row adds them.
    """
    source = {name: row[name] for name in ("source_file", "source_row")}
    return {**partition, **source, "reason": reason, "excerpt": printable(excerpt)}


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
