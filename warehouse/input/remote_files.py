"""Find and open files on disk, in a bucket, on the Hugging Face hub or on a web server.

Keys, region and token for a server come from the usual environment variables.
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
_CHECK = "check the address and the credentials in the environment"
#: Options for clients of buckets and web servers: allow plain HTTP.
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
    """Convert a text to a path or, if it contains ``://``, to an address.

    Raises ``UsageProblem`` for an unknown kind of address. Also raises it for a user, password or
    query in the address, because tables and logs would store these.
    """
    if isinstance(text, Path) or "://" not in text:
        return Path(text) if isinstance(text, str) else text
    bare = re.sub(r"(?<=://)[^/]*@", "", text.partition("?")[0])
    try:
        parts = urlsplit(text)
    except ValueError as e:  # for example, the host has a bracket
        raise UsageProblem(bare, f"is not an address: {e}", "check its host or bucket") from e
    if parts.scheme not in (*_BUCKETS, *_WEB, _HUB):
        known = ", ".join(f"{scheme}://" for scheme in (*_BUCKETS, *_WEB))
        fix = f"known: {known}, hf://datasets/"
        raise UsageProblem(f"{parts.scheme}://", "is not a known kind of address", fix)
    # In a bucket's address, `?` is a glob character. But if `=` follows later, `?` starts a query.
    is_query = parts.scheme in _WEB and parts.query
    # In abfs://CONTAINER@ACCOUNT.dfs.core.windows.net, the part before @ isn't a user name.
    has_user = bool(parts.username) and parts.scheme not in ("abfs", "abfss")
    if parts.password or has_user or is_query or "=" in parts.query:
        problem = "holds a user, password or query"
        raise UsageProblem(bare, problem, "credentials come from the environment")
    return Address(text)


@dataclass(frozen=True)
class Description:
    """A file's metadata.

    ``mark`` is a text from the server, such as an ETag, that changes when the content changes. It
    is ``None`` for a file on disk, or if the server sends no such text.
    """

    n_bytes: int
    is_directory: bool
    mark: str | None


def find(pattern: str) -> list[tuple[Path, Description | None]]:
    """Find the files that a path, address or glob pattern matches. Return them sorted.

    Each file is returned with its metadata. The metadata is ``None`` for a broken link, and for an
    address where no file exists. If a local path or a pattern matches nothing, the list is empty.

    Raises the errors of :func:`reading` and :func:`located`. Raises ``UsageProblem`` for a pattern
    on a web server, and ``MissingComponent`` if the address needs a package that is missing.
    """
    place = located(pattern)
    if not isinstance(place, Address):
        # If there is a file named `a*`, for example, `a*` means this file and isn't a pattern.
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
    """Return a file's metadata, or ``None`` if it's missing. Raises the errors of :func:`find`."""
    with reading(path), suppress(FileNotFoundError):
        if not isinstance(path, Address):
            return Description(path.stat().st_size, path.is_dir(), None)
        # Ask the hub again, because the client caches the hub's answers.
        return _description(_files(path).info(str(path), refresh=True))
    return None


def _description(info: Mapping[str, Any]) -> Description:
    large = info.get("lfs") or {}
    modified = info.get("last_modified")
    marks = (info.get("e_tag"), large.get("sha256"), info.get("blob_id"))
    dated = modified.isoformat() if modified and modified.timestamp() else None
    mark = next(filter(None, (*marks, dated)), None)
    return Description(int(info["size"] or 0), info["type"] == "directory", mark)


def fingerprint(path: Path) -> str:
    """Return a hash that identifies a file's content: 32 hex digits of a SHA-256.

    For a file on disk, the bytes are hashed. For a remote file, its address, its size and its
    ``mark`` (see ``Description``) are hashed. If the server sends no mark, the bytes are hashed.
    Raises the errors of :func:`reading`.
    """
    description = describe(path) if isinstance(path, Address) else None
    if description and description.mark:
        text = f"{path} {description.n_bytes} {description.mark}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]
    with reading(path), open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def open_file(path: Path) -> io.BufferedReader:
    """Open a file for random access. Call this inside ``with reading(path):``."""
    if not isinstance(path, Address):
        return opened(path)
    sizes = {"block_size": _BLOCK} if _scheme(path) == _HUB else {"buffer_size": _BLOCK}
    return io.BufferedReader(_files(path).open(str(path), "rb", **sizes))


class ByteStream(io.RawIOBase):
    """A stream (and context manager) of a file's decompressed bytes, without a byte order mark.

    The suffix of the file's name says how the file is compressed. Opening and reading raise the
    errors of :func:`reading`. Truncated or damaged compressed data is an error, and so is content
    that doesn't match the suffix. In an uncompressed file, truncation can't be detected.
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
            if codec == "gzip":  # GzipFile accepts zero padding at the end
                self._file = gzip.GzipFile(fileobj=self._raw, mode="rb")
            elif codec == "zstd":
                self._file = zstd.ZstdFile(self._raw, options=_ZSTD)
            if self._file.peek(3).startswith(codecs.BOM_UTF8):
                self._file.read(3)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with reading(self._path):
            return int(self._file.readinto(buffer))

    def __exit__(self, *_: object) -> None:
        self._raw.close()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors in the block into one-line errors. The block reads or looks up ``path``.

    An error becomes ``Interrupted`` if the server is down, otherwise ``BadInput``. If ``path`` is
    an address, this applies to every exception, because each client library has its own exceptions.
    """
    try:
        yield
    except (PlumblineError, MemoryError):
        raise
    except Exception as e:
        from pyarrow import ArrowInvalid

        of_files = (OSError, ArrowInvalid, EOFError, zlib.error, zstd.ZstdError)
        if not isinstance(path, Address) and not isinstance(e, of_files):
            raise
        line = (hidden(str(e)).strip() or type(e).__name__).splitlines()[0]
        line = re.sub(r"\?\S+", "", line)[:300]  # a URL's query may contain a secret key
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
    """Return an address's fsspec file system. Raise ``MissingComponent`` if it isn't installed."""
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

    # A web server can't list files, so a path is either a file or missing. By default, obstore
    # would read the host in localhost:8000/a.jsonl as a scheme. `split` prevents this.
    web = {"_ls": nothing, "_split_path": split} if scheme in _WEB else {}
    check_endpoints()
    kind: Any = type("Files", (FsspecStore,), {"protocol": scheme, **web})
    return kind(skip_instance_cache=True, **CLIENT)


def check_endpoints() -> None:
    """Raise ``UsageProblem`` if a variable such as ``AWS_ENDPOINT_URL`` isn't a web address."""
    for name in _ENDPOINTS:
        address = os.environ.get(name, "")
        if address and not address.startswith(("http://", "https://")):
            fix = "begin it with https:// or http://"
            raise UsageProblem(f"{name}={address}", "is not an address", fix)
