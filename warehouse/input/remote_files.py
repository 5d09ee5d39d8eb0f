"""Text files on a disk, in a bucket, on the hub or on a web server.

A server's keys, region and token come from the usual environment variables.
"""

from __future__ import annotations

import codecs
import glob
import gzip
import hashlib
import io
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from backports import zstd

from plumbline.warehouse.errors import (
    MissingComponent,
    PlumblineError,
    UsageProblem,
    failure,
)
from plumbline.warehouse.paths import Address, opened
from plumbline.warehouse.plugins import install_line
from plumbline.warehouse.text.escape import hidden

#: Bytes per request for a part of a remote file, and per read when a file is hashed.
_BLOCK = 1 << 22
_BUCKETS = ("s3", "s3a", "gs", "az", "abfs", "abfss")
_WEB = ("https", "http")
_HUB = "hf"
#: Errors that reading a file on a disk may raise.
_OF_FILES = (OSError, pa.ArrowInvalid, EOFError, zlib.error, zstd.ZstdError)
_CHECK = "check the address and the credentials in the environment"
#: Options of each client of a bucket or web server: plain HTTP is allowed.
CLIENT: Any = {"client_options": {"allow_http": True}}
#: Environment variables that name a server other than the cloud's own.
_ENDPOINTS = (
    *("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"),
    *("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
)
#: Codecs of compressed files, by the suffix of the name.
CODECS = {".zst": "zstd", ".gz": "gzip"}
#: Allow windows up to 2 GiB (`zstd --long=31`). A window takes memory only as it fills.
_ZSTD: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 31}


def located(text: str | Path) -> Path:
    """Return a file's name as a path or, if it is a text with ``://``, as an address.

    Raises ``UsageProblem`` for an unknown kind of address, and for one that contains a user,
    password or query, which tables and logs would store.
    """
    if isinstance(text, Path) or "://" not in text:
        return Path(text) if isinstance(text, str) else text
    bare = re.sub(r"(?<=://)[^/]*@", "", text.partition("?")[0])
    try:
        parts = urlsplit(text)
    except ValueError as e:  # the host contains a bracket
        raise UsageProblem(bare, f"is not an address: {e}", "check its host or bucket") from e
    if parts.scheme not in (*_BUCKETS, *_WEB, _HUB):
        known = ", ".join(f"{scheme}://" for scheme in (*_BUCKETS, *_WEB))
        fix = f"known: {known}, hf://datasets/"
        raise UsageProblem(f"{parts.scheme}://", "is not a known kind of address", fix)
    # In a bucket's glob pattern `?` matches any character, unless a `=` follows as in a query.
    is_query = parts.scheme in _WEB and parts.query
    # In abfs://CONTAINER@ACCOUNT.dfs.core.windows.net, the part before @ is no user.
    has_user = bool(parts.username) and parts.scheme not in ("abfs", "abfss")
    if parts.password or has_user or is_query or "=" in parts.query:
        problem = "holds a user, password or query"
        raise UsageProblem(bare, problem, "credentials come from the environment")
    return Address(text)


@dataclass(frozen=True)
class Description:
    """A file's metadata.

    ``mark`` is a server's text that changes if the content changes. It is ``None`` for a file on a
    disk, or if the server gives no such text.
    """

    n_bytes: int
    is_directory: bool
    mark: str | None


def find(pattern: str) -> list[tuple[Path, Description | None]]:
    """Return the files of a path, address or glob pattern (sorted), each with its metadata.

    The list is empty if a local path or a pattern matches nothing. The metadata is ``None`` for an
    address without a file and for a link whose target is missing.

    Raises the errors of :func:`reading` and :func:`located`, ``UsageProblem`` for a pattern on a
    web server, and ``MissingComponent`` if the package that reads the address is not installed.
    """
    place = located(pattern)
    if not isinstance(place, Address):
        # A file's name may contain glob characters.
        names = [pattern] if place.exists() else sorted(glob.glob(pattern, recursive=True))
        return [(Path(name), describe(Path(name))) for name in names]
    if not glob.has_magic(pattern):
        return [(place, describe(place))]
    if _scheme(place) in _WEB:
        fix = "name each file, or use its bucket's address"
        raise UsageProblem(pattern, "a web server doesn't list its files", fix)
    with reading(place):
        files = _files(place)
        details = files.glob(str(place), detail=True)
    info_of = {files.unstrip_protocol(name): info for name, info in details.items()}
    return [(Address(name), _description(info_of[name])) for name in sorted(info_of)]


def describe(path: Path) -> Description | None:
    """Return a file's metadata, or ``None`` if it doesn't exist. Raises like :func:`find`."""
    with reading(path), suppress(FileNotFoundError):
        if not isinstance(path, Address):
            return Description(path.stat().st_size, path.is_dir(), None)
        # ``refresh`` because the client caches the hub's listings.
        return _description(_files(path).info(str(path), refresh=True))
    return None


