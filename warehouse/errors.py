"""Errors for users: one line, and an exit status by the kind of error.

Every room raises these; the `plumbline` command prints the line and exits with ``exit_code``.
Any other exception is a defect and keeps its traceback.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plumbline.warehouse.text.escape import terminal
from plumbline.warehouse.text.redaction import hidden

#: Kinds of errors that files have, without those that only connections and processes have.
_OF_FILES = (
    *(OSError, FileNotFoundError, FileExistsError, PermissionError),
    *(NotADirectoryError, IsADirectoryError),
)
#: Numbers of a plain ``OSError`` that come from a network.
_OF_CONNECTIONS = frozenset(
    getattr(errno, name)
    for name in (
        *("EADDRINUSE", "EADDRNOTAVAIL", "EAFNOSUPPORT", "EHOSTDOWN", "EHOSTUNREACH", "EISCONN"),
        *("ENETDOWN", "ENETRESET", "ENETUNREACH", "ENOBUFS", "ENOTCONN", "ENOTSOCK"),
    )
    if hasattr(errno, name)
)


class PlumblineError(Exception):
    """Base of all errors with a one-line message for the user.

    Attributes:
        exit_code: exit status of the command (1 here, see the subclasses).

    >>> BadInput("shard 3", "truncated", "download it again").exit_code
    3
    >>> str(BadInput("shard 3", "truncated", "download it again"))
    'shard 3: truncated (download it again)'

    It may quote foreign text: as a string it is one line that can't steer a terminal, and secrets
    of the environment are hidden in it.

    >>> print(BadInput("word \\x1b[2J", "not\\nfound"))
    word \\x1b[2J: not found
    """

    exit_code = 1

    def __init__(self, what: str, problem: str = "", fix: str = "") -> None:
        what, problem, fix = map(hidden, (what, problem, fix))
        super().__init__(what, problem, fix)
        message = f"{what}: {problem}" if problem else what
        self.message = f"{message} ({fix})" if fix else message

    def __str__(self) -> str:
        return terminal(" ".join(self.message.split()))

    def _render_traceback_(self) -> list[str]:
        """What notebooks show of it: the line, and not the frames that raised it."""
        return [f"{type(self).__name__}: {self}"]


class UsageProblem(PlumblineError):
    """The request names something that does not exist or contradicts itself (status 2)."""

    exit_code = 2


class BadInput(PlumblineError):
    """A file, row or model does not have the expected form (status 3)."""

    exit_code = 3


class MissingComponent(PlumblineError):
    """A program or package is absent; the message holds the install line (status 4)."""

    exit_code = 4


class Interrupted(PlumblineError):
    """The same command, unchanged, resumes or may succeed later (status 5).

    It was stopped, a process of it was killed, or a network or server is away. Where something has
    to be changed first, it is ``BadInput``.
    """

    exit_code = 5


@contextmanager
def disk_problems(path: Path) -> Iterator[None]:
    """Turn errors of the disk under ``path`` inside the block into one line of bad input.

    Other errors of the system, such as those of connections, stay what they are.

    >>> try:
    ...     with disk_problems(Path("out")):
    ...         raise OSError(28, "No space left on device")
    ... except BadInput as e:
    ...     e.args[:2]
    ('out', 'No space left on device')
    """
    try:
        yield
    except OSError as e:
        if not _is_of_disk(e):
            raise
        problem = (e.filename and e.strerror) or (os.strerror(e.errno) if e.errno else str(e))
        where = f", {e.filename}" if e.filename and str(e.filename) != str(path) else ""
        fix = "check the disk; finished work is kept: run the same command again to resume"
        raise BadInput(f"{path}{where}", problem, fix) from e


def _is_of_disk(error: OSError) -> bool:
    """Whether an error of the system is one of files: it names one, or its kind and number can be.

    Libraries have classes of their own for connections; `urllib` calls an address a file name.

    >>> _is_of_disk(OSError(28, "No space left on device")), _is_of_disk(ConnectionResetError())
    (True, False)
    """
    if error.filename is not None and type(error).__module__ == "builtins":
        return True
    return type(error) in _OF_FILES and error.errno not in _OF_CONNECTIONS
