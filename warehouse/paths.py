"""Paths: check users' paths, read whole files, and replace files in one step.

Names come from files and servers. Neither names nor links may lead out of their directory. A pipe
or device given as input is an error; reading it could wait for ever.
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
    """An address in place of a path: it can be shown and extended, but not opened."""

    def __str__(self) -> str:
        return str(super().__str__()).replace(":/", "://", 1)

    def resolve(self, strict: bool = False) -> Path:
        """Return the address itself, which is absolute."""
        return self

    absolute = resolve


def address(text: str | Path) -> Path | None:
    """Return a text or path as an object-store address, or ``None`` if it isn't an address."""
    return Address(str(text)) if _SCHEMES.match(str(text)) else None


def segment(name: str, before: str = "", after: str = "") -> str:
    """Quote ``name`` as part of a path, between two fixed texts. Different names stay different.

    Raises ``BadInput`` if the part is empty or too long for a file, leads to another directory, or
    isn't Unicode.

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
    """Raise ``UsageProblem`` unless a path is a regular file, or a directory if that is allowed."""
    # Functions of os.path return false for a name that is too long or contains a zero byte.
    if (file and os.path.isfile(path)) or (directory and os.path.isdir(path)):
        return
    problem = f"isn't a {'regular file' if file else 'directory'}"
    problem = problem if os.path.exists(path) else "doesn't exist"
    raise UsageProblem(str(path), problem, "give another path")


def check_output(path: Path, *, directory: bool = False, what: str = "output") -> None:
    """Raise ``UsageProblem`` if ``path`` can't be an output file, or output ``directory``."""
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
    # Non-blocking, since opening a pipe would wait for its writer.
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as e:  # the path contains a zero byte
        raise OSError(errno.EINVAL, str(e), str(path)) from e
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(number, "rb")


def content(path: Path) -> bytes:
    """Read a regular file. Raises ``OSError``, also for more than ``LARGEST`` bytes."""
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
    """Yield a temporary path to write to. Its file replaces ``path`` at the end of the block.

    Readers of ``path`` find the complete old or new file. A missing directory is created. After an
    error, the old file stays and no temporary file is left. If the disk is full, the error names
    ``path``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # The temporary name doesn't contain ``path.name``, which may be empty. The path is absolute,
    # because libraries take a relative `a:b/c` for an address.
    temporary = path.parent.absolute() / f"_{uuid.uuid4().hex}.tmp"
    try:
        with naming(path):
            yield temporary
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def replace_directory(directory: Path, destination: Path) -> None:
    """Replace ``destination``, which may be missing, by ``directory``.

    No other process may do so at the same time. ``destination`` is missing for an instant. If the
    process is killed then, the old directory stays next to ``directory``, with a name that ends in
    ``-retired``, until the next call.
    """
    old = directory.with_name(f"{directory.name}-retired")
    shutil.rmtree(old, ignore_errors=True)
    with suppress(FileNotFoundError):
        destination.rename(old)
    directory.rename(destination)
    shutil.rmtree(old, ignore_errors=True)
