"""A warehouse at an address of an object store: s3://, gs://, az://.

Data files are read from copies in the user's cache directory. Unfinished work is there too, or in
the directory ``PLUMBLINE_WORK``, which Spark executors on other machines must share.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import platformdirs

from plumbline.warehouse.errors import failure
from plumbline.warehouse.input.remote_files import RETRIES, is_plain
from plumbline.warehouse.storage.listing import Damaged, verify
from plumbline.warehouse.text.redaction import hidden


@dataclass(frozen=True)
class Bucket:
    """A prefix of an object store; its methods do what those of ``Disk`` do."""

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

    def local(self, name: str, n_bytes: int, sha256: str, *, stored: bool = False) -> Path:
        path = _cache() / "files" / f"{sha256}.parquet"
        if not stored:
            with suppress(FileNotFoundError, Damaged):  # a damaged copy is downloaded again
                verify(path, n_bytes, sha256)
                return path
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{uuid.uuid4().hex}.tmp")
        try:
            with temporary.open("wb") as file, _one_line_errors(self.root, name):
                file.writelines(_store(str(self.root)).get(name))
            verify(temporary, n_bytes, sha256)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        return path

    def scratch(self) -> Path:
        top = Path(os.environ.get("PLUMBLINE_WORK") or _cache() / "work")
        return top / hashlib.sha256(str(self).encode()).hexdigest()[:16]


def _cache() -> Path:
    return platformdirs.user_cache_path("plumbline")


@cache
def _store(address: str) -> Any:
    from obstore.store import from_url

    return from_url(address, client_options={"allow_http": is_plain("")}, retry_config=RETRIES)


@contextmanager
def _one_line_errors(root: Path, name: str = "", *, writes: bool = False) -> Iterator[None]:
    """Turn the server's errors inside the block into one-line errors.

    A refused request becomes ``BadInput``, a failing server ``Interrupted``. ``FileNotFoundError``
    passes unchanged if the block reads the file ``name``.
    """
    from obstore.exceptions import BaseError

    try:
        yield
    except (BaseError, FileNotFoundError) as e:
        if isinstance(e, FileNotFoundError) and name and not writes:
            raise
        line = str(e).splitlines()[0]  # the request and its duration, then what went wrong
        reason = hidden(line.partition(" - ")[2] or line)[:300]
        fix = "check the address, and the keys in the environment: docs/corpora.md"
        where = f"warehouse {root}, {name}" if name else f"warehouse {root}"
        raise failure(e, where, reason, fix) from e
