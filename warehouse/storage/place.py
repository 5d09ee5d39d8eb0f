"""Storage of a warehouse: a directory, or a prefix of an object store, behind one interface.

Commits need one operation, which both have: create a file unless its name is taken. Names are
relative, with ``/``, and quoted (see ``paths.segment``). DuckDB and Arrow don't notice a flipped
bit, so a data file's hash is checked before the file is used.
"""

from __future__ import annotations

import os
import shlex
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from plumbline.warehouse.paths import content
from plumbline.warehouse.storage.listing import verify

if TYPE_CHECKING:
    from plumbline.warehouse.storage.bucket import Bucket

#: Directory of files that are being written, in a warehouse on a disk.
STAGING = "_staging"


@dataclass(frozen=True)
class Disk:
    """A directory of a file system with hard links; ``Bucket`` has the same methods."""

    root: Path

    def __str__(self) -> str:
        return str(self.root)

    def read(self, name: str) -> bytes:
        """Content of a small file. Raises ``FileNotFoundError`` for a missing file."""
        return content(self.root / name)

    def create(self, name: str, content: bytes) -> bool:
        """Create a file unless its name is taken; true if created. It survives a power cut."""
        temporary = staging(self) / uuid.uuid4().hex
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            target = self._with_parents(name)
            try:
                os.link(temporary, target)
            except FileExistsError:
                return False
            _sync(target.parent)
            return True
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)

    def put(self, local_path: Path, name: str) -> None:
        """Move a complete local file to a name; it survives a power cut."""
        with open(local_path, "rb") as file:
            os.fsync(file.fileno())
        os.utime(local_path)  # `compact` takes an old file that no commit names for a leftover
        target = self._with_parents(name)
        os.rename(local_path, target)
        _sync(target.parent)

    def names(self, directory: str) -> list[str]:
        """Sorted names of a directory's files; empty if it's missing."""
        try:
            return sorted(os.listdir(self.root / directory))
        except FileNotFoundError:
            return []

    def walk(self) -> Iterator[tuple[str, float]]:
        """Name and time (Unix seconds) of each file except unfinished work."""
        for folder, folders, names in os.walk(self.root):
            here = Path(folder).relative_to(self.root)
            if here == Path():
                folders[:] = [f for f in folders if f not in (STAGING, "_work")]
            for name in names:
                with suppress(FileNotFoundError):  # another process removed it
                    yield (here / name).as_posix(), os.lstat(Path(folder, name)).st_mtime

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        path = self.root / name
        with suppress(FileNotFoundError):
            os.unlink(path)
        with suppress(OSError):  # it holds other files, or is gone
            os.rmdir(path.parent)

    def local(self, name: str, n_bytes: int, sha256: str, *, stored: bool = False) -> Path:
        """A local path at which a data file can be read; its hash is checked.

        With ``stored``, a remote file is downloaded again, even if there is a local copy. Raises
        ``FileNotFoundError`` for a missing file, ``Damaged`` for a changed file.
        """
        verify(self.root / name, n_bytes, sha256)
        return self.root / name

    def scratch(self) -> Path:
        """A local directory for unfinished work, with ``_staging`` and ``_work``."""
        return self.root

    def _with_parents(self, name: str) -> Path:
        """The path of a name. Makes missing directories, which survive a power cut."""
        target = self.root / name
        for directory in reversed([p for p in target.parents if not p.exists()]):
            with suppress(FileExistsError):
                os.mkdir(directory)
            _sync(directory.parent)
        return target


Place: TypeAlias = "Disk | Bucket"


def command(place: Place, *words: str) -> str:
    """A command line of `plumbline warehouse` for this warehouse."""
    return shlex.join(("plumbline", "warehouse", *words, "--warehouse", str(place)))


def staging(place: Place) -> Path:
    """The directory for files that are being written; created if missing."""
    path = place.scratch() / STAGING
    path.mkdir(parents=True, exist_ok=True)
    return path


def _sync(directory: Path) -> None:
    """Make the names in a directory survive a power cut."""
    number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
