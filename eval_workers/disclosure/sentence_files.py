"""Sentences of files: plain text, CSV, TSV or JSON lines, each also gzipped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.input.input_rows import checked_rows, read_text, records

_DELIMITERS = {".csv": "", ".tsv": "\t"}
_KINDS = (".txt", *_DELIMITERS, ".jsonl")


@dataclass(frozen=True)
class SourceSentence:
    """Number of a row, from 1, its text, and its problem if it has one."""

    number: int
    text: str
    problem: str | None = None


def read_sentences(path: Path, column: str | None = None) -> Iterator[SourceSentence]:
    """Read the sentences of a file, by the suffix of its name.

    ``.txt``: one per line. ``.csv`` and ``.tsv``: the ``column`` of a table with a header; if
    ``column`` is ``None``, the only field of each row. ``.jsonl``: the string under the key
    ``column`` of each line. Empty lines are skipped. Raises ``UsageProblem`` for another suffix,
    for plain text with a ``column``, and for JSON lines without one; ``BadInput`` for a file that
    can't be read, or a table without the column.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "s.jsonl"
    >>> _ = path.write_text('{"text": "Someone ran."}\\n{"text": 3}\\n')
    >>> [(s.number, s.problem or s.text) for s in read_sentences(path, "text")]
    [(1, 'Someone ran.'), (2, "'text' is missing or not a text")]
    """
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    if kind not in _KINDS:
        raise UsageProblem(f"{path}", f"is not one of {', '.join(_KINDS)}", "rename or convert it")
    if kind == ".txt" and column is not None:
        raise UsageProblem(f"column {column!r}", "plain text has no columns", "leave it out")
    if kind == ".jsonl" and column is None:
        raise UsageProblem(f"{path}", "JSON lines need the key of the sentence", "give a column")
    sentences: Iterator[SourceSentence]
    if kind in _DELIMITERS and column is not None:
        rows = records(path, (column,), _DELIMITERS[kind])
        sentences = (SourceSentence(r.number, r.fields.get(column, ""), r.problem) for r in rows)
    elif kind in _DELIMITERS:
        sentences = _only_fields(path, _DELIMITERS[kind] or ",")
    else:
        lines = enumerate((line for line in read_text(path).split("\n") if line.strip()), 1)
        sentences = (SourceSentence(n, *_text_of(line, column)) for n, line in lines)
    return map(_checked, sentences)


def _checked(sentence: SourceSentence) -> SourceSentence:
    problem = sentence.problem
    if problem is None and any("\ud800" <= c <= "\udfff" for c in sentence.text):
        problem = "the row holds bytes that are not UTF-8, or half a surrogate pair"
    return SourceSentence(sentence.number, sentence.text.strip(), problem)


def _only_fields(path: Path, delimiter: str) -> Iterator[SourceSentence]:
    """Rows of a table with one column and no header; empty rows are skipped."""
    for number, (row, problem) in enumerate(checked_rows(read_text(path), delimiter), 1):
        if problem is None and len(row) > 1:
            problem = f"the row holds {len(row)} fields, expected 1"
        yield SourceSentence(number, delimiter.join(row), problem)


def _text_of(line: str, key: str | None) -> tuple[str, str | None]:
    """The text under ``key`` in a line of JSON, or the line and its problem.

    Without a ``key`` the line itself is the text.
    """
    if key is None:
        return line, None
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return line, "the line isn't JSON"
    value = row.get(key) if isinstance(row, dict) else None
    return (value, None) if isinstance(value, str) else (line, f"{key!r} is missing or not a text")
