"""Files at a URI that pyarrow knows: s3://, gs://, abfs://, hdfs://, file://."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from plumbline.warehouse.errors import BadInput, UsageProblem

#: The list of what was pushed, beside the files; written last.
LIST = "plumbline-files.json"
#: Stores in which an object appears only when it is complete, and renaming would copy it.
_OBJECT_STORES = ("s3", "gcs", "abfs")
_PIECE_BYTES = 8 << 20


@dataclass(frozen=True)
class Entry:
    """Size in bytes and SHA-256 (hex) of a file.

    >>> Entry.of([b"te", b"a"])
    Entry(size=3, sha256='a9f74d1ec36ebdeb2da3f6e5868090cd2a2d20b3dcca7b62f60304b1d3d9ef42')
    """

    size: int
    sha256: str

    @classmethod
    def of(cls, pieces: Any) -> Entry:
        """The entry of a file's pieces."""
        digest, size = hashlib.sha256(), 0
        for piece in pieces:
            digest.update(piece)
            size += len(piece)
        return cls(size, digest.hexdigest())

    @classmethod
    def of_file(cls, path: Path) -> Entry:
        """The entry of a local file."""
        with path.open("rb") as file:
            return cls.of(_pieces(file.read))


def shown(uri: str) -> str:
    """A URI without what may be a secret in it: user, password and options.

    >>> shown("s3://key:secret@bucket/w?region=eu")
    's3://bucket/w'
    """
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


@contextmanager
def uri_problems(uri: str) -> Iterator[None]:
    """Turn errors of the server or disk behind a URI inside the block into one line.

    >>> with uri_problems("s3://bucket/w"):
    ...     raise OSError("no such bucket")
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.BadInput: s3://bucket/w: no such bucket (finished work is kept: \
run the same command again to resume)
    """
    try:
        yield
    except (OSError, pa.ArrowException) as e:
        fix = "finished work is kept: run the same command again to resume"
        raise BadInput(shown(uri), str(e).replace(uri, shown(uri)), fix) from e


class Remote:
    """A directory at a URI."""

    def __init__(self, uri: str) -> None:
        """Raises ``UsageProblem`` for a URI that this build of pyarrow does not support."""
        try:
            self.fs, base = fs.FileSystem.from_uri(uri)
        except (pa.ArrowException, OSError) as e:
            fix = "give s3://, gs://, abfs://, hdfs:// or file:///"
            raise UsageProblem(f"URI {shown(uri)}", str(e).replace(uri, shown(uri)), fix) from e
        self.base, self.uri = base.rstrip("/"), uri

    def sizes(self) -> dict[str, int]:
        """Size in bytes of every file there, by its path below the URI."""
        chosen = fs.FileSelector(self.base, recursive=True, allow_not_found=True)
        found = self.fs.get_file_info(chosen)
        start = len(self.base) + 1
        return {f.path[start:]: f.size for f in found if f.type == fs.FileType.File}

    def entry(self, name: str) -> Entry:
        """The entry of a file there, read to its end."""
        with self.fs.open_input_stream(self._path(name)) as stream:
            return Entry.of(_pieces(stream.read))

    def send(self, source: Path, name: str) -> None:
        """Copy a file there; it appears under its name when it is complete."""
        with source.open("rb") as file:
            self._write(name, _pieces(file.read))

    def fetch(self, name: str, target: Path) -> Entry:
        """Copy a file from there; returns its entry as it was read."""
        with self.fs.open_input_stream(self._path(name)) as stream, target.open("wb") as file:
            return Entry.of(_copied(_pieces(stream.read), file.write))

    def remove(self, name: str) -> None:
        """Remove a file there."""
        self.fs.delete_file(self._path(name))

    def read_list(self) -> dict[str, Entry] | None:
        """What was pushed there, ``None`` for nothing. Raises ``BadInput`` for a damaged list."""
        if self.fs.get_file_info(self._path(LIST)).type != fs.FileType.File:
            return None
        with self.fs.open_input_stream(self._path(LIST)) as stream:
            text = stream.read()
        try:
            return {name: Entry(**entry) for name, entry in json.loads(text)["files"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise BadInput(f"{shown(self.uri)}/{LIST}", "not a list of files", "push again") from e

    def write_list(self, entries: Mapping[str, Entry]) -> None:
        """Write the list of the files at the URI."""
        files = {name: asdict(entries[name]) for name in sorted(entries)}
        self._write(LIST, iter([json.dumps({"files": files}, indent=0).encode()]))

    def _path(self, name: str) -> str:
        return f"{self.base}/{name}"

    def _write(self, name: str, pieces: Iterator[bytes]) -> None:
        path = self._path(name)
        is_atomic = self.fs.type_name in _OBJECT_STORES
        first = path if is_atomic else f"{path}.part"
        if not is_atomic:
            self.fs.create_dir(path.rpartition("/")[0], recursive=True)
        with self.fs.open_output_stream(first, compression=None) as stream:
            for piece in pieces:
                stream.write(piece)
        if not is_atomic:
            self.fs.move(first, path)


def _pieces(read: Callable[[int], bytes]) -> Iterator[bytes]:
    while piece := read(_PIECE_BYTES):
        yield piece


def _copied(pieces: Iterator[bytes], write: Callable[[bytes], object]) -> Iterator[bytes]:
    for piece in pieces:
        write(piece)
        yield piece
