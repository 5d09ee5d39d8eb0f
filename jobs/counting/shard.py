"""Count one shard in this process, one block of whole lines at a time."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, repeat
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.jobs.kernel.counter import Counter, ShardCounts, Spill, decoded
from plumbline.jobs.kernel.memory import SLACK, Limits
from plumbline.jobs.kernel.tokens.tokenizer import Targets
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.remote_files import ByteStream
from plumbline.warehouse.input.shards import column_values, is_parquet, text_column

#: Bytes per block. It is large, since decompressing and counting evict each other's cached data.
_BLOCK = 1 << 23
#: A line longer than this many bytes is stored in a temporary file instead of memory.
LONG_LINE = 1 << 25

Block = tuple[NDArray[np.uint8], int]

#: The counter of the last shard, kept because allocating fresh memory is slow.
_spare: dict[tuple[Targets, CorpusOptions, Limits | None], Counter] = {}


def count_shard(
    path: Path,
    targets: Targets,
    options: CorpusOptions,
    spill: Spill,
    limits: Limits | None = None,
    read_ahead: bool = False,
) -> ShardCounts:
    """Count one shard to its end. Pass the counts to ``spill``, and return the totals.

    Args:
        targets, options, spill, limits: see :class:`plumbline.jobs.kernel.counter.Counter`.
        read_ahead: decompress JSON lines in another thread, which needs a core of its own.

    Raises:
        BadInput: the shard is truncated, damaged or unreadable, or has no text column (Parquet).
            A shard is counted completely or not at all.
    """
    key = targets, options, limits
    counter = _spare.pop(key, None) or Counter(targets, options, spill, limits)
    _spare.clear()
    counter.spill = spill
    if is_parquet(path):
        sources = _sources(path, options.kept_source_field)
        for batch in text_column(path, options.text_field):
            counter.feed_texts(batch, list(islice(sources, len(batch))))
    else:
        for block, end in line_blocks(path, read_ahead=read_ahead):
            counter.feed_lines(block, end)
    counts = counter.result()
    _spare[key] = counter
    return counts


def _sources(path: Path, field: str | None) -> Iterator[str | None]:
    """Yield each text's source, then ``None`` forever. Without sources, yield only ``None``."""
    if field:
        try:
            for values in column_values(path, field):
                if pa.types.is_large_string(values.type):
                    yield from map(decoded, values.cast(pa.large_binary()).to_pylist())
        except BadInput:
            pass  # no such column, or a damaged file. Reading its texts reports damage.
    yield from repeat(None)


def line_blocks(
    path: Path, long_line: int = LONG_LINE, read_ahead: bool = False
) -> Iterator[Block]:
    """Yield blocks of whole lines. A block is a buffer and the index at which its lines end.

    The next block reuses the buffer. At least SLACK bytes follow the lines. A line longer than
    ``long_line`` bytes is a block by itself, mapped from a temporary file to save memory. With
    ``read_ahead``, another thread reads the next block while the caller uses this one.

    Raises ``BadInput`` if the file can't be read, and ``UsageProblem`` if the temporary file can't
    be written.
    """
    block = min(_BLOCK, long_line)
    with ByteStream(path) as opened, ThreadPoolExecutor(1) as reader:
        stream = _ReadAhead(opened, block, reader) if read_ahead else opened
        buf, n_kept = np.empty(2 * _BLOCK + SLACK, np.uint8), 0
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
                buf = np.concatenate([buf[:n_kept], np.empty(n_kept + block + SLACK, np.uint8)])
        if n_kept:
            yield buf, n_kept


class _ReadAhead:
    """A stream that reads and decompresses its next block in another thread."""

    def __init__(self, stream: ByteStream, n_bytes: int, reader: ThreadPoolExecutor) -> None:
        self._stream, self._reader = stream, reader
        self._ahead = np.empty(n_bytes, np.uint8)
        self._read = reader.submit(stream.readinto, self._ahead)

    def readinto(self, buffer: NDArray[np.uint8]) -> int:
        """Read at most a block into a buffer. Return the number of bytes; 0 means the end."""
        if n := self._read.result():
            buffer[:n] = self._ahead[:n]
            self._read = self._reader.submit(self._stream.readinto, self._ahead)
        return n


def _long_line(
    stream: _ReadAhead | ByteStream, buf: NDArray[np.uint8], n_kept: int, block: int
) -> Generator[Block, None, bytes]:
    """Yield the whole line that starts with buf[:n_kept]. Return the bytes read after the line."""
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
        # The block is writable, like the other blocks, but writing to it doesn't change the file.
        mapped = mmap.mmap(file.fileno(), size + SLACK, access=mmap.ACCESS_COPY)
        yield np.frombuffer(mapped, np.uint8), size
    return rest


def _last_newline(buf: NDArray[np.uint8], start: int, end: int) -> int:
    """Return the index just after the last newline in buf[start:end], or 0 if there is none."""
    # The newline is nearly always in the last kilobytes, so search backwards in small pieces.
    for low in range(end - 4096, start - 4096, -4096):
        at = buf[max(low, start) : low + 4096].tobytes().rfind(b"\n")
        if at >= 0:
            return max(low, start) + at + 1
    return 0
