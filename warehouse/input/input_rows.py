"""Read CSV and text files, and describe unusable input as rows of the table ``reject``."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.remote_files import ByteStream
from plumbline.warehouse.text.escape import terminal

_EXCERPT_CHARACTERS = 120
#: A message names at most this many reasons.
_REASONS = 3
#: Largest file, in bytes after decompression.
LARGEST = 1 << 30


class Record(NamedTuple):
    """One row of a file: its number, its fields, and its problem, if any.

    Rows are numbered from 1, after the header. CSV fields are strings. Fields from JSON and Parquet
    are Python values.
    """

    number: int
    fields: dict[str, Any]
    problem: str | None = None


def records(path: Path, columns: tuple[str, ...], delimiter: str = "") -> Iterator[Record]:
    """Yield the rows of a CSV file, except blank lines. The header must have all ``columns``.

    A row has a ``problem`` if its number of fields is wrong, or if it breaks CSV's quoting rules
    (see ``checked_rows``). Bytes that are not UTF-8 become lone surrogates, so that the caller can
    find and reject the row. If ``delimiter`` is empty, ``delimiter_of`` detects it. Raises
    ``BadInput`` if part of the file can't be read, or if the header lacks or repeats a column.
    """
    return records_of(read_text(path), str(path), columns, delimiter)


def records_of(
    content: str, what: str, columns: tuple[str, ...], delimiter: str = ""
) -> Iterator[Record]:
    """Yield the rows of CSV text, like ``records``. Error messages call the text ``what``."""
    rows = checked_rows(content, delimiter or delimiter_of(content))
    header, problem = next(rows, ([], None))
    if problem:
        raise BadInput(what, f"its header is not a CSV row: {problem}")
    if twice := [name for name in dict.fromkeys(header) if name and header.count(name) > 1]:
        raise BadInput(what, f"its header has {', '.join(twice)} twice", "rename one")
    if missing := [c for c in columns if c not in header]:
        expected = f"expected the columns {', '.join(columns)}"
        raise BadInput(what, f"no column {', '.join(missing)} in its header; {expected}")
    for number, (row, found) in enumerate(rows, 1):
        if not found and len(row) != len(header):
            found = f"the row holds {len(row)} fields, expected {len(header)}"
        yield Record(number, dict(zip(header, row, strict=False)), found)


def delimiter_of(content: str) -> str:
    """Return the delimiter in a table's header. Try a comma, then a tab, then a semicolon.

    If the header contains none of these, return a comma.
    """
    header = content.partition("\n")[0]
    return next((mark for mark in ",\t;" if mark in header), ",")


def checked_rows(content: str, delimiter: str) -> Iterator[tuple[list[str], str | None]]:
    r"""Yield each row of CSV text with its problem, or ``None``. Skip blank lines.

    A field that contains a quote must be in quotes, and each quote inside it must be doubled.
    In tab-separated text, this applies only to fields that start with a quote.

    >>> for row, problem in checked_rows('a,"b ""c"" d"\na,b "c"\n"a\nb,c\n', ","):
    ...     print(row, problem and problem.partition(":")[0])
    ['a', 'b "c" d'] None
    ['a', 'b "c"'] a quote breaks the rules of CSV
    ['a\nb,c\n'] a quote left open takes 2 lines into one field
    """
    lines: list[str] = []  # the lines of the current row

    def remembered_lines() -> Iterator[str]:
        for line in io.StringIO(content, newline=""):
            lines.append(line)
            yield line

    plain = f"[^{delimiter}\r\n]*" if delimiter == "\t" else f'[^{delimiter}\r\n"]*'
    field = f'(?:"[^"]*(?:""[^"]*)*"|(?!"){plain})'
    sound = re.compile(f"{field}(?:{delimiter}{field})*(?:\r\n|\n|\r)?")
    reader = csv.reader(remembered_lines(), delimiter=delimiter)
    while True:
        lines.clear()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as e:
            yield [], f"not a CSV row: {e}"
            continue
        text = "".join(lines)
        if '"' not in text or sound.fullmatch(text):
            if row:
                yield row, None
        elif len(lines) > 1:
            fix = "close it, or write a quote in a text twice"
            yield row, f"a quote left open takes {len(lines)} lines into one field: {fix}"
        else:
            fix = "put the field in quotes, and write each quote in it twice"
            yield row, f"a quote breaks the rules of CSV: {fix}"


def number(fields: Mapping[str, str], name: str) -> float:
    """Return the field ``name`` as a finite number, or raise ``ValueError`` with the reason."""
    with suppress(ValueError):
        if math.isfinite(value := float(fields[name])):
            return value
    raise ValueError(f"{name} is {fields[name]!r}, expected a finite number")


def read_text(path: Path) -> str:
    """Read a UTF-8 text file, on disk or at an address, compressed or not.

    Bytes that aren't UTF-8 become lone surrogates. A byte order mark is dropped.
    Raises the errors of ``reading``, and ``BadInput`` for more than ``LARGEST`` decompressed bytes.
    """
    with ByteStream(path) as stream, io.BufferedReader(stream) as reader:
        data = reader.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise BadInput(str(path), f"holds more than {LARGEST:,} bytes", "split it, or use Parquet")
    return data.decode("utf-8-sig", errors="surrogateescape")


def truth(value: str) -> bool | None:
    return {"True": True, "False": False}.get(value)


def printable(text: str) -> str:
    return terminal(text[:_EXCERPT_CHARACTERS])


def rejected(row: Mapping[str, object], reason: str, excerpt: str) -> dict[str, object]:
    """Make a row of the table ``reject``, without ``stage`` and ``subject``, for an input row.

    ``row`` must have ``source_file`` and ``source_row``.
    """
    source = {name: row[name] for name in ("source_file", "source_row")}
    return {**source, "reason": reason, "excerpt": printable(excerpt)}


def reasons(of_rejects: Iterable[str]) -> str:
    """List the most common reasons why rows were rejected, each with its count.

    >>> reasons(["has 3 fields", "is empty", "is empty"])
    '"is empty" (2), "has 3 fields" (1)'
    """
    counts = Counter(of_rejects).most_common()
    listed = [f'"{reason}" ({n:,})' for reason, n in counts[:_REASONS]]
    return ", ".join([*listed, *(["..."] if len(counts) > _REASONS else [])])
