"""Reads rows of users' files: CSV, TSV, JSON, JSON lines and Parquet, local or remote."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.input_rows import Record, delimiter_of, read_text, records_of
from plumbline.warehouse.input.remote_files import find, open_file, reading

_DELIMITERS = {".csv": "", ".tsv": "\t"}
_COMPRESSED = (".gz", ".zst")
KINDS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
#: Files that Hugging Face's ``datasets`` writes to describe a directory's data.
_ABOUT_FILES = ("dataset_info.json", "dataset_infos.json")


def files_of(source: Path) -> list[Path]:
    """Return the files that match a path, a URL or a file name pattern, sorted.

    For a directory, returns all files below it whose type is in ``KINDS``, except ``_ABOUT_FILES``.
    Raises ``BadInput`` if there is no file, or if the files of a directory are in several folders.
    Such folders may hold different versions of the data.
    """
    paths: set[Path] = set()
    for path, about in find(str(source)):
        if about and about.is_directory:
            inside = (p for p, within in find(f"{path}/**") if within and not within.is_directory)
            files = {p for p in inside if _kind(p) and p.name not in _ABOUT_FILES}
            if len(folders := sorted({str(p.parent.relative_to(path)) for p in files})) > 1:
                problem = f"its files are in several folders: {', '.join(folders)}"
                raise BadInput(str(path), problem, "name one of them, or give a file name pattern")
            paths |= files
        elif about:
            paths.add(path)
    if not paths:
        raise BadInput(str(source), "no such file", f"give --source FILE: {', '.join(KINDS)}")
    return sorted(paths)


def rows_of_file(path: Path, at: str = "") -> Iterator[Record]:
    """Yield the rows of a file in order; skip blank lines.

    ``at`` says where the list of rows is in a JSON document, such as ``data.intrasentence``.
    Raises ``BadInput`` if the file is of another type or can't be read to its end.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "pairs.jsonl"
    >>> _ = path.write_text('{"a": "Tea", "n": 1}\\n[]\\n')
    >>> [(row.number, dict(row.fields), row.problem) for row in rows_of_file(path)]
    [(1, {'a': 'Tea', 'n': 1}, None), (2, {}, 'the row is not a JSON object')]
    """
    import pyarrow.parquet as pq

    kind = _kind(path)
    if kind in _DELIMITERS:
        content = read_text(path)
        delimiter = _DELIMITERS[kind] or delimiter_of(content)
        for row in records_of(content, str(path), (), delimiter):
            yield row._replace(problem=_open_quote(row.fields, delimiter) or row.problem)
    elif kind == ".json":
        for number, row in enumerate(_document(path, at), 1):
            yield _json_row(number, row)
    elif kind == ".parquet":
        with reading(path), open_file(path) as raw:
            rows = pq.read_table(raw).to_pylist()
        yield from (Record(n, row) for n, row in enumerate(rows, 1))
    elif kind:
        for number, line in enumerate(read_text(path).split("\n"), 1):
            if line.strip():
                yield _json_line(number, line)
    else:
        raise BadInput(str(path), "has an unsupported type", f"expected {', '.join(KINDS)}")


def value_at(row: Mapping[str, Any], path: str) -> Any:
    """Return a row's value in a column, or ``None``; ``a.b`` means ``b`` in column ``a``.

    >>> row = {"info": {"ans0": ["The man", "M"]}, "a.b": 1}
    >>> value_at(row, "info.ans0.1"), value_at(row, "a.b"), value_at(row, "info.none")
    ('M', 1, None)
    """
    if path in row:
        return row[path]
    value: Any = row
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, Sequence) and not isinstance(value, str) and part.isdecimal():
            value = value[int(part)] if int(part) < len(value) else None
        else:
            return None
    return value


def _open_quote(fields: Mapping[str, str], delimiter: str) -> str | None:
    """Return an error message if a field with a missing closing quote contains later rows.

    A field may contain line breaks if its quote is closed. The quote counts as missing in two
    cases: the field's first line completes the row, or one of its lines looks like a whole row.
    A delimiter before a blank isn't counted, because it is probably a comma in a sentence. This
    function doesn't check the last field, since ``records_of`` does.

    >>> _open_quote({"a": "Old.,Young.\\nOlder.,Younger.\\nOld", "b": "New"}, ",")
    'a quote left open takes 3 lines into one field: close it, or write a quote in a text twice'
    >>> _open_quote({"a": "Old, she said.\\nOld.", "b": "New"}, ",") is None
    True
    """
    parts = re.compile(re.escape(delimiter) + r"(?!\s)")
    for place, text in enumerate([*fields.values()][:-1]):
        lines = text.split("\n")
        sizes = [len(parts.findall(line)) + 1 for line in lines[:-1]]
        if sizes and (place + sizes[0] == len(fields) or len(fields) in sizes):
            fix = "close it, or write a quote in a text twice"
            return f"a quote left open takes {len(lines)} lines into one field: {fix}"
    return None


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in _COMPRESSED]
    return suffixes[-1] if suffixes and suffixes[-1] in KINDS else ""


def _json_line(number: int, line: str) -> Record:
    try:
        return _json_row(number, json.loads(line))
    except (ValueError, RecursionError) as e:
        return Record(number, {}, f"the row is not JSON: {e}")


def _json_row(number: int, row: Any) -> Record:
    if isinstance(row, dict):
        return Record(number, row)
    return Record(number, {}, "the row is not a JSON object")


def _document(path: Path, at: str) -> list[Any]:
    try:
        content = json.loads(read_text(path))
    except (ValueError, RecursionError) as e:
        raise BadInput(str(path), f"is not JSON: {e}", "JSON lines are read from .jsonl") from e
    rows = value_at(content, at) if at and isinstance(content, dict) else content
    if not isinstance(rows, list):
        problem = f"{at or 'its JSON document'} is not a list of rows"
        raise BadInput(str(path), problem, "say where the list is: `rows` in a recipe")
    return rows
