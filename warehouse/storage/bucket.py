"""A warehouse at an address of an object store: s3://, gs://, az://.

What the server wants to know (keys, region, endpoint) comes from its usual environment variables.
Data files are read through copies in the user's cache directory, which are compared with their hash
when they are fetched and may be deleted at any time. Unfinished work is there too, or in the
directory of ``PLUMBLINE_WORK``, which Spark's executors on other machines must then share.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import platformdirs

from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.paths import Address

_SCHEMES = re.compile(r"^(s3|s3a|gs|az|abfs|abfss):/+")


def address(text: str | Path) -> Path | None:
    """The address that a text or path is, or ``None`` for a path of this machine.

    >>> str(address(Path("s3://bucket/w"))), address("out/warehouse")
    ('s3://bucket/w', None)
    """
    return Address(str(text)) if _SCHEMES.match(str(text)) else None


@dataclass(frozen=True)
class Bucket:
    """A prefix of an object store; see :class:`plumbline.warehouse.storage.place.Place`."""

    root: Path

    def __str__(self) -> str:
        return str(self.root)

    def read(self, name: str) -> bytes:
        with _one_line(self.root):
            return bytes(_store(str(self.root)).get(name).bytes())

    def create(self, name: str, content: bytes) -> bool:
        from obstore.exceptions import AlreadyExistsError

        with _one_line(self.root):
            try:
                _store(str(self.root)).put(name, content, mode="create")
            except AlreadyExistsError:
                return False
        return True

    def put(self, made: Path, name: str) -> None:
        with _one_line(self.root):
            _store(str(self.root)).put(name, made)
        made.unlink()

    def names(self, directory: str) -> list[str]:
        with _one_line(self.root):
            found = _store(str(self.root)).list_with_delimiter(directory)["objects"]
        return sorted(one["path"].rpartition("/")[2] for one in found)

    def walk(self) -> Iterator[str]:
        with _one_line(self.root):
            for page in _store(str(self.root)).list():
                yield from (one["path"] for one in page)

    def remove(self, name: str) -> None:
        with _one_line(self.root):
            _store(str(self.root)).delete(name)

    def local(self, name: str, sha256: str) -> Path:
        path = _cache() / "files" / f"{sha256}.parquet"
        if path.exists():
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary, digest = path.with_name(f"{uuid.uuid4().hex}.tmp"), hashlib.sha256()
        try:
            with temporary.open("wb") as file, _one_line(self.root):
                for piece in _store(str(self.root)).get(name):
                    digest.update(piece)
                    file.write(piece)
            if digest.hexdigest() != sha256:
                fix = f"get it from a copy, or `plumbline warehouse forget {name}`"
                raise BadInput(f"warehouse {self}, {name}", "is damaged: its hash differs", fix)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        return path

    @contextmanager
    def writing(self) -> Iterator[None]:
        yield

    def is_quiet(self) -> bool | None:
        return None

    def scratch(self) -> Path:
        top = Path(os.environ.get("PLUMBLINE_WORK") or _cache() / "work")
        path = top / hashlib.sha256(str(self).encode()).hexdigest()[:16]
        path.mkdir(parents=True, exist_ok=True)
        return path


def _cache() -> Path:
    return platformdirs.user_cache_path("plumbline")


@cache
def _store(address: str) -> Any:
    from obstore.store import from_url

    try:
        socket.socket().close()
    except PermissionError as e:
        fix = "copy it to this machine by `plumbline warehouse pull`"
        raise UsageProblem(address, "the sandbox has no network", fix) from e
    return from_url(address)


@contextmanager
def _one_line(root: Path) -> Iterator[None]:
    """Turn errors of the server inside the block into one line; a missing file stays what it is."""
    from obstore.exceptions import BaseError

    try:
        yield
    except BaseError as e:
        fix = "finished work is kept: run the same command again to resume"
        raise BadInput(f"warehouse {root}", str(e).splitlines()[0][:300], fix) from e
