"""Packing text files into one shard, each file as a document."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.paths import content
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import terminal

#: Advice for files left out.
FIX = "check them; if not UTF-8, name --encoding"
_SUFFIX = ".jsonl.zst"
_EXCERPT_BYTES = 120
#: Longest quoted path, in bytes, in the name of a table's folder; file systems allow 255.
_LONGEST_SUBJECT = 200
#: If a folder has more files, they aren't sources of their own: tables have a row per source.
_MOST_FILE_SOURCES = 100


@dataclass
class Packed:
    """How many files were packed, their bytes in UTF-8, and rows of ``reject`` for other files.

    A reject's ``source_row`` is the file's position among all files, from 1.
    """

    n_packed: int = 0
    n_bytes: int = 0
    rejects: list[dict[str, object]] = field(default_factory=list)


def text_files(sources: Sequence[Path]) -> dict[Path, str]:
    """Name each file given, and each ``.txt`` file in or below the directories given, sorted.

    Files in directories may also end in ``.TXT``. Each file occurs once. Its name is its path from
    the directory given (or the directory of a file given) on: ``letters/1850/anna.txt``. If the
    directories given have different parents, names start further up.

    Raises:
        BadInput: a path does not exist, or a directory has no ``.txt`` file.

    >>> text_files([Path("nowhere")])
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.BadInput: texts nowhere: no such file or directory (check the path)
    """
    files: dict[str, Path] = {}
    tops: set[str] = set()
    for source in sources:
        if not source.exists():
            raise BadInput(f"texts {source}", "no such file or directory", "check the path")
        inside = [source]
        if source.is_dir():
            inside = sorted(path for path in source.rglob("*") if path.suffix.lower() == ".txt")
        texts = [path for path in inside if path.is_file()]
        if not texts:
            raise BadInput(f"texts {source}", "holds no .txt file", "name the files themselves")
        # Absolute, so that the directory "." has a name; links stay as they are.
        top = os.path.abspath(source if source.is_dir() else source.parent)
        tops.add(os.path.dirname(top))
        for path in texts:
            files.setdefault(os.path.realpath(path), path)
    start = os.path.commonpath(tops)
    return {path: terminal(os.path.relpath(path, start)) for path in files.values()}


def source_kind(names: Collection[str]) -> str:
    """Return what a document's source is, given the names of all files: ``folder`` or ``file``.

    If all files are in one folder, each file is a source, unless there are more than a hundred.

    >>> source_kind(["letters/a.txt", "letters/b.txt"]), source_kind(["x/a.txt", "y/b.txt"])
    ('file', 'folder')
    """
    folders = {os.path.dirname(name) for name in names}
    return "folder" if len(folders) > 1 or len(names) > _MOST_FILE_SOURCES else "file"


def check_encoding(name: str) -> None:
    """Raise ``UsageProblem`` for a name that is not an encoding of texts.

    >>> check_encoding("latin-1")
    """
    try:
        "".encode(name)
    except (LookupError, ValueError) as e:
        fix = "such as cp1252, cp1250, cp1251, mac-roman or utf-16"
        raise UsageProblem(f"--encoding {terminal(name)}", "is not an encoding", fix) from e


def pack_files(
    store: Store, files: Mapping[Path, str], out: Path, run_id: str, encoding: str = ""
) -> Packed:
    """Write each file as a document of the shard ``out``, in the order given.

    ``files`` is the result of ``text_files``. The record has the file's name in ``meta.file``, and
    its source (that name or the folder, see ``source_kind``) in ``meta.pile_set_name``.

    A file is rejected, and recorded in table ``reject``, if it can't be read, holds only white
    space, or is neither in UTF-8 (a byte order mark is dropped) nor in ``encoding``. The shard is
    written completely or not at all, and replaces an earlier one. Each file must fit in memory.

    Raises:
        BadInput: ``out`` does not end with ``.jsonl.zst``, no file is usable, or ``out`` can't be
            written.
    """
    if not out.name.endswith(_SUFFIX):
        raise BadInput(f"--out {out}", f"its name does not end with {_SUFFIX}")
    packed = Packed()
    try:
        write_jsonl_zst(out, _records(files, packed, encoding))
    except OSError as e:
        raise BadInput(f"--out {out}", f"can't be written: {e.strerror or e}") from e
    key = {"stage": "pack", "subject": _subject(out)}
    rows = [{**key, **row, "run_id": run_id} for row in packed.rejects]
    store.replace("reject", rows, key, run_id)
    return packed


def _subject(out: Path) -> str:
    """The subject of rejects: the shard's path, or its name and a hash of a path that is long.

    >>> _subject(Path("/texts/a.jsonl.zst")), len(_subject(Path("/long" * 99, "a.jsonl.zst")))
    ('/texts/a.jsonl.zst', 24)
    """
    path = terminal(os.path.abspath(out))
    if len(quote(path, safe="")) <= _LONGEST_SUBJECT:
        return path
    return f"{hashlib.sha256(path.encode()).hexdigest()[:12]}/{terminal(out.name)}"


def _records(
    files: Mapping[Path, str], packed: Packed, encoding: str
) -> Iterator[dict[str, object]]:
    by_folder = source_kind(files.values()) == "folder"
    for position, (file, name) in enumerate(files.items(), start=1):
        text, reason, excerpt = "", "", ""
        try:
            data = content(file)
            excerpt = data[:_EXCERPT_BYTES].decode("utf-8", "backslashreplace")
            text = _decoded(data, encoding)
            reason = "" if text.strip() else "holds only white space"
        except OSError as e:
            reason = e.strerror or "can't be read"
        except UnicodeError as e:
            reason = f"not {encoding or 'UTF-8'}: {e}"
        if reason:
            place = {"source_file": terminal(str(file)), "source_row": position}
            packed.rejects.append({**place, "reason": reason, "excerpt": terminal(excerpt)})
            continue
        packed.n_packed += 1
        packed.n_bytes += len(text.encode())
        source = os.path.dirname(name) if by_folder else name
        yield {"text": text, "meta": {"pile_set_name": source, "file": name}}
    if not packed.n_packed:
        first = packed.rejects[0]["reason"] if packed.rejects else "none given"
        raise BadInput("texts", f"no file can be used; the first: {first}", FIX)


def _decoded(data: bytes, encoding: str) -> str:
    """Decode a file as UTF-8, else in ``encoding``, or first in one such as UTF-16.

    UTF-16 may be valid UTF-8, of which every second character is NUL. Raises ``UnicodeError`` if
    neither works, or if more than a quarter of the text is NUL.
    """
    is_wide = bool(encoding) and "a".encode(encoding) != b"a"
    try:
        text = data.decode(encoding if is_wide else "utf-8-sig")
    except UnicodeDecodeError:
        if not encoding:
            raise
        text = data.decode("utf-8-sig" if is_wide else encoding)
    if 4 * text.count("\0") > len(text):
        raise UnicodeError("more than a quarter of its characters are NUL")
    return text
