"""Check paths that users give, read whole files, and replace files in one step.

Names may come from files and servers, so a name that would lead to another directory is an error.
An input that is a pipe or device is an error, because reading it could wait forever.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from plumbline.warehouse.errors import BadInput, UsageProblem, naming

#: Largest file, in bytes, that is read as a whole: settings, ledgers, commits, word lists.
LARGEST = 256 << 20
#: Longest file name, in bytes, on common file systems.
_LONGEST = 255
_SCHEMES = re.compile(r"^(s3|s3a|gs|az|abfs|abfss):/+", re.IGNORECASE)
#: The beginning of any address. A single letter before a colon is a Windows drive.
_ANY_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:(/+|$)")


class Address(type(Path())):  # type: ignore[misc]
    """An address in the form of a ``Path``. It can be printed and joined, but not opened."""

    def __str__(self) -> str:
        return str(super().__str__()).replace(":/", "://", 1)

    def resolve(self, strict: bool = False) -> Path:  # an address is always absolute
        return self

    absolute = resolve


def address(text: str | Path) -> Path | None:
    """Return a text or path as an ``Address`` if it is in an object store, or else ``None``."""
    return Address(str(text)) if _SCHEMES.match(str(text)) else None


def segment(name: str, before: str = "", after: str = "") -> str:
    """Make one component of a path: ``before``, the percent-encoded ``name``, and ``after``.

    Different names give different components. Raises ``BadInput`` if the component is empty, is too
    long for a file name, leads to another directory, or isn't Unicode.

    >>> segment("../a=b", "corpus=")
    'corpus=..%2Fa%3Db'
    """
    fix = "choose another name"
    try:
        part = f"{before}{quote(name, safe='')}{after}"
    except UnicodeEncodeError as e:
        raise BadInput(f"name {name[:40]!r}", "is not Unicode", fix) from e
    if part in ("", ".", ".."):
        raise BadInput(f"name {name!r}", "can't name a file", fix)
    if len(part) > _LONGEST:
        problem = f"is too long to name a file: {len(part)} bytes, at most {_LONGEST}"
        raise BadInput(f"name {name[:40]!r}...", problem, fix)
    return part


def check_input(path: Path, *, file: bool = True, directory: bool = False) -> None:
    """Raise ``UsageProblem`` unless the path is a regular file or, if allowed, a directory."""
    # os.path returns false, not an error, if the name is too long or contains a zero byte.
    if (file and os.path.isfile(path)) or (directory and os.path.isdir(path)):
        return
    problem = f"isn't a {'regular file' if file else 'directory'}"
    problem = problem if os.path.exists(path) else "doesn't exist"
    raise UsageProblem(str(path), problem, "give another path")


def check_output(path: Path, *, directory: bool = False, what: str = "output") -> None:
    """Raise ``UsageProblem`` if ``path`` can't be the path of an output file or directory."""
    fix, kind = "give another path", "directory" if directory else "regular file"
    if _ANY_SCHEME.match(str(path)):
        fix = "give a local path; of outputs, only a warehouse can be at s3://, gs:// or az://"
        raise UsageProblem(f"{what} {Address(path)}", "is not a path of this machine", fix)
    if os.path.exists(path):
        if not (os.path.isdir(path) if directory else os.path.isfile(path)):
            raise UsageProblem(f"{what} {path}", f"isn't a {kind}", fix)
        return
    above = next(p for p in path.absolute().parents if os.path.exists(p))
    if not os.path.isdir(above):
        raise UsageProblem(f"{what} {path}", f"{above} is a file", fix)


def opened(path: Path) -> io.BufferedReader:
    """Open a regular file for reading. Raises ``OSError`` for anything else, such as a pipe."""
    # Don't block: opening a pipe would wait until another process writes to it.
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as e:  # the path contains a zero byte
        raise OSError(errno.EINVAL, str(e), str(path)) from e
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(number, "rb")


def content(path: Path) -> bytes:
    """Read a whole regular file. Raises ``OSError`` for more than ``LARGEST`` bytes."""
    with opened(path) as file:
        if os.fstat(file.fileno()).st_size > LARGEST:
            raise OSError(errno.EFBIG, f"more than {LARGEST:,} bytes", str(path))
        return file.read()


def json_object(source: Path | str | bytes) -> dict[str, Any]:
    """Read a JSON object from a file or text. Raises ``OSError``, or ``ValueError`` if invalid."""
    try:
        value = json.loads(content(source) if isinstance(source, Path) else source)
    except RecursionError as e:
        raise ValueError("is nested too deeply") from e
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object")
    return value


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to. At the end, the file written there replaces ``path``.

    Readers of ``path`` always find a complete file, old or new. A missing directory is created.
    After an error, the old file is unchanged and the temporary file is removed. If the disk is
    full, the error names ``path``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Don't use ``path.name`` in the temporary name, because it may be empty. Make the path
    # absolute, because libraries read a relative path such as `a:b/c` as an address.
    temporary = path.parent.absolute() / f"_{uuid.uuid4().hex}.tmp"
    try:
        with naming(path):
            yield temporary
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def replace_directory(directory: Path, destination: Path) -> None:
    """Move ``directory`` to ``destination``. If there is a directory there, replace it.

    No other process may do this at the same time. ``destination`` is missing for an instant. If the
    process is killed during the call, the old directory may remain next to ``directory``. Its name
    then ends in ``-retired``, and the next call removes it.
    """
    old = directory.with_name(f"{directory.name}-retired")
    shutil.rmtree(old, ignore_errors=True)
    with suppress(FileNotFoundError):
        destination.rename(old)
    directory.rename(destination)
    shutil.rmtree(old, ignore_errors=True)
