"""Reads JSON of other tools' logs: files, entries of archives, and values at a path in them."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backports import zstd

from plumbline.warehouse.errors import BadInput, UsageProblem

#: Zstandard's number as a compression method of zip; `zipfile` reads it from Python 3.14 on.
_ZSTANDARD = 93
_LOCAL_HEADER = struct.Struct("<26xHH")
#: Largest entry that is unpacked, in bytes.
_LARGEST = 1 << 30
#: Errors from archives that are damaged, encrypted or compressed in an unknown way.
_UNREADABLE = (
    *(OSError, ValueError, RecursionError, EOFError, RuntimeError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error, struct.error, zstd.ZstdError),
)


def at(document: Any, *path: str | int) -> Any:
    """The value at a path of keys and positions; ``None`` if the path leads nowhere.

    >>> at({"a": [{"b": 1}]}, "a", 0, "b"), at({"a": 1}, "a", "b")
    (1, None)
    """
    value = document
    for key in path:
        if isinstance(key, str):
            value = value.get(key) if isinstance(value, dict) else None
        else:
            value = value[key] if isinstance(value, list) and 0 <= key < len(value) else None
    return value


def logs_below(directory: Path, patterns: tuple[str, ...]) -> list[Path]:
    """The files below a directory, at any depth, whose names match one of the patterns; sorted.

    Raises ``UsageProblem`` if the directory doesn't exist, ``BadInput`` without any such file.
    """
    names = " or ".join(patterns)
    if not directory.is_dir():
        raise UsageProblem(f"{directory}", "is not a directory", f"give one that holds {names}")
    paths = sorted(path for pattern in patterns for path in directory.rglob(pattern))
    if not paths:
        raise BadInput(f"{directory}", f"holds no {names}", "give the directory of the logs")
    return paths


def json_document(path: Path, fix: str = "mend or remove it") -> Any:
    """The content of a JSON file. Raises ``BadInput`` with ``fix`` if it can't be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as e:
        raise BadInput(f"{path}", f"can't be read as JSON: {e}", fix) from e


def zipped_documents(path: Path) -> Iterator[tuple[str, Any]]:
    """Names and contents of an archive's JSON entries, sorted by name; Zstandard is decompressed.

    Raises ``BadInput`` for an archive or entry that can't be read, or is over 1 GiB.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in sorted(archive.infolist(), key=lambda entry: entry.filename):
                yield entry.filename, json.loads(_entry(archive, entry))
    except _UNREADABLE as e:
        problem = f"can't be read as an archive of JSON: {e}"
        raise BadInput(f"{path}", problem, "mend or remove it") from e


def _entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    if entry.file_size > _LARGEST:
        raise ValueError(f"{entry.filename} holds {entry.file_size:,} bytes")
    if entry.compress_type != _ZSTANDARD:
        return archive.read(entry)
    file = archive.fp
    assert file is not None, "the archive is open"
    file.seek(entry.header_offset)
    field_sizes = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    file.seek(sum(field_sizes), 1)
    packed = file.read(entry.compress_size)
    # As a stream, to stop at the limit: ``decompress`` unpacks all of a frame that states its size.
    with zstd.ZstdFile(io.BytesIO(packed)) as reader:
        text = reader.read(entry.file_size + 1)
    if len(text) > entry.file_size:
        raise ValueError(
            f"{entry.filename} holds more than the {entry.file_size:,} bytes it states"
        )
    return text
