"""Decompress gzip and zstd files, which are known by their first bytes."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

from backports import zstd

#: Codec promised by a file's name.
CODECS = {".zst": "zstd", ".gz": "gzip"}
#: Errors from a damaged or truncated stream, besides ``OSError``.
DAMAGED = (EOFError, zlib.error, zstd.ZstdError)
#: Windows up to 2 GiB (`zstd --long=31`); one takes memory only as it fills.
_OPTIONS: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 31}


def codec_of(first: bytes) -> str | None:
    """The codec of a file that begins with these four bytes; ``None`` if it isn't compressed."""
    if first[:2] == b"\x1f\x8b":
        return "gzip"
    # A zstd file may also begin with a frame to skip, of one of sixteen kinds.
    is_skipped = first[1:4] == b"\x2a\x4d\x18" and first[0] >> 4 == 5
    return "zstd" if first[:4] == b"\x28\xb5\x2f\xfd" or is_skipped else None


def decompressed(file: Any, codec: str) -> gzip.GzipFile | zstd.ZstdFile:
    """The content of an open gzip or zstd file, read as a stream.

    Zero bytes after a gzip member are skipped. Reading raises ``OSError`` or one of ``DAMAGED`` if
    the file is damaged or ends within a member or frame.
    """
    if codec == "gzip":
        return gzip.GzipFile(fileobj=file, mode="rb")
    return zstd.ZstdFile(file, options=_OPTIONS)
