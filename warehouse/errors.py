"""Errors a user is meant to read: one line, and an exit status that says what kind it is.

Every room raises these; the `plumbline` command prints the line and leaves with ``exit_code``.
Anything else that escapes is a defect and keeps its traceback.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plumbline.warehouse.text.escape import terminal


class PlumblineError(Exception):
    """Base of all errors with a one-line message for the user.

    Attributes:
        exit_code: the process status the command line leaves with (1 here, see the subclasses).

    >>> BadInput("shard 3", "truncated", "download it again").exit_code
    3
    >>> str(BadInput("shard 3", "truncated", "download it again"))
    'shard 3: truncated (download it again)'

    What it quotes is foreign text: as a string it is one line, and nothing in it steers a terminal.

    >>> print(BadInput("word \\x1b[2J", "is\\nnone"))
    word \\x1b[2J: is none
    """

    exit_code = 1

    def __init__(self, what: str, problem: str = "", fix: str = "") -> None:
        message = f"{what}: {problem}" if problem else what
        super().__init__(f"{message} ({fix})" if fix else message)
        self.args = (what, problem, fix)
        self.message = f"{message} ({fix})" if fix else message

    def __str__(self) -> str:
        return terminal(" ".join(self.message.split()))


class UsageProblem(PlumblineError):
    """The command was asked for something that does not exist or contradicts itself (status 2)."""

    exit_code = 2


class BadInput(PlumblineError):
    """A file, row or model is not what it has to be (status 3)."""

    exit_code = 3


class MissingComponent(PlumblineError):
    """A program or package is absent; the message holds the install line (status 4)."""

    exit_code = 4


class Interrupted(PlumblineError):
    """Stopped before the end; the same command goes on from there (status 5)."""

    exit_code = 5


@contextmanager
def disk_problems(place: Path) -> Iterator[None]:
    """Turn what the disk under ``place`` refuses inside the block into one line of bad input.

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
        problem = os.strerror(e.errno) if e.errno else str(e)
        where = f", {e.filename}" if e.filename and str(e.filename) != str(place) else ""
        fix = "see to the disk; what is done is kept, the same command goes on"
        raise BadInput(f"{place}{where}", problem, fix) from e
