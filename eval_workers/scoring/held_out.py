"""Held-out documents read from files; one that can't be used has a problem instead of a text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.remote_files import find
from plumbline.warehouse.input.shards import DEFAULT, Kind, expand_shards, kind_of, lines
from plumbline.warehouse.paths import Address
from plumbline.warehouse.regular_files import content

Row = dict[str, Any]
#: A text and ``None``, or an empty text and the problem.
Text: TypeAlias = "tuple[str, str | None]"

_TXT = ".txt"


@dataclass(frozen=True)
class Document:
    """A document's ``text``, or the ``problem`` with it.

    ``row`` is its line or row in the file, from 1; a `.txt` file is one document, with row 1.
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
        """Number of words, split at white space: the same for every tokenizer."""
        return len(self.text.split())

    @property
    def source(self) -> Row:
        """The document's file and row, as columns of ``reject``."""
        return {"source_file": self.source_file, "source_row": self.row}


@dataclass(frozen=True)
class HeldOut:
    """A set of held-out documents, including those with a problem."""

    name: str
    documents: tuple[Document, ...]


def text_files(patterns: Sequence[str]) -> list[Path]:
    """Files of held-out text by path or glob pattern: shards that counting reads, and `.txt`.

    Raises ``BadInput`` for a missing file or another kind of file. Raises ``UsageProblem`` for two
    files of the same name, because the name identifies documents.

    >>> text_files(["nowhere.txt"])
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.BadInput: text nowhere.txt: no such file (check the path or the \
pattern)
    """
    by_name: dict[str, Path] = {}
    for pattern in patterns:
        matches = find(pattern)
        if not matches:
            raise BadInput(f"text {pattern}", "no such file", "check the path or the pattern")
        for path, _ in matches:
            if path.suffix != _TXT or path.is_dir() or isinstance(path, Address):
                _ = expand_shards([str(path)])
            if by_name.setdefault(path.name, path) != path:
                problem = f"has the name of {by_name[path.name]}"
                raise UsageProblem(f"text {path}", problem, "rename one of them")
    return list(by_name.values())


def read_held_out(files: Sequence[Path]) -> HeldOut:
    """Read a set: one document per record, or per `.txt` file.

    Raises ``BadInput`` for a file that can't be read, and if no document can be used.
    """
    documents = tuple(document for path in files for document in _documents(path))
    if not any(document.problem is None for document in documents):
        first = f"; the first row: {documents[0].problem}" if documents else ""
        raise BadInput(f"text {', '.join(map(str, files))}", f"it holds no document{first}")
    return HeldOut(set_name(files), documents)


def set_name(files: Sequence[Path]) -> str:
    """Name of a set of files.

    >>> set_name([Path("a/wiki.jsonl.zst")]), set_name([Path("a.txt"), Path("b.txt")])
    ('wiki', 'a+1')
    """
    first = files[0].name.split(".")[0] or "text"
    return first if len(files) == 1 else f"{first}+{len(files) - 1}"


def _documents(path: Path) -> Iterator[Document]:
    kind = kind_of(path)
    if path.suffix == _TXT:
        texts: Iterable[Text | None] = [_whole_file(path)]
    else:
        texts = _batched(path, kind) if kind else map(_of_line, lines(path))
    for row, result in enumerate(texts, 1):
        if result is not None:
            text, problem = result
            if problem is None and not text.strip():
                problem = "holds no word"
            yield Document(path.name, row, text, problem)


def _decoded(data: bytes) -> Text:
    try:
        return data.decode(), None
    except UnicodeDecodeError as e:
        return "", f"invalid UTF-8 at byte {e.start}: {e.reason}"


def _whole_file(path: Path) -> Text:
    try:
        text, problem = _decoded(content(path))
    except OSError as e:
        raise BadInput(f"text {path}", e.strerror or "can't be read") from e
    return text.removeprefix("\ufeff"), problem


def _batched(path: Path, kind: Kind) -> Iterator[Text]:
    missing = kind.missing or "its text is NULL"
    for batch in kind.texts(path, DEFAULT):
        for value in batch.cast(pa.large_binary()).to_pylist():
            yield ("", missing) if value is None else _decoded(value)


def _of_line(line: bytes) -> Text | None:
    """Text or problem of a line; ``None`` for a blank line."""
    if not line.strip():
        return None
    try:
        record = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as e:
        return "", f"not JSON: {e}"
    text = record.get("text") if isinstance(record, dict) else None
    if not isinstance(text, str):
        return "", "the record has no `text` that is a string"
    if any("\ud800" <= c <= "\udfff" for c in text):
        return "", "`text` holds a lone surrogate"
    return text, None
