"""Disks that are full or can't be written, whoever finds out: one line in place of a traceback."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from plumbline.warehouse.errors import BadInput

_REFUSED = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS))
#: What Java, SQLite, DuckDB and torch say in place of an error number.
_SIGNS = (
    "No space left on device",
    "database or disk is full",
    "disk quota exceeded",
    "Read-only file system",
    "attempt to write a readonly database",
)
#: Prefect's database has some 6 MB after one pipeline; with less room its server never comes up.
_LEAST = 16 << 20
#: Less than this free counts as full when a server has failed and keeps the reason to itself.
_NOTHING = 256 << 10
_FIX = "make room; finished work is kept: run the same command again to resume"


def check_room(place: Path, purpose: str) -> None:
    """Raise ``BadInput`` when ``place``, where ``purpose`` goes, can't be written or is full.

    The directory is made where there is none.
    """
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            free = shutil.disk_usage(place).free
    except OSError as e:
        problem = f"can't be written: {e.strerror or e}"
        raise BadInput(f"{place}, for {purpose}", problem, "set PREFECT_HOME") from e
    if free < _LEAST:
        problem = f"{free >> 20} MB free, needs {_LEAST >> 20} MB"
        raise BadInput(f"{place}, for {purpose}", problem, "make room, or set PREFECT_HOME")


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
                place = getattr(one, "filename", None) or full_place() or "disk"
                return BadInput(str(place), sign, _FIX)
    return None


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, then what each came from or came up during."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def full_place() -> Path | None:
    """The first of Prefect's directory, this one, and that of temporary files without room."""
    places = (os.environ.get("PREFECT_HOME"), ".", tempfile.gettempdir)
    for place in places:
        try:
            path = Path(place() if callable(place) else place or ".")
            if shutil.disk_usage(path).free < _NOTHING:
                return path.resolve()
        except OSError:  # not there; or there is no directory for temporary files at all
            continue
    return None
