"""Where released tables lie, and what their rows are called."""

from __future__ import annotations

from pathlib import Path

from plumbline.warehouse.errors import BadInput


def locate(source: Path, stem: str) -> Path:
    """The table ``<stem>.csv`` or ``<stem>.csv.gz`` in a directory, or the file itself.

    Raises ``BadInput`` naming what was looked for.
    """
    if source.is_file():
        return source
    for name in (f"{stem}.csv", f"{stem}.csv.gz"):
        if (source / name).is_file():
            return source / name
    raise BadInput(f"{source}", f"holds neither {stem}.csv nor {stem}.csv.gz", "give --source PATH")


def index_id(prefix: str, value: str) -> str:
    """A pair's identifier from a table's own index, sorted as text like the index; empty if none.

    >>> index_id("dev-", "7"), index_id("", "x")
    ('dev-00007', '')
    """
    return f"{prefix}{int(value):05d}" if value.isascii() and value.isdigit() else ""
