"""Shards of text: find them, read them to their end or fail, and fingerprint their content.

A shard is `.jsonl`, `.jsonl.zst`, `.jsonl.gz` (one JSON record per line with a `text`) or
`.parquet` (a `text` column). Compressed streams may hold several frames or members; one that stops
early is an error, never a shorter shard.
"""

from __future__ import annotations

import glob
import hashlib
import io
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.paths import replacing
from plumbline.warehouse.text.escape import is_unicode

_CODECS = {".zst": "zstd", ".gz": "gzip"}
_PACK = "make a shard of text files with plumbline corpus pack"
_BLOCK = 1 << 22
#: Bytes of the longest line read as a Python object; counting reads longer ones through a file.
LONGEST_LINE = 1 << 27
#: Rows per batch of a Parquet shard.
_BATCH_ROWS = 1024


def expand_shards(patterns: Sequence[str]) -> list[Path]:
    """Files named by paths and glob patterns, each once, in the order given (globs sorted).

    Raises:
        UsageProblem: a pattern is a URI, such as a bucket's.
        BadInput: no pattern was given, or one matches no file, a directory, a pipe, or a file
            without a shard's suffix.

    >>> expand_shards([])
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.BadInput: shards: none given (name files or quoted glob patterns)
    """
    if not patterns:
        raise BadInput("shards", "none given", "name files or quoted glob patterns")
    found: dict[Path, None] = {}
    for pattern in patterns:
        if "://" in pattern:
            fix = "mount the bucket, or copy the shards to a disk with its own tool"
            raise UsageProblem(f"shards {pattern}", "are read from a file system, not a URI", fix)
        # A file whose own name holds glob characters is taken as it is.
        names = [pattern] if Path(pattern).exists() else sorted(glob.glob(pattern, recursive=True))
        if not names:
            raise BadInput(f"shards {pattern}", "no such file", "check the path or the pattern")
        for name in names:
            path = Path(name)
            if path.is_dir():
                fix = f"name its files, such as '{name}/*.jsonl.zst', or {_PACK}"
                raise BadInput(f"shard {name}", "is a directory", fix)
            _check_suffix(path)
            if not path.is_file():
                fix = "a shard is read twice: write it to a file first"
                raise BadInput(f"shard {name}", "is not a regular file", fix)
            if not is_unicode(name):  # tables keep it
                raise BadInput(f"shard {name}", "its name is not in UTF-8", "rename it")
            found[path] = None
    return list(found)


def _check_suffix(path: Path) -> None:
    plain = path.with_suffix("") if path.suffix in _CODECS else path
    if path.suffix != ".parquet" and plain.suffix != ".jsonl":
        known = "`.jsonl`, `.jsonl.zst`, `.jsonl.gz` or `.parquet`"
        fix = _PACK if path.suffix in (".txt", ".md") else ""
        raise BadInput(f"shard {path}", f"its name does not end with {known}", fix)


def is_parquet(path: Path) -> bool:
    """Whether a shard is read as Parquet rather than as JSON lines."""
    return path.suffix == ".parquet"


def fingerprint(path: Path) -> str:
    """Hash of the file's bytes: equal for equal content, wherever the file is.

    The first 32 hex digits of SHA-256.

    Raises:
        BadInput: the file cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError as e:
        raise _unreadable(path, e) from e
    return digest.hexdigest()[:32]


class ByteStream(io.RawIOBase):
    """The decompressed bytes of a JSON-lines shard, in order.

    Use as a context manager. Every read raises ``BadInput`` when the file is truncated, damaged or
    unreadable, so that reaching the end means that all of it has been read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        codec = _CODECS.get(path.suffix)
        try:
            raw = pa.OSFile(str(path))
            if codec and raw.size() == 0:
                raise pa.ArrowInvalid(f"an empty file is not a {codec} stream")
            self._file = pa.CompressedInputStream(raw, codec) if codec else raw
        except (OSError, pa.ArrowInvalid) as e:
            raise _unreadable(path, e) from e

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill a writable buffer from the stream; returns the bytes read, 0 only at the end."""
        try:
            return int(self._file.readinto(buffer))
        except (OSError, pa.ArrowInvalid) as e:
            raise _unreadable(self._path, e) from e

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _unreadable(path: Path, error: Exception) -> BadInput:
    reason = (str(error) or type(error).__name__).splitlines()[0]
    return BadInput(f"shard {path.name}", reason, "fetch or make it again")


def text_batches(path: Path, column: str = "text") -> Iterator[pa.LargeStringArray]:
    """The text column of a Parquet shard, in batches of large_string; NULLs stay NULL.

    Raises:
        BadInput: unreadable or truncated file, no such column, or a column that is not text.
    """
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            if column not in schema.names:
                raise BadInput(f"shard {path.name}", f"no column named `{column}`")
            kind = schema.field(column).type
            if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                raise BadInput(f"shard {path.name}", f"column `{column}` is {kind}, not text")
            for batch in file.iter_batches(_BATCH_ROWS, columns=[column]):
                yield batch.column(0).cast(pa.large_string())
    except (OSError, pa.ArrowInvalid) as e:
        raise _unreadable(path, e) from e


def documents(path: Path) -> Iterator[str]:
    """The texts of a shard as Python strings: the documents that are counted, in the same order.

    Rejected records (see ``jobs.kernel.json_lines``) are skipped. Convenience API, not optimised.

    Raises:
        BadInput: truncated, damaged or unreadable shard, or a line of more than ``LONGEST_LINE``
            bytes; raised when reading reaches that place.
    """
    if is_parquet(path):
        for batch in text_batches(path):
            for value in batch.cast(pa.large_binary()).drop_null():
                with suppress(UnicodeDecodeError):
                    yield value.as_py().decode()
        return
    for line in lines(path):
        with suppress(ValueError, RecursionError):  # not UTF-8, not JSON, lone surrogates
            record = json.loads(line.decode())
            text = record.get("text") if isinstance(record, dict) else None
            if isinstance(text, str):
                text.encode()
                yield text


def lines(path: Path) -> Iterator[bytes]:
    """The lines of a JSON-lines shard without their newline, blank ones included.

    Raises:
        BadInput: as ``documents``, and for a line of more than ``LONGEST_LINE`` bytes.
    """
    with ByteStream(path) as stream, io.BufferedReader(stream, _BLOCK) as reader:
        for number in itertools.count(1):
            line = reader.readline(LONGEST_LINE + 1)
            if not line:
                return
            if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
                problem = f"has more than {LONGEST_LINE:,} bytes, the longest line that is read"
                raise BadInput(f"shard {path.name}, line {number}", problem, "leave it out")
            yield line.removesuffix(b"\n")


def write_jsonl_zst(path: Path, texts: Iterable[str]) -> None:
    """Write documents as one Pile-format shard (`.jsonl.zst`), appearing whole or not at all.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.jsonl.zst"
    >>> write_jsonl_zst(path, ["tea", "more tea"])
    >>> list(documents(path))
    ['tea', 'more tea']
    """
    with (
        replacing(path) as temporary,
        pa.OSFile(str(temporary), "wb") as raw,
        pa.CompressedOutputStream(raw, "zstd") as out,
    ):
        for text in texts:
            out.write(json.dumps({"text": text}, ensure_ascii=False).encode() + b"\n")
