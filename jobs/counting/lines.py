"""Blocks of whole lines of a shard, however long its lines are."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plumbline.jobs.kernel import SLACK
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.input.remote_files import ByteStream

#: Bytes per block: large, since decompressing and counting evict each other's data from the cache.
_BLOCK = 1 << 23
#: A line goes through a temporary file, not memory, once more bytes are read without its end.
LONG_LINE = 1 << 25

Block = tuple[NDArray[np.uint8], int]

#: The buffer of the last shard unless it is large; allocating fresh pages is slow.
_spare: list[NDArray[np.uint8]] = []


def line_blocks(
    path: Path, long_line: int = LONG_LINE, read_ahead: bool = False
) -> Iterator[Block]:
    """Yield blocks of whole lines: a buffer, which the next block reuses, and the end of its lines.

    At least SLACK bytes follow the lines. A line that hasn't ended after ``long_line`` bytes and
    the block that passes them is a block of its own, mapped from a temporary file to save memory.
    With ``read_ahead`` a thread reads the next block while the caller uses this one, which takes a
    core.

    Raises ``BadInput`` as the stream does, ``UsageProblem`` if the temporary file can't be written.
    """
    block = min(_BLOCK, long_line)
    with ByteStream(path) as opened, ThreadPoolExecutor(1) as reader:
        stream = _ReadAhead(opened, block, reader) if read_ahead else opened
        buf, n_kept = _spare.pop() if _spare else _buffer(2 * _BLOCK), 0
        while n := stream.readinto(buf[n_kept : n_kept + block]):
            end = n_kept + n
            cut = _last_newline(buf, n_kept, end)
            if cut:
                yield buf, cut
                buf[: end - cut] = buf[cut:end].copy()
            n_kept = end - cut
            if n_kept > long_line:
                rest = yield from _long_line(stream, buf, n_kept, block)
                n_kept = len(rest)
                buf[:n_kept] = np.frombuffer(rest, np.uint8)
                if cut := _last_newline(buf, 0, n_kept):
                    yield buf, cut
                    buf[: n_kept - cut] = buf[cut:n_kept].copy()
                    n_kept -= cut
            elif n_kept + block + SLACK > buf.size:
                buf = np.concatenate([buf[:n_kept], _buffer(n_kept + block)])
        if n_kept:
            yield buf, n_kept
    if buf.size <= 4 * _BLOCK:
        _spare[:] = [buf]


class _ReadAhead:
    """A stream that reads and decompresses its next block in another thread."""

    def __init__(self, stream: ByteStream, n_bytes: int, reader: ThreadPoolExecutor) -> None:
        self._stream, self._reader = stream, reader
        self._ahead = np.empty(n_bytes, np.uint8)
        self._read = reader.submit(stream.readinto, self._ahead)

    def readinto(self, buffer: NDArray[np.uint8]) -> int:
        """Read up to a block into a buffer; returns the number of bytes, 0 only at the end."""
        if n := self._read.result():
            buffer[:n] = self._ahead[:n]
            self._read = self._reader.submit(self._stream.readinto, self._ahead)
        return n


def _buffer(n: int) -> NDArray[np.uint8]:
    return np.zeros(n + SLACK, np.uint8)


def _long_line(
    stream: _ReadAhead | ByteStream, buf: NDArray[np.uint8], n_kept: int, block: int
) -> Generator[Block, None, bytes]:
    """Yield the line that starts with buf[:n_kept] as a block; returns what was read after it."""
    size, newline, rest, part = 0, b"", b"", buf[:n_kept].tobytes()
    with tempfile.TemporaryFile(prefix="plumbline-line-") as file:
        try:
            while part and not newline:
                line, newline, rest = part.partition(b"\n")
                size += file.write(line)
                part = b"" if newline else buf[: stream.readinto(buf[:block])].tobytes()
            file.write(bytes(SLACK))
            file.flush()
        except OSError as e:
            problem = f"a line of more than {size:,} bytes does not fit: {e.strerror}"
            fix = "set TMPDIR to a directory with more room"
            raise UsageProblem(f"directory {tempfile.gettempdir()}", problem, fix) from e
        # Writable like the other blocks; the file does not change.
        mapped = mmap.mmap(file.fileno(), size + SLACK, access=mmap.ACCESS_COPY)
        yield np.frombuffer(mapped, np.uint8), size
    return rest


def _last_newline(buf: NDArray[np.uint8], start: int, end: int) -> int:
    """The offset after the last newline of buf[start:end], 0 without a newline."""
    # The newline is nearly always in the last kilobytes: search them first, and copy little.
    for low in range(end - 4096, start - 4096, -4096):
        at = buf[max(low, start) : low + 4096].tobytes().rfind(b"\n")
        if at >= 0:
            return max(low, start) + at + 1
    return 0