def _description(info: Mapping[str, Any]) -> Description:
    """Make the metadata from fsspec's report on a file in a bucket, on a web server or the hub."""
    large = info.get("lfs") or {}
    modified = info.get("last_modified")
    marks = (info.get("e_tag"), large.get("sha256"), info.get("blob_id"))
    dated = modified.isoformat() if modified and modified.timestamp() else None
    mark = next(filter(None, (*marks, dated)), None)
    return Description(int(info["size"] or 0), info["type"] == "directory", mark)


def fingerprint(path: Path) -> str:
    """Return a hash of a file: the first 32 hex digits of a SHA-256.

    For a file on a disk, the bytes are hashed. For a remote file, the address, the size, and the
    ETag, hash or time of change that the server reports are hashed. If it reports none, the bytes
    are hashed. Raises like :func:`reading`.
    """
    description = describe(path) if isinstance(path, Address) else None
    if description and description.mark:
        text = f"{path} {description.n_bytes} {description.mark}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]
    with reading(path), open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def open_file(path: Path) -> io.BufferedReader:
    """Open a file for random access. Call this inside a block of :func:`reading`."""
    if not isinstance(path, Address):
        return opened(path)
    sizes = {"block_size": _BLOCK} if _scheme(path) == _HUB else {"buffer_size": _BLOCK}
    return io.BufferedReader(_files(path).open(str(path), "rb", **sizes))


class ByteStream(io.RawIOBase):
    """A context manager that reads the decompressed bytes of a file, without a byte order mark.

    The suffix of its name says how a file is compressed. Opening and reading raise the errors of
    :func:`reading`, also for a truncated or damaged compressed file, and for a file whose suffix is
    wrong about compression. A truncated uncompressed file isn't recognised.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with reading(path):
            self._raw = open_file(path)
            codec, first = CODECS.get(path.suffix), self._raw.peek(4)[:4]
            if codec and not first:
                raise OSError(f"an empty file is not a {codec} stream")
            if not codec and first.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
                raise OSError("it is compressed, so its name must end with .gz or .zst")
            self._file: Any = self._raw
            if codec == "gzip":  # zero bytes after a member are skipped
                self._file = gzip.GzipFile(fileobj=self._raw, mode="rb")
            elif codec == "zstd":
                self._file = zstd.ZstdFile(self._raw, options=_ZSTD)
            if self._file.peek(3).startswith(codecs.BOM_UTF8):
                self._file.read(3)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a writable buffer. Return the number of bytes read, which is 0 only at the end."""
        with reading(self._path):
            return int(self._file.readinto(buffer))

    def __exit__(self, *_: object) -> None:
        self._raw.close()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors in the block into one-line errors. The block only reads or looks up a file.

    The error becomes ``Interrupted`` if the server is down, else ``BadInput``. For an address, this
    holds for every error, since each client library has its own.
    """
    try:
        yield
    except (PlumblineError, MemoryError):
        raise
    except Exception as e:
        if not isinstance(path, Address) and not isinstance(e, _OF_FILES):
            raise
        line = (hidden(str(e)).strip() or type(e).__name__).splitlines()[0]
        line = re.sub(r"\?\S+", "", line)[:300]  # queries in addresses may contain keys
        problem, fix = f"can't be read: {line}", "download it or make it again"
        if isinstance(e, FileNotFoundError):
            problem, fix = "no such file", "check the path"
        if isinstance(path, Address):
            fix = _CHECK
        if "Range request not supported" in line:
            fix = "the server can't send parts of a file; download it and count the copy"
        raise failure(e, str(path), problem, fix) from e


def _scheme(address: Path) -> str:
    return str(address).partition("://")[0]


def _files(address: Path) -> Any:
    """Return an address's fsspec file system. Raises ``MissingComponent`` without its package."""
    try:
        return _file_system(_scheme(address))
    except ModuleNotFoundError as e:
        fix = install_line("cloud")
        package = (e.name or "").partition(".")[0]
        what = f"{package}, which reads {_scheme(address)}://"
        raise MissingComponent(what, "is not installed", fix) from e


@cache
def _file_system(scheme: str) -> Any:
    if scheme == _HUB:
        from huggingface_hub import HfFileSystem

        return HfFileSystem(skip_instance_cache=True)
    from obstore.fsspec import FsspecStore

    async def nothing(self: Any, path: str, detail: bool = False, **_: Any) -> Any:
        raise FileNotFoundError(path)

    def split(self: Any, path: str) -> tuple[str, str]:
        host, _, rest = path.removeprefix(f"{scheme}://").partition("/")
        return host, rest

    # A web server lists no files: a name is a file or missing. Without `split`, obstore takes the
    # host of an address with a port, such as localhost:8000/a.jsonl, for a scheme.
    web = {"_ls": nothing, "_split_path": split} if scheme in _WEB else {}
    check_endpoints()
    kind: Any = type("Files", (FsspecStore,), {"protocol": scheme, **web})
    return kind(skip_instance_cache=True, **CLIENT)


def check_endpoints() -> None:
    """Raise ``UsageProblem`` if a variable that names a server doesn't contain an address."""
    for name in _ENDPOINTS:
        address = os.environ.get(name, "")
        if address and not address.startswith(("http://", "https://")):
            fix = "begin it with https:// or http://"
            raise UsageProblem(f"{name}={address}", "is not an address", fix)
