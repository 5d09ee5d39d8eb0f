"""Find and read shards: files of many documents, as JSON lines or Parquet.

A truncated shard raises an error instead of yielding fewer documents.
"""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.remote_files import (
    CODECS,
    ByteStream,
    Description,
    find,
    open_file,
    reading,
)
from plumbline.warehouse.paths import Address, replacing
from plumbline.warehouse.text.escape import is_unicode

if TYPE_CHECKING:
    import pyarrow as pa

_PACK = "make a shard of text files with plumbline corpus pack"
#: Advice for a path or pattern that matches no file.
_CHECK_PATH = "check the path or the pattern, docs/corpora.md"
_BLOCK_BYTES = 1 << 22
#: Longest line, in bytes, that ``lines`` reads. Counting reads lines of twice this length.
LONGEST_LINE = 1 << 27
#: Rows per batch of a Parquet shard.
_BATCH_ROWS = 1024
#: The value of a field that a record lacks.
MISSING = object()
#: Suffixes of JSON lines; a compressed file may have none, such as `RC_2023-01.zst`.
_JSON_LINES = (".jsonl", ".json", ".ndjson")


def expand_shards(patterns: Sequence[str]) -> list[Path]:
    """Return the files that paths and patterns match, in the order given, each file once.

    The files of one pattern are sorted. Raises the errors of ``find``. Raises ``BadInput`` if a
    pattern matches nothing, or if a match is a directory or pipe, has a wrong suffix, or has a name
    that is not UTF-8.
    """
    shards: dict[Path, None] = {}
    for pattern in patterns:
        if not (paths := find(pattern)):
            raise BadInput(f"shards {pattern}", "no such file", _CHECK_PATH)
        for path, description in paths:
            _check(path, description)
            shards[path] = None
    return list(shards)


def _check(path: Path, description: Description | None) -> None:
    if description is None:
        raise BadInput(f"shard {path}", "no such file", _CHECK_PATH)
    if description.is_directory:
        fix = f"name its files, such as '{path}/*.jsonl.zst', or {_PACK}"
        raise BadInput(f"shard {path}", "is a directory", fix)
    is_compressed = path.suffix in CODECS
    suffix = path.with_suffix("").suffix if is_compressed else path.suffix
    if suffix not in (("", *_JSON_LINES) if is_compressed else (*_JSON_LINES, ".parquet")):
        lines = ", ".join(f"`{suffix}`" for suffix in _JSON_LINES)
        problem = f"its name does not end with {lines} (`.gz` or `.zst` may follow) or `.parquet`"
        fix = _PACK if path.suffix in (".txt", ".md") else ""
        raise BadInput(f"shard {path}", problem, fix)
    if not isinstance(path, Address) and not path.is_file():
        fix = "a shard is read twice: write it to a file first"
        raise BadInput(f"shard {path}", "is not a regular file", fix)
    if not is_unicode(str(path)):  # tables store only valid Unicode
        raise BadInput(f"shard {path}", "its name is not in UTF-8", "rename it")


def is_parquet(path: Path) -> bool:
    """Return whether a shard's suffix or first bytes say that it is Parquet, not JSON lines.

    Raises ``BadInput`` for a shard that can't be read.
    """
    if path.suffix == ".parquet":
        return True
    with reading(path), open_file(path) as file:
        return file.read(4) == b"PAR1"


