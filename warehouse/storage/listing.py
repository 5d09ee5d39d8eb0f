"""What a version of a warehouse lists: data files, their units of rows, and the format's version.

``verify`` checks that a data file is as listed.

A new table, or a new column that may be NULL, keeps the format's version: older files are read with
NULL in the column. Any other change increases it, and a warehouse of another version is refused.
"""

from __future__ import annotations

import errno
import hashlib
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.warehouse.schema.columns import Table

#: The file that marks a directory as a warehouse, and holds the version.
MARKER = "plumbline.json"
#: The version that this Plumbline reads and writes.
FORMAT = 7


@dataclass(frozen=True)
class Unit:
    """Rows that are published and replaced together: their name, their number, their run."""

    name: str
    n_rows: int
    run_id: str


@dataclass(frozen=True)
class File:
    """A data file: its path, the size and hash of its content, and the units it holds.

    ``columns`` is the ``columns_id`` when it was written; ``partition`` holds the values of the
    table's partition columns. The units are in the order of their rows. ``written_ms`` is when it
    was written (Unix time in milliseconds).
    """

    path: str
    n_bytes: int
    sha256: str
    written_ms: int
    columns: str
    partition: tuple[str, ...]
    units: tuple[Unit, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows of all units."""
        return sum(unit.n_rows for unit in self.units)

    @property
    def directory(self) -> str:
        """Directory of the file's partition."""
        return self.path.rpartition("/")[0]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> File:
        """A file from its entry in a commit."""
        units = tuple(Unit(*unit) for unit in values["units"])
        return cls(**{**values, "partition": tuple(values["partition"]), "units": units})


def columns_id(table: Table) -> str:
    """Hash of the names of a table's columns, in their order."""
    return hashlib.sha256(" ".join(table.names).encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Listing:
    """All data files of a table. ``version``: number of earlier listings; -1: never had files.

    ``columns``: names of the table's columns in the newest Plumbline that wrote to it.
    """

    version: int = -1
    columns: tuple[str, ...] = ()
    files: tuple[File, ...] = ()


class Damaged(ValueError):
    """A file's content differs from what was published."""


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(path: Path, n_bytes: int, sha256: str) -> None:
    """Raise ``Damaged`` if a file isn't as published, ``OSError`` if it is unreadable."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if status.st_size != n_bytes:
        raise Damaged(f"holds {status.st_size:,} bytes instead of {n_bytes:,}")
    if sha256_of(path) != sha256:
        raise Damaged("its hash differs from the published one")
