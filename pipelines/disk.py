"""Disks that are full or can't be written, whoever finds out: one line instead of a traceback."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from plumbline.warehouse.errors import BadInput

_REFUSED = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS))
#: What Java, SQLite, DuckDB and torch say instead of an error number.
_SIGNS = (
    "No space left on device",
    "database or disk is full",
    "disk quota exceeded",
    "Read-only file system",
    "attempt to write a readonly database",
)
_FIX = "make room; finished work is kept: run the same command again to resume"


def problem(error: BaseException) -> BadInput | None:
    """The line for an error that a full or read-only disk is behind; ``None`` for all others.

    Looks at the error and at what it came from.

    >>> import errno
    >>> problem(OSError(errno.ENOSPC, "No space left on device", "out/x")).args[:2]
    ('out/x', 'No space left on device')
    >>> problem(ValueError("no number")) is None
    True
    """
    for one in chain(error):
        if isinstance(one, OSError) and one.errno in _REFUSED:
            return BadInput(str(one.filename or "disk"), os.strerror(one.errno), _FIX)
        for sign in _SIGNS:
            if sign in str(one):
                place = getattr(one, "filename", None) or "disk"
                return BadInput(str(place), sign, _FIX)
    return None


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, then what each came from or came up during."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
