"""Texts of web archives: WARC files, and Common Crawl's WET files with the plain text of WARC."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.remote_files import ByteStream

#: Reason for rejecting a record that isn't plain text.
NOT_TEXT = "not plain text: count the WET file that was made of it"
#: Types of records that are documents; others, such as requests and metadata, are skipped.
_CONTENT = ("conversion", "resource", "response")
#: Most bytes of a record, and of a line of a header.
_LONGEST, _LONGEST_LINE = 1 << 27, 1 << 16
_BATCH_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 22


def texts(path: Path) -> Iterator[pa.LargeBinaryArray]:
    """The contents of an archive's records in order, in batches; NULL for other than plain text.

    Raises ``BadInput`` for a truncated, damaged or unreadable file, and another kind of file.
    """
    batch: list[bytes | None] = []
    n_bytes = 0
    with ByteStream(path) as stream, io.BufferedReader(stream, _BLOCK_BYTES) as file:
        for header, body in _records(path, file):
            if header.get("warc-type") in _CONTENT:
                is_text = header.get("content-type", "").startswith("text/plain")
                batch.append(body if is_text else None)
                n_bytes += len(body)
            if n_bytes > _BATCH_BYTES:
                yield pa.array(batch, pa.large_binary())
                batch, n_bytes = [], 0
    yield pa.array(batch, pa.large_binary())


def _records(
    path: Path, file: io.BufferedReader[ByteStream]
) -> Iterator[tuple[dict[str, str], bytes]]:
    """Each record: its header, with names in lower case, and its content."""
    number = 0
    while line := file.readline(_LONGEST_LINE):
        if not line.strip():  # two empty lines end a record
            continue
        number += 1
        where = f"shard {path.name}, record {number}"
        if not line.startswith(b"WARC/"):
            raise BadInput(where, "does not begin with WARC/", "is it a web archive?")
        header = {}
        while (line := file.readline(_LONGEST_LINE)).strip():
            name, _, value = line.decode("utf-8", "replace").partition(":")
            header[name.strip().lower()] = value.strip()
        length = header.get("content-length", "")
        if not length.isdecimal() or int(length) > _LONGEST:
            problem = f"Content-Length {length[:20]!r} is not a number up to {_LONGEST:,}"
            raise BadInput(where, problem)
        body = file.read(int(length))
        if len(body) < int(length):
            raise BadInput(where, f"has {len(body):,} of {int(length):,} bytes", "fetch it again")
        yield header, body
