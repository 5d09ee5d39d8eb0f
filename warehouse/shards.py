"""Shards of text: find them, read them to their end or fail, and fingerprint their content.

A shard is `.jsonl`, `.jsonl.zst`, `.jsonl.gz` (one JSON record per line with a `text`) or
`.parquet` (a `text` column). Compressed streams may hold several frames or members; one that stops
early is an error, never a shorter shard.
"""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.paths import Address, replacing
from plumbline.warehouse.sources import (
    CODECS,
    ByteStream,
    Description,
    find,
    open_file,
    unreadable,
)
from plumbline.warehouse.text.escape import is_unicode

_PACK = "make a shard of text files with plumbline corpus pack"
_BLOCK = 1 << 22
#: Bytes of the longest line read as a Python object; counting reads longer ones through a file.
LONGEST_LINE = 1 << 27
#: Rows per batch of a Parquet shard.
_BATCH_ROWS = 1024
#: The value of a field that a record lacks.
MISSING = object()


def expand_shards(patterns: Sequence[str]) -> list[Path]:
    """Files named by paths and glob patterns, each once, in the order given (globs sorted).

    Raises:
        UsageProblem: an address is of an unknown kind, or holds a password.
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
        if not (paths := find(pattern)):
            raise BadInput(f"shards {pattern}", "no such file", "check the path or the pattern")
        for path, described in paths:
            _check(path, described)
            found[path] = None
    return list(found)


def _check(path: Path, described: Description | None) -> None:
    """Raise ``BadInput`` for what can't be a shard."""
    if described is None:
        raise BadInput(f"shard {path}", "no such file", "check the path or the pattern")
    if described.is_directory:
        fix = f"name its files, such as '{path}/*.jsonl.zst', or {_PACK}"
        raise BadInput(f"shard {path}", "is a directory", fix)
    _check_suffix(path)
    if not isinstance(path, Address) and not path.is_file():
        fix = "a shard is read twice: write it to a file first"
        raise BadInput(f"shard {path}", "is not a regular file", fix)
    if not is_unicode(str(path)):  # tables keep it
        raise BadInput(f"shard {path}", "its name is not in UTF-8", "rename it")


def _check_suffix(path: Path) -> None:
    plain = path.with_suffix("") if path.suffix in CODECS else path
    if path.suffix != ".parquet" and plain.suffix != ".jsonl":
        known = "`.jsonl`, `.jsonl.zst`, `.jsonl.gz` or `.parquet`"
        fix = _PACK if path.suffix in (".txt", ".md") else ""
        raise BadInput(f"shard {path}", f"its name does not end with {known}", fix)


def is_parquet(path: Path) -> bool:
    """Whether a shard is read as Parquet rather than as JSON lines."""
    return path.suffix == ".parquet"


def text_batches(path: Path, field: str = "text") -> Iterator[pa.LargeStringArray]:
    """The text column of a Parquet shard, in batches of large_string; NULLs stay NULL.

    A ``field`` named ``a.b`` is the column of that name or else the member ``b`` of column ``a``.

    Raises:
        BadInput: unreadable or truncated file, no such column, or a column that is not text.
    """
    try:
        with open_file(path) as raw, pq.ParquetFile(raw) as file:
            schema = file.schema_arrow
            members = [field] if field in schema.names else field.split(".")
            kind: pa.DataType = pa.struct(list(schema))
            for member in members:
                index = kind.get_field_index(member) if pa.types.is_struct(kind) else -1
                if index < 0:
                    fix = f"it has {', '.join(schema.names)}: name one with --text-field"
                    raise BadInput(f"shard {path.name}", f"no column named `{field}`", fix)
                kind = kind.field(index).type
            if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                raise BadInput(f"shard {path.name}", f"column `{field}` is {kind}, not text")
            for batch in file.iter_batches(_BATCH_ROWS, columns=[field]):
                values = batch.column(0)
                for member in members[1:]:
                    values = pc.struct_field(values, member)
                yield values.cast(pa.large_string())
    except (OSError, pa.ArrowInvalid) as e:
        raise unreadable(path, e) from e


def documents(path: Path, field: str = "text") -> Iterator[str]:
    """The texts of a shard as Python strings: the documents that are counted, in the same order.

    Rejected records (see ``jobs.kernel.json_lines``) are skipped. Convenience API, not optimised.

    Raises:
        BadInput: truncated, damaged or unreadable shard, or a line of more than ``LONGEST_LINE``
            bytes; raised when reading reaches that place.
    """
    if is_parquet(path):
        for batch in text_batches(path, field):
            for value in batch.cast(pa.large_binary()).drop_null():
                with suppress(UnicodeDecodeError):
                    yield value.as_py().decode()
        return
    for line in lines(path):
        with suppress(ValueError, RecursionError):  # not UTF-8, not JSON, lone surrogates
            record = json.loads(line.decode())
            text = field_value(record, field) if isinstance(record, dict) else None
            if isinstance(text, str):
                text.encode()
                yield text


def field_value(record: Mapping[str, object], field: str) -> object:
    """A field of a JSON record, or MISSING; ``a.b`` is the key of that name or else b in a.

    >>> field_value({"doc": {"body": "tea"}}, "doc.body"), field_value({"a.b": 1}, "a.b")
    ('tea', 1)
    """
    if field in record:
        return record[field]
    found: object = record
    for key in field.split("."):
        found = found.get(key, MISSING) if isinstance(found, Mapping) else MISSING
    return found


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
