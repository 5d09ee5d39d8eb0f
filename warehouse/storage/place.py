"""Where a warehouse is stored: in a directory (``Disk``) or an object store (``Bucket``).

Both classes have the same methods. Commits depend on ``create``, which never replaces a file.
Names of files are relative paths with ``/``, percent-encoded (see ``paths.segment``). DuckDB and
Arrow don't notice a flipped bit, so a data file's hash is checked before the file is used.

Data files of an object store (s3://, gs://, az://) are read from copies in the user's cache
directory. Unfinished work is stored in the same directory, unless ``PLUMBLINE_WORK`` names another.
Spark executors on other machines must be able to use the directory for unfinished work.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shlex
import stat
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from plumbline.warehouse.errors import failure
from plumbline.warehouse.paths import content
from plumbline.warehouse.text.escape import hidden

#: Directory, in a warehouse on a disk, for files that are being written.
STAGING = "_staging"


class Damaged(ValueError):
    """A file's content has changed since it was published."""


@dataclass(frozen=True)
class Unit:
    """Rows that are published and replaced as a whole. ``run_id`` is the run that wrote them."""

    name: str
    n_rows: int
    run_id: str


@dataclass(frozen=True)
class File:
    """A data file of a table. ``units`` lists the units of its rows, in the order of the rows.

    ``columns`` is the table's ``columns_id`` at the time of writing. ``partition`` has the values
    of the table's partition columns. ``written_ms`` is a Unix time in milliseconds.
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
        return sum(unit.n_rows for unit in self.units)

    @property
    def directory(self) -> str:
        return self.path.rpartition("/")[0]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> File:
        units = tuple(Unit(*unit) for unit in values["units"])
        return cls(**{**values, "partition": tuple(values["partition"]), "units": units})


@dataclass(frozen=True)
class Listing:
    """All data files of a table as of one commit.

    ``version`` is -1 if the table never had files, and 0 when it gets its first files. Each later
    change adds 1. ``columns`` are the columns that the table had at that commit.
    """

    version: int = -1
    columns: tuple[str, ...] = ()
    files: tuple[File, ...] = ()


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(path: Path, file: File) -> None:
    """Check a file. Raise ``Damaged`` for a wrong size or hash, ``OSError`` if it's unreadable."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if status.st_size != file.n_bytes:
        raise Damaged(f"holds {status.st_size:,} bytes instead of {file.n_bytes:,}")
    if sha256_of(path) != file.sha256:
        raise Damaged("its hash differs from the published one")


@dataclass(frozen=True)
class Disk:
    """A warehouse in a directory, on a file system that has hard links."""

    root: Path

    def __str__(self) -> str:
        return str(self.root)

    def read(self, name: str) -> bytes:
        """Read a small file. Raises ``FileNotFoundError`` for a missing file."""
        return content(self.root / name)

    def create(self, name: str, content: bytes) -> bool:
        """Create a file that survives a power cut. Return false if its name is taken."""
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
        """Move a complete local file to ``name``, so that it survives a power cut."""
        with open(local_path, "rb") as file:
            os.fsync(file.fileno())
        os.utime(local_path)  # set a new change time, so that `compact` keeps the file
        target = self._with_parents(name)
        os.rename(local_path, target)
        _sync(target.parent)

    def names(self, directory: str) -> list[str]:
        """Return the sorted file names in a directory, or ``[]`` if the directory is missing."""
        try:
            return sorted(os.listdir(self.root / directory))
        except FileNotFoundError:
            return []

    def walk(self) -> Iterator[tuple[str, float]]:
        """Yield each file's name and change time (Unix time). Skip ``_staging`` and ``_work``."""
        for folder, folders, names in os.walk(self.root):
            here = Path(folder).relative_to(self.root)
            if here == Path():
                folders[:] = [f for f in folders if f not in (STAGING, "_work")]
            for name in names:
                with suppress(FileNotFoundError):  # another process removed the file
                    yield (here / name).as_posix(), os.lstat(Path(folder, name)).st_mtime

    def remove(self, name: str) -> None:
        """Remove a file if it exists, and its directory if that is then empty."""
        path = self.root / name
        with suppress(FileNotFoundError):
            os.unlink(path)
        with suppress(OSError):  # the directory isn't empty, or is gone
            os.rmdir(path.parent)

    def local(self, file: File, *, stored: bool = False) -> Path:
        """Check a data file's hash. Return a local path from which the file can be read.

        If ``stored`` is true, a file of an object store is downloaded again, even if there is a
        local copy. Raises ``FileNotFoundError`` for a missing file, ``Damaged`` for a changed file.
        """
        verify(self.root / file.path, file)
        return self.root / file.path

    def scratch(self) -> Path:
        """Return the local directory that contains ``_staging`` and ``_work``."""
        return self.root

    def _with_parents(self, name: str) -> Path:
        """Return a file's path. Create its missing directories so that they survive a power cut."""
        target = self.root / name
        for directory in reversed([p for p in target.parents if not p.exists()]):
            with suppress(FileExistsError):
                os.mkdir(directory)
            _sync(directory.parent)
        return target


