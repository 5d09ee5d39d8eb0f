"""Read gzip and zstd files as streams, in bounded memory and to their very end."""

from __future__ import annotations

import io
import zlib
from typing import BinaryIO, Protocol, cast

import zstandard

#: Codec promised by a file's name.
CODECS = {".zst": "zstd", ".gz": "gzip"}
#: Most bytes read or decompressed at a time.
_BLOCK = 1 << 18
_CUT = "truncated: the file ends before its stream does"
#: Text of the frame that ``_WithEnd`` adds. It comes out only if the frame before is complete.
_END = bytes(range(0x80, 0x90))
_END_FRAME = zstandard.ZstdCompressor(write_checksum=True).compress(_END)


class Readable(Protocol):
    """An open file."""

    def read(self, nbytes: int, /) -> bytes:
        """Return up to so many bytes; none only at the end."""


def codec_of(first: bytes) -> str | None:
    """The codec of a file that begins with these four bytes; ``None`` if it isn't compressed.

    >>> codec_of(b"\\x1f\\x8b\\x08\\x00"), codec_of(b"\\x28\\xb5\\x2f\\xfd"), codec_of(b'{"te')
    ('gzip', 'zstd', None)
    """
    if first[:2] == b"\x1f\x8b":
        return "gzip"
    # A zstd file may also begin with a frame to skip, of one of sixteen kinds.
    is_skipped = first[1:4] == b"\x2a\x4d\x18" and first[0] >> 4 == 5
    return "zstd" if first[:4] == zstandard.FRAME_HEADER or is_skipped else None


class Gzip(io.RawIOBase):
    """The content of a gzip file. Zero bytes after a member are skipped.

    Reading raises ``OSError`` if the file is damaged or cut off.

    >>> import gzip
    >>> Gzip(io.BytesIO(gzip.compress(b"te") + bytes(9) + gzip.compress(b"a") + bytes(9))).read()
    b'tea'
    """

    def __init__(self, file: Readable) -> None:
        self._file, self._input, self._member = file, b"", zlib.decompressobj(31)

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill the start of a buffer that isn't empty; returns the bytes read, 0 at the end."""
        while True:
            data, self._input = self._input or self._file.read(_BLOCK), b""
            if self._member.eof:
                if not data:
                    return 0
                if not (data := data.lstrip(b"\0")):
                    continue
                self._member = zlib.decompressobj(31)
            try:
                part = self._member.decompress(data, min(len(buffer), _BLOCK))
            except zlib.error as e:
                raise OSError(f"gzip: {e}") from e
            self._input = self._member.unconsumed_tail or self._member.unused_data
            if part:
                buffer[: len(part)] = part
                return len(part)
            if not data:
                raise OSError(_CUT)


class Zstd(io.RawIOBase):
    """The content of a zstd file, with windows up to 2 GiB (`zstd --long=31`).

    A window takes as much memory as its frame has given, up to its size. Reading raises
    ``OSError`` if the file is damaged or cut off.

    >>> Zstd(io.BytesIO(zstandard.compress(b"tea"))).read()
    b'tea'
    """

    def __init__(self, file: Readable) -> None:
        decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 31)
        self._source = _WithEnd(file)
        source = cast(BinaryIO, self._source)  # of which only `read` is called
        self._stream = decompressor.stream_reader(source, _BLOCK, read_across_frames=True)
        self._rest: bytes | None = None

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill the start of a buffer that isn't empty; returns the bytes read, 0 at the end."""
        if self._rest is None:
            try:
                n = int(self._stream.readinto(buffer))
                if not self._source.is_at_end:
                    return n
                parts = [bytes(buffer[:n]), *iter(lambda: self._stream.read(_BLOCK), b"")]
            except zstandard.ZstdError as e:
                raise OSError(_CUT if self._source.is_at_end else str(e)) from e
            if not (whole := b"".join(parts)).endswith(_END):
                raise OSError(_CUT)
            self._rest = whole.removesuffix(_END)
        part, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


class _WithEnd:
    """A zstd file with one more frame, by which a cut is noticed: the library doesn't report it."""

    def __init__(self, file: Readable) -> None:
        self._file, self.is_at_end, self._left = file, False, _END_FRAME

    def read(self, n_bytes: int) -> bytes:
        """Return up to ``n_bytes``; none after the last frame."""
        if not self.is_at_end and (data := self._file.read(n_bytes)):
            return data
        self.is_at_end = True
        # In parts: the library takes a whole frame as one, even after a cut in another's header.
        data, self._left = self._left[:6], self._left[6:]
        return data
