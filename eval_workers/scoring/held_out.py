"""Held-out texts by document, read from files; what isn't one is a reject with its reason."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.files import content
from plumbline.warehouse.input.shards import DEFAULT, Kind, expand_shards, kind_of, lines
from plumbline.warehouse.input.sources import find
from plumbline.warehouse.paths import Address

Row = dict[str, Any]

_TXT = ".txt"


@dataclass(frozen=True)
class Document:
    """A document, known as its file and row, `FILE:ROW`; ``text`` or the ``problem`` with it.

    ``row`` counts from 1: the line or row of the file, 1 for a file that is one document.
    """

    source_file: str
    row: int
    text: str = ""
    problem: str | None = None

    @property
    def name(self) -> str:
        """Stable identifier within its set.

        >>> Document("a.jsonl", 12).name
        'a.jsonl:000012'
        """
        return f"{self.source_file}:{self.row:06}"

    @property
    def n_words(self) -> int:
        """Stretches without white space: the same whatever the tokeniser."""
        return len(self.text.split())

    @property
    def source(self) -> Row:
        """Where it stands, as columns of ``reject``."""
        return {"source_file": self.source_file, "source_row": self.row}


@dataclass(frozen=True)
class HeldOut:
    """A set of held-out documents, those with a problem among them."""

    name: str
    documents: tuple[Document, ...]


def text_files(patterns: Sequence[str]) -> list[Path]:
    """Files of held-out text by path or glob pattern: shards as counting takes them, and `.txt`.

    Raises ``BadInput`` for one that is not there or of another kind, ``UsageProblem`` for two files
    of one name, which documents go by.

    >>> text_files(["nowhere.txt"])
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.BadInput: text nowhere.txt: no such file (check the path or the \
pattern)
    """
    found: dict[str, Path] = {}
    for pattern in patterns:
        named = find(pattern)
        if not named:
            fix = "check the path or the pattern"
            raise BadInput(f"text {pattern}", "no such file", fix)
        for path, _ in named:
            if path.suffix != _TXT or path.is_dir() or isinstance(path, Address):
                _ = expand_shards([str(path)])
            if found.setdefault(path.name, path) != path:
                problem = f"has the name of {found[path.name]}"
                raise UsageProblem(f"text {path}", problem, "rename one of them")
    return list(found.values())


def read_held_out(files: Sequence[Path]) -> HeldOut:
    """Read a set: a record a document, a `.txt` file as a whole; its name is that of its files.

    Raises ``BadInput`` for a file that can't be read, or without one document in all.
    """
    documents = tuple(document for path in files for document in _documents(path))
    if not any(document.problem is None for document in documents):
        first = f"; the first row: {documents[0].problem}" if documents else ""
        problem = f"it holds no document{first}"
        raise BadInput(f"text {', '.join(map(str, files))}", problem)
    return HeldOut(set_name(files), documents)


def set_name(files: Sequence[Path]) -> str:
    """Name of a set of files.

    >>> set_name([Path("a/wiki.jsonl.zst")]), set_name([Path("a.txt"), Path("b.txt")])
    ('wiki', 'a+1')
    """
    first = files[0].name.split(".")[0] or "text"
    return first if len(files) == 1 else f"{first}+{len(files) - 1}"


def _documents(path: Path) -> Iterator[Document]:
    if path.suffix == _TXT:
        yield _whole_file(path)
        return
    kind = kind_of(path)
    texts = _batched(path, kind) if kind else map(_of_line, lines(path))
    for row, found in enumerate(texts, 1):
        if found is None:
            continue
        text, problem = found
        if problem is None and not text.strip():
            problem = "holds no word"
        yield Document(path.name, row, text, problem)


def _whole_file(path: Path) -> Document:
    try:
        text = content(path).decode()
    except UnicodeDecodeError as e:
        return Document(path.name, 1, problem=f"invalid UTF-8 at byte {e.start}: {e.reason}")
    except OSError as e:
        raise BadInput(f"text {path}", e.strerror or "can't be read") from e
    return Document(path.name, 1, text, None if text.strip() else "holds no word")


def _batched(path: Path, kind: Kind) -> Iterator[tuple[str, str | None]]:
    for batch in kind.texts(path, DEFAULT):
        for value in batch.cast(pa.large_binary()).to_pylist():
            try:
                text = None if value is None else value.decode()
                yield (text, None) if text is not None else ("", kind.missing or "its text is NULL")
            except UnicodeDecodeError as e:
                yield "", f"invalid UTF-8 at byte {e.start}: {e.reason}"


def _of_line(line: bytes) -> tuple[str, str | None] | None:
    """Text of a line, or what is wrong with it; ``None`` for a blank line."""
    if not line.strip():
        return None
    try:
        record = json.loads(line.decode())
    except (ValueError, RecursionError) as e:
        return "", f"not JSON: {e}"
    text = record.get("text") if isinstance(record, dict) else None
    if not isinstance(text, str):
        return "", "the record has no `text` that is a string"
    if any("\ud800" <= c <= "\udfff" for c in text):
        return "", "`text` holds a lone surrogate"
    return text, None