@dataclass(frozen=True)
class Bucket:
    """A warehouse in an object store, under a prefix. Its methods work like those of ``Disk``."""

    root: Path

    def __str__(self) -> str:
        return str(self.root)

    def read(self, name: str) -> bytes:
        with _one_line_errors(self.root, name):
            return bytes(_store(str(self.root)).get(name).bytes())

    def create(self, name: str, content: bytes) -> bool:
        from obstore.exceptions import AlreadyExistsError

        with _one_line_errors(self.root, name, writes=True):
            try:
                _store(str(self.root)).put(name, content, mode="create")
            except AlreadyExistsError:
                return False
        return True

    def put(self, local_path: Path, name: str) -> None:
        with _one_line_errors(self.root, name, writes=True):
            _store(str(self.root)).put(name, local_path)
        local_path.unlink()

    def names(self, directory: str) -> list[str]:
        with _one_line_errors(self.root):
            objects = _store(str(self.root)).list_with_delimiter(directory)["objects"]
        return sorted(item["path"].rpartition("/")[2] for item in objects)

    def walk(self) -> Iterator[tuple[str, float]]:
        with _one_line_errors(self.root):
            for page in _store(str(self.root)).list():
                yield from ((i["path"], i["last_modified"].timestamp()) for i in page)

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError), _one_line_errors(self.root, name):
            _store(str(self.root)).delete(name)

    def local(self, file: File, *, stored: bool = False) -> Path:
        path = _cache() / "files" / f"{file.sha256}.parquet"
        if not stored:
            with suppress(FileNotFoundError, Damaged):  # a damaged copy is downloaded again
                verify(path, file)
                return path
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{uuid.uuid4().hex}.tmp")
        try:
            with temporary.open("wb") as copy, _one_line_errors(self.root, file.path):
                copy.writelines(_store(str(self.root)).get(file.path))
            verify(temporary, file)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        return path

    def scratch(self) -> Path:
        top = Path(os.environ.get("PLUMBLINE_WORK") or _cache() / "work")
        return top / hashlib.sha256(str(self).encode()).hexdigest()[:16]


Place: TypeAlias = Disk | Bucket


def command(place: Place, *words: str) -> str:
    """Return a `plumbline warehouse` command, as text for messages."""
    return shlex.join(("plumbline", "warehouse", *words, "--warehouse", str(place)))


def staging(place: Place) -> Path:
    """Return the directory for files that are being written. Create it if it's missing."""
    path = place.scratch() / STAGING
    path.mkdir(parents=True, exist_ok=True)
    return path


def _sync(directory: Path) -> None:
    """Write a directory to disk, so that the names of its files survive a power cut."""
    number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _cache() -> Path:
    import platformdirs

    return platformdirs.user_cache_path("plumbline")


@cache
def _store(address: str) -> Any:
    from obstore.store import from_url

    from plumbline.warehouse.input.remote_files import CLIENT, check_endpoints

    check_endpoints()
    return from_url(address, **CLIENT)


@contextmanager
def _one_line_errors(root: Path, name: str = "", *, writes: bool = False) -> Iterator[None]:
    """Turn the server's errors in the block into one-line errors.

    The error is ``Interrupted`` if the server fails, and ``BadInput`` if the server refuses the
    request. If the block reads the file ``name``, a ``FileNotFoundError`` passes unchanged.
    """
    from obstore.exceptions import BaseError

    try:
        yield
    except (BaseError, FileNotFoundError) as e:
        if isinstance(e, FileNotFoundError) and name and not writes:
            raise
        # Leave out the start of the message: the request and its duration.
        line = str(e).splitlines()[0]
        reason = hidden(line.partition(" - ")[2] or line)[:300]
        fix = "check the address, and the keys in the environment: docs/corpora.md"
        where = f"warehouse {root}, {name}" if name else f"warehouse {root}"
        raise failure(e, where, reason, fix) from e
