"""Reading files that may be anything: a pipe or device is an error, never a wait without end."""

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
from plumbline.warehouse.paths import replacing

#: Most bytes of a file that is read as a whole: settings, ledgers, commits, lists of words.
LARGEST = 256 << 20


def opened(path: Path) -> io.BufferedReader:
    """A regular file, open for reading. Raises ``OSError`` for anything else, also for a pipe.

    >>> opened(Path("/dev/null"))
    Traceback (most recent call last):
    ...
    OSError: [Errno 22] not a regular file: '/dev/null'
    """
    # Not blocking: opening a pipe would wait for its writer.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(number, "rb")


def check_output(path: Path) -> None:
    """Raise ``BadInput`` where a file is to be written and something else is, such as a pipe.

    >>> check_output(Path("/dev/null"))
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.BadInput: /dev/null: is not a regular file (name another)
    """
    if path.exists() and not path.is_file():
        raise BadInput(str(path), "is not a regular file", "name another")


def content(path: Path) -> bytes:
    """The bytes of a regular file. Raises ``OSError``, also for more than ``LARGEST`` bytes."""
    with opened(path) as file:
        found = file.read(LARGEST + 1)
    if len(found) > LARGEST:
        raise OSError(errno.EFBIG, f"more than {LARGEST:,} bytes", str(path))
    return found


def json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises ``OSError``, ``ValueError`` for anything else in it."""
    return object_of(content(path))


def begin_directory(directory: Path, ledger: str, facts: Mapping[str, Any]) -> None:
    """Note in an empty directory what is written to it, or see that it was begun for the same.

    Raises ``UsageProblem`` for a directory that holds anything else, ``BadInput`` for one that
    can't be written.
    """
    path, given = directory / ledger, json.loads(json.dumps(facts))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if path.is_file() and json_object(path) == given:
            return
        if any(directory.iterdir()):
            raise UsageProblem(f"directory {directory}", "is not empty", "give another --out")
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(given), encoding="utf-8")
    except (OSError, ValueError) as e:
        fix = "give another --out"
        raise BadInput(f"directory {directory}", f"can't be written: {e}", fix) from e


def object_of(text: str | bytes) -> dict[str, Any]:
    """The JSON object that a text is. Raises ``ValueError`` for anything else.

    >>> object_of("[]")
    Traceback (most recent call last):
    ...
    ValueError: is not a JSON object
    """
    try:
        found = json.loads(text)
    except RecursionError as e:
        raise ValueError("is nested too deeply") from e
    if not isinstance(found, dict):
        raise ValueError("is not a JSON object")
    return found


def kept_object(row: Mapping[str, Any], column: str) -> dict[str, Any]:
    """The JSON object in a column of a table's row.

    Raises ``BadInput`` naming the row's run for anything else.

    >>> kept_object({"run_id": "r", "options": '{"log_base": "e"}'}, "options")
    {'log_base': 'e'}
    """
    try:
        return object_of(row[column])
    except (ValueError, TypeError) as e:  # NULL is not a text
        what, fix = f"column {column} of run {row.get('run_id')}", "was it written by Plumbline?"
        raise BadInput(what, str(e), fix) from e
