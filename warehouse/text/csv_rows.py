"""CSV: rows of released tables, and CSV text for spreadsheets."""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.regular_files import opened
from plumbline.warehouse.text.escape import csv_cell

Number = TypeVar("Number", int, float)

#: Most bytes of a decompressed table; released ones have some megabytes.
LARGEST = 1 << 30


class Record(NamedTuple):
    """A row of a table: number (from 1, without the header), fields by column, problem."""

    number: int
    fields: dict[str, str]
    problem: str | None = None


def records(path: Path, columns: tuple[str, ...], delimiter: str = ",") -> Iterator[Record]:
    """The rows of a CSV file whose header has at least ``columns``; blank lines are skipped.

    A row has a ``problem`` if it has the wrong number of fields, breaks the rules of CSV, or spans
    several lines because a quote is not closed. Bytes that are not UTF-8 become lone surrogates, by
    which the caller can reject the row. Raises ``BadInput`` if the file can't be read to its end or
    a column is missing.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("word,n\\ntea,2\\nrum\\n")
    >>> [(r.number, r.fields["word"], r.problem) for r in records(path, ("word",))]
    [(1, 'tea', None), (2, 'rum', 'the row holds 1 fields, expected 2')]
    """
    return records_of(read_text(path), str(path), columns, delimiter)


def records_of(
    content: str, what: str, columns: tuple[str, ...], delimiter: str = ","
) -> Iterator[Record]:
    """The rows of a text, as ``records`` yields them; ``what`` names the text in messages.

    >>> [r.fields for r in records_of("word\\ttea\\n1\\t2\\n", "a.tsv", (), "\\t")]
    [{'word': '1', 'tea': '2'}]
    """
    lines: list[str] = []  # of the current row

    def remembered_lines() -> Iterator[str]:
        for line in io.StringIO(content, newline=""):
            lines.append(line)
            yield line

    reader = csv.reader(remembered_lines(), delimiter=delimiter)
    try:
        header = next(reader, [])
    except csv.Error as e:
        raise BadInput(what, f"its header is not a CSV row: {e}") from e
    if missing := [c for c in columns if c not in header]:
        expected = f"expected the columns {', '.join(columns)}"
        raise BadInput(what, f"no column {', '.join(missing)} in its header; {expected}")
    number = 0
    while True:
        lines.clear()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as e:
            number += 1
            yield Record(number, {}, f"not a CSV row: {e}")
            continue
        if not row:
            continue
        number += 1
        is_whole = len(row) == len(header)
        problem = None if is_whole else f"the row holds {len(row)} fields, expected {len(header)}"
        if len(lines) > 1:
            problem = _open_quote(lines, delimiter) or problem
        yield Record(number, dict(zip(header, row, strict=False)), problem)


def _open_quote(lines: Sequence[str], delimiter: str) -> str | None:
    """The problem of a row of several ``lines`` if an unclosed quote joined them, else ``None``.

    >>> _open_quote(['Old,"Young\\n', "Older,Younger\\n"], ",")
    'a quote left open takes 2 lines into one field: close it, or write a quote in a text twice'
    >>> _open_quote(['Old,"Young\\n', 'Younger"\\n'], ",") is None
    True
    """
    try:
        list(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error:
        fix = "close it, or write a quote in a text twice"
        return f"a quote left open takes {len(lines)} lines into one field: {fix}"
    return None


def number(fields: Mapping[str, str], name: str, kind: type[Number]) -> Number:
    """The field ``name`` as a finite number. Raises ``ValueError`` that says what was expected.

    >>> number({"n": "2"}, "n", int)
    2
    >>> number({"n": "two"}, "n", int)
    Traceback (most recent call last):
    ...
    ValueError: n is 'two', expected a whole number
    """
    with suppress(ValueError):
        if math.isfinite(value := kind(fields[name])):
            return value
    expected = "whole" if kind is int else "finite"
    raise ValueError(f"{name} is {fields[name]!r}, expected a {expected} number")


def read_text(path: Path) -> str:
    """Text of a file, plain or gzipped; bytes that are not UTF-8 become lone surrogates.

    Raises ``BadInput`` for a file that doesn't exist, can't be read to its end, or has more than
    ``LARGEST`` bytes when decompressed.
    """
    try:
        with opened(path) as raw:
            is_gzip = raw.peek(2)[:2] == b"\x1f\x8b"
            file = gzip.GzipFile(fileobj=raw) if is_gzip else raw
            data = file.read(LARGEST + 1)
    except FileNotFoundError as e:
        raise BadInput(str(path), "no such file", "check the path") from e
    except (OSError, EOFError, zlib.error) as e:
        raise BadInput(str(path), f"can't be read to its end: {e}", "download it again") from e
    if len(data) > LARGEST:
        problem = f"holds more than {LARGEST:,} bytes, which no released table does"
        raise BadInput(str(path), problem, "check where it comes from")
    return data.decode("utf-8-sig", errors="surrogateescape")


def as_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as CSV, unrounded, with formulas escaped by ``csv_cell``; empty without rows.

    >>> print(as_csv([{"word": "=tea", "n": 0.5}, {"word": "a,b", "n": None}]), end="")
    word,n
    '=tea,0.5
    "a,b",
    """
    if not rows:
        return ""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(csv_cell, rows[0]))
    writer.writerows(map(csv_cell, row.values()) for row in rows)
    return out.getvalue()


def truth(value: str) -> bool | None:
    """The text ``True`` or ``False`` as a bool; ``None`` for any other text.

    >>> truth("True"), truth("False"), truth("")
    (True, False, None)
    """
    return {"True": True, "False": False}.get(value)
