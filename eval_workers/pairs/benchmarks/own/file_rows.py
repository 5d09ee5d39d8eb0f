"""Rows of users' files: CSV, TSV, JSON, JSON lines and Parquet, local or at an address."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.input_rows import delimiter_of, read_text, records_of
from plumbline.warehouse.input.remote_files import find, open_file, reading

_DELIMITERS = {".csv": "", ".tsv": "\t"}
_COMPRESSED = (".gz", ".zst")
KINDS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
_BATCH_ROWS = 1024
_AS_PARQUET = "save it as Parquet: Dataset.to_parquet"
#: Files in which Hugging Face's ``datasets`` describes a directory's data.
_ABOUT_FILES = ("dataset_info.json", "dataset_infos.json")
#: Number of a file, as ``datasets`` names the parts of a split.
_SHARD = re.compile(r"-\d{5}-of-\d{5}")


@dataclass(frozen=True)
class SourceRow:
    """One row of a file: its number from 1, and its values by column or a problem.

    Values of CSV and TSV are texts; those of JSON and Parquet are Python values.
    """

    file: str
    number: int
    fields: Mapping[str, Any]
    problem: str | None = None


def files_of(source: Path) -> list[Path]:
    """The files of a path, an address or a pattern of names, sorted.

    A directory means all files of ``KINDS`` in it and below it, except the description files
    of Hugging Face's ``datasets``. Raises ``BadInput`` if there is no file, or the directory has
    several configurations or splits: directories with files of the same names, such as
    ``validation-00000-of-00001.parquet``.
    """
    paths: list[Path] = []
    for path, about in find(str(source)):
        if about and about.is_directory:
            inside = find(f"{path}/**")
            found = [p for p, about in inside if about and not about.is_directory]
            if arrow := next((p for p in found if p.suffix == ".arrow"), None):
                raise BadInput(str(path), f"holds {arrow.name}, of save_to_disk", _AS_PARQUET)
            files = [p for p in found if _kind(p)]
            files = [p for p in files if p.name not in _ABOUT_FILES]
            _check_alone(path, files)
            paths += files
        elif about:
            paths.append(path)
    if not paths:
        fix = "give --source FILE: CSV, TSV, JSON, JSON lines or Parquet"
        raise BadInput(str(source), "no such file", fix)
    return sorted(set(paths))


def _check_alone(directory: Path, files: Sequence[Path]) -> None:
    """Raise ``BadInput`` if files of several directories have one name, but for its numbers."""
    places: dict[str, set[Path]] = {}
    for path in files:
        places.setdefault(_SHARD.sub("", path.name), set()).add(path.parent)
    several = sorted({p for same in places.values() if len(same) > 1 for p in same})
    if several:
        names = [str(p.relative_to(directory)) for p in several]
        problem = f"holds several configurations or splits: {', '.join(names)}"
        fix = f"name one: --source {several[0]}; or all, by a pattern of file names"
        raise BadInput(str(directory), problem, fix)


def rows_of_file(path: Path, at: str = "") -> Iterator[SourceRow]:
    """The rows of a file, in order; blank lines are skipped.

    ``at`` is the place of the list of rows in a JSON document, such as ``data.intrasentence``.
    Raises ``BadInput`` for a file of another kind, or one that can't be read to its end.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "pairs.jsonl"
    >>> _ = path.write_text('{"a": "Tea", "n": 1}\\n[]\\n')
    >>> [(row.number, dict(row.fields), row.problem) for row in rows_of_file(path)]
    [(1, {'a': 'Tea', 'n': 1}, None), (2, {}, 'the row is not a JSON object')]
    """
    kind = _kind(path)
    if kind in _DELIMITERS:
        content = read_text(path)
        delimiter = _DELIMITERS[kind] or delimiter_of(content)
        for record in records_of(content, str(path), (), delimiter):
            problem = _open_quote(record.fields, delimiter) or record.problem
            yield SourceRow(path.name, record.number, record.fields, problem)
    elif kind in (".jsonl", ".ndjson"):
        yield from _json_lines(path)
    elif kind == ".json":
        yield from _json_document(path, at)
    elif kind == ".parquet":
        with reading(path), open_file(path) as raw:
            rows = (
                row
                for batch in pq.ParquetFile(raw).iter_batches(_BATCH_ROWS)
                for row in batch.to_pylist()
            )
            yield from (SourceRow(path.name, n, row) for n, row in enumerate(rows, 1))
    else:
        fix = _AS_PARQUET if path.suffix == ".arrow" else f"expected {', '.join(KINDS)}"
        raise BadInput(str(path), "has an unsupported type", fix)


def value_at(row: Mapping[str, Any], path: str) -> Any:
    """The value of a row's column; ``a.b`` is ``b`` in column ``a``. ``None`` if missing.

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
    """The problem of a row if an open quote pulled later rows into one of its fields, or ``None``.

    A field may hold line breaks. It is a problem if its first line completes the row, or if another
    line has as many fields as a row; a delimiter before a blank counts as prose. The last field is
    checked by ``records_of``.

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


def _json_lines(path: Path) -> Iterator[SourceRow]:
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = _json_row(path, number, json.loads(line))
        except (ValueError, RecursionError) as e:
            row = SourceRow(path.name, number, {}, f"the row is not JSON: {e}")
        yield row


def _json_row(path: Path, number: int, row: Any) -> SourceRow:
    if isinstance(row, dict):
        return SourceRow(path.name, number, row)
    return SourceRow(path.name, number, {}, "the row is not a JSON object")


def _json_document(path: Path, at: str) -> Iterator[SourceRow]:
    try:
        content = json.loads(read_text(path))
    except (ValueError, RecursionError) as e:
        fix = "JSON lines are read from .jsonl"
        raise BadInput(str(path), f"is not JSON: {e}", fix) from e
    rows = value_at(content, at) if at and isinstance(content, dict) else content
    if not isinstance(rows, list):
        problem = f"{f'at {at}' if at else 'as a whole'} is not a list of rows"
        raise BadInput(str(path), problem, "name its place in a recipe: rows")
    for number, row in enumerate(rows, 1):
        yield _json_row(path, number, row)
