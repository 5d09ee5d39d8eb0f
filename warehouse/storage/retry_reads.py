"""Reading while partitions are replaced: a file that was listed may be gone when it is opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_TRIES = 20
#: What DuckDB says of a file that it has listed, and finds no more.
_GONE = ("No such file or directory", "No files found that match the pattern")

_Found = TypeVar("_Found")


def steadily(read: Callable[[], _Found]) -> _Found:
    """What ``read`` gives; it is asked again where files go between its steps.

    It has to list the files anew each time. A file that stays away is told as ``read`` tells it.

    >>> found = iter([FileNotFoundError(), "rows"])
    >>> def read():
    ...     one = next(found)
    ...     if isinstance(one, Exception):
    ...         raise one
    ...     return one
    >>> steadily(read)
    'rows'
    """
    for _ in range(_TRIES - 1):
        try:
            return read()
        except Exception as e:
            if not _is_gone(e):
                raise
    return read()


def _is_gone(error: Exception) -> bool:
    of_duckdb = type(error).__module__.partition(".")[0] in ("duckdb", "_duckdb")
    said = str(error)
    return isinstance(error, FileNotFoundError) or (of_duckdb and any(s in said for s in _GONE))
