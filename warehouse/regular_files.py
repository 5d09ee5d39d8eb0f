"""Checks and reads of users' files: a pipe or device is an error, never an endless wait."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.paths import as_url

#: Most bytes of a file that is read as a whole: settings, ledgers, commits, lists of words.
LARGEST = 256 << 20
#: Top directories that take no users' files, and the directory below them that does.
_NO_FILES, _FILES = frozenset(("proc", "sys", "dev")), ("dev", "shm")
_ANOTHER = "give another path"


def opened(path: Path) -> io.BufferedReader:
    """Open a regular file for reading. Raises ``OSError`` for anything else, also for a pipe.

    >>> opened(Path("/dev/null"))
    Traceback (most recent call last):
    ...
    OSError: [Errno 22] not a regular file: '/dev/null'
    """
    # Not blocking: opening a pipe would wait for its writer.
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as e:  # the path holds a zero byte
        raise OSError(errno.EINVAL, str(e), str(path)) from e
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(number, "rb")


def kind_of(path: Path) -> int | None:
    """The type of the file at a path, such as ``stat.S_IFREG``; ``None`` if it can't be found.

    >>> kind_of(Path("/")) == stat.S_IFDIR, kind_of(Path("no such file"))
    (True, None)
    """
    try:
        return stat.S_IFMT(os.stat(path).st_mode)
    except (OSError, ValueError):  # ValueError: the path holds a zero byte
        return None


def check_input(path: Path) -> None:
    """Raise ``UsageProblem`` unless a path is a regular file.

    >>> check_input(Path("/dev/null"))
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.UsageProblem: file /dev/null: isn't a regular file (give the path \
of a file)
    """
    if (kind := kind_of(path)) != stat.S_IFREG:
        problem = "doesn't exist" if kind is None else "isn't a regular file"
        raise UsageProblem(f"file {path}", problem, "give the path of a file")


def check_input_directory(path: Path) -> None:
    """Raise ``UsageProblem`` unless a path is a directory."""
    if (kind := kind_of(path)) != stat.S_IFDIR:
        problem = "doesn't exist" if kind is None else "is a file, expected a directory"
        raise UsageProblem(f"directory {path}", problem, "give the path of a directory")


def check_input_path(path: Path) -> None:
    """Raise ``UsageProblem`` unless a path is a regular file or a directory."""
    if kind_of(path) != stat.S_IFDIR:
        check_input(path)


def check_output_file(path: Path) -> None:
    """Raise ``UsageProblem`` for a path at which no file can be written.

    >>> check_output_file(Path("/proc/table.csv"))
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.UsageProblem: output /proc/table.csv: files can't be written there \
(give another path)
    """
    if kind_of(path) not in (None, stat.S_IFREG):
        raise UsageProblem(f"output {path}", "exists, but isn't a regular file", "give a file")
    _check_place(path, "output")


def check_output_directory(path: Path, what: str = "output") -> None:
    """Raise ``UsageProblem`` for a path at which no directory can be made or written to."""
    if kind_of(path) not in (None, stat.S_IFDIR):
        raise UsageProblem(f"{what} {path}", "is a file, expected a directory", _ANOTHER)
    _check_place(path, what)


def _check_place(path: Path, what: str) -> None:
    if url := as_url(path):
        fix = "give a local path; of outputs, only a warehouse can be at s3://, gs:// or az://"
        raise UsageProblem(f"{what} {url}", "is not a path of this machine", fix)
    try:
        real = Path(os.path.realpath(path))
    except ValueError as e:  # the path holds a zero byte
        raise UsageProblem(f"{what} {path}", "is not a valid path", _ANOTHER) from e
    if not _NO_FILES.isdisjoint(real.parts[1:2]) and real.parts[1:3] != _FILES:
        raise UsageProblem(f"{what} {path}", "files can't be written there", _ANOTHER)
    above = next(p for p in (*real.parents, Path("/")) if kind_of(p) is not None)
    if kind_of(above) != stat.S_IFDIR:
        raise UsageProblem(f"{what} {path}", f"{above} is a file", _ANOTHER)


def content(path: Path) -> bytes:
    """The bytes of a regular file. Raises ``OSError``, also for more than ``LARGEST`` bytes."""
    with opened(path) as file:
        if os.fstat(file.fileno()).st_size > LARGEST:
            raise OSError(errno.EFBIG, f"more than {LARGEST:,} bytes", str(path))
        return file.read()


def json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises ``OSError``, or ``ValueError`` for other content."""
    return object_of(content(path))


def object_of(text: str | bytes) -> dict[str, Any]:
    """The JSON object in a text. Raises ``ValueError`` for anything else.

    >>> object_of("[]")
    Traceback (most recent call last):
    ...
    ValueError: is not a JSON object
    """
    try:
        value = json.loads(text)
    except RecursionError as e:
        raise ValueError("is nested too deeply") from e
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object")
    return value


def stored_object(row: Mapping[str, Any], column: str) -> dict[str, Any]:
    """The JSON object in a column of a table's row.

    Raises ``BadInput`` with the row's run for anything else.

    >>> stored_object({"run_id": "r", "options": '{"log_base": "e"}'}, "options")
    {'log_base': 'e'}
    """
    try:
        return object_of(row[column])
    except (ValueError, TypeError) as e:  # TypeError: NULL
        what, fix = f"column {column} of run {row.get('run_id')}", "was it written by Plumbline?"
        raise BadInput(what, str(e), fix) from e
