"""Sentences out of files: plain text, CSV, TSV or JSON lines, each also gzipped."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.text.csv_rows import read_text, records

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_KINDS = (".txt", *_DELIMITERS, ".jsonl")


@dataclass(frozen=True)
class Sentence:
    """A row's text, by its number from 1, or with the problem that the row has."""

    number: int
    text: str
    problem: str | None = None


def read_sentences(path: Path, column: str | None = None) -> Iterator[Sentence]:
    """The sentences of a file, by the kind that its name tells.

    ``.txt``: a line each. ``.csv`` and ``.tsv``: the ``column`` of a table with a header, or
    without one the only field of each row. ``.jsonl``: the string under the key ``column`` of each
    line. Empty lines are skipped. Raises ``UsageProblem`` for another kind, for a
    ``column`` that is given to plain text or wanting for JSON lines; ``BadInput`` for a file that
    can't be read, or a table without the column.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "s.jsonl"
    >>> _ = path.write_text('{"text": "Someone ran."}\\n{"text": 3}\\n')
    >>> [(s.number, s.problem or s.text) for s in read_sentences(path, "text")]
    [(1, 'Someone ran.'), (2, "'text' is not a text")]
    """
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    if kind not in _KINDS:
        raise UsageProblem(f"{path}", f"is not one of {', '.join(_KINDS)}", "rename or convert it")
    if kind == ".txt" and column is not None:
        raise UsageProblem(f"column {column!r}", "plain text has no columns", "leave it out")
    if kind == ".jsonl" and column is None:
        raise UsageProblem(f"{path}", "JSON lines need the key of the sentence", "give a column")
    found: Iterator[Sentence]
    if kind in _DELIMITERS and column is not None:
        rows = records(path, (column,), _DELIMITERS[kind])
        found = (Sentence(r.number, r.fields.get(column, ""), r.problem) for r in rows)
    elif kind in _DELIMITERS:
        found = _only_fields(path, _DELIMITERS[kind])
    else:
        found = _lines(path, column)
    return map(_checked, found)


def _checked(sentence: Sentence) -> Sentence:
    problem = sentence.problem
    if problem is None and any("\udc80" <= c <= "\udcff" for c in sentence.text):
        problem = "the row holds bytes that are not UTF-8"
    return Sentence(sentence.number, sentence.text.strip(), problem)


def _only_fields(path: Path, delimiter: str) -> Iterator[Sentence]:
    """Rows of a table of one column without a header."""
    rows = csv.reader(read_text(path).splitlines(keepends=True), delimiter=delimiter)
    number = 0
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as e:
            number += 1
            yield Sentence(number, "", f"not a CSV row: {e}")
            continue
        if not row:
            continue
        number += 1
        wrong = len(row) != 1
        problem = f"the row holds {len(row)} fields, expected 1" if wrong else None
        yield Sentence(number, delimiter.join(row), problem)


def _lines(path: Path, key: str | None) -> Iterator[Sentence]:
    number = 0
    for line in read_text(path).split("\n"):
        if not line.strip():
            continue
        number += 1
        yield Sentence(number, line) if key is None else _value(number, line, key)


def _value(number: int, line: str, key: str) -> Sentence:
    try:
        row = json.loads(line)
    except ValueError:
        return Sentence(number, line, "the line is no JSON")
    value = row.get(key) if isinstance(row, dict) else None
    if not isinstance(value, str):
        return Sentence(number, line, f"{key!r} is not a text")
    return Sentence(number, value)