def column_values(path: Path, field: str) -> Iterator[pa.Array]:
    """Yield a column of a Parquet shard in batches. ``a.b`` means the field ``b`` of ``a``.

    All texts are returned as Arrow's type ``large_string``. Raises ``BadInput`` if the file is
    damaged or lacks the column.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    with reading(path), open_file(path) as raw, pq.ParquetFile(raw) as file:
        schema = file.schema_arrow
        members = [field] if field in schema.names else field.split(".")
        data_type: pa.DataType = pa.struct(list(schema))
        for member in members:
            is_struct = pa.types.is_struct(data_type)
            index = data_type.get_field_index(member) if is_struct else -1
            if index < 0:
                names = ", ".join(schema.names)
                fix = f"it has {names}: name one with text_field (option or setting)"
                raise BadInput(f"shard {path.name}", f"no column named `{field}`", fix)
            data_type = data_type.field(index).type
        for batch in file.iter_batches(_BATCH_ROWS, columns=[field]):
            values = batch.column(0)
            for member in members[1:]:
                values = pc.struct_field(values, member)
            if pa.types.is_dictionary(values.type):
                values = values.dictionary_decode()
            is_text = pa.types.is_string(values.type) or pa.types.is_string_view(values.type)
            yield values.cast(pa.large_string()) if is_text else values


def text_column(path: Path, text_field: str) -> Iterator[pa.LargeStringArray]:
    """Yield the texts of a Parquet shard in batches. A text may be NULL.

    Raises the errors of ``column_values``, and ``BadInput`` for a column that is not text.
    """
    import pyarrow as pa

    for values in column_values(path, text_field):
        if not pa.types.is_large_string(values.type):
            problem = f"column `{text_field}` is {values.type}, not text"
            raise BadInput(f"shard {path.name}", problem)
        yield values


def documents(path: Path, text_field: str = "text") -> Iterator[str]:
    """Yield the documents of a shard, in order, as strings.

    Skips the same records as counting does (see ``jobs.kernel.json_parser``). This function is
    simple, not fast. Raises ``BadInput`` if the shard is truncated, damaged or unreadable, and for
    a line longer than ``LONGEST_LINE`` bytes.
    """
    import pyarrow as pa

    if is_parquet(path):
        for batch in text_column(path, text_field):
            for value in batch.cast(pa.large_binary()).drop_null():
                with suppress(UnicodeDecodeError):
                    yield value.as_py().decode()
        return
    for line in lines(path):
        with suppress(ValueError, RecursionError):  # skip invalid UTF-8, invalid JSON, surrogates
            record = json.loads(line.decode())
            text = field_value(record, text_field) if isinstance(record, dict) else None
            if isinstance(text, str):
                text.encode()
                yield text


def field_value(record: Mapping[str, object], field: str) -> object:
    """Return a record's field, or ``MISSING`` if the record doesn't have it.

    The field ``a.b`` is the key ``a.b`` or, if that is missing, the key ``b`` inside ``a``.

    >>> field_value({"doc": {"body": "tea"}}, "doc.body"), field_value({"a.b": 1}, "a.b")
    ('tea', 1)
    """
    if field in record:
        return record[field]
    value: object = record
    for key in field.split("."):
        value = value.get(key, MISSING) if isinstance(value, Mapping) else MISSING
    return value


def lines(path: Path) -> Iterator[bytes]:
    """Yield a JSON-lines shard's lines without newlines. Raises the errors of ``documents``."""
    with ByteStream(path) as stream, io.BufferedReader(stream, _BLOCK_BYTES) as reader:
        for number in itertools.count(1):
            line = reader.readline(LONGEST_LINE + 1)
            if not line:
                return
            if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
                problem = f"has more than {LONGEST_LINE:,} bytes, the longest line that is read"
                raise BadInput(f"shard {path.name}, line {number}", problem, "leave it out")
            yield line.removesuffix(b"\n")


def write_jsonl_zst(path: Path, texts: Iterable[str | Mapping[str, object]]) -> None:
    """Write documents atomically to one shard in the Pile's format (`.jsonl.zst`).

    A document is a text, or a record with the field ``text``.
    """
    import pyarrow as pa

    with (
        replacing(path) as temporary,
        pa.OSFile(str(temporary), "wb") as raw,
        pa.CompressedOutputStream(raw, "zstd") as out,
    ):
        for text in texts:
            record = {"text": text} if isinstance(text, str) else text
            out.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
