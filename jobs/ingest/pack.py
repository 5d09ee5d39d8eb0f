"""Pack text files into one shard. Each file becomes a document."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plumbline.warehouse.errors import BadInput, disk_problems
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.paths import content
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import terminal

#: What to do if no file can be used.
_FIX = "check them; to convert to UTF-8: iconv -f cp1252 -t utf-8 OLD > NEW"
_SUFFIX = ".jsonl.zst"
_EXCERPT_BYTES = 120
#: If one folder has more files than this, its files share a source. Tables have a row per source.
_MOST_FILE_SOURCES = 100


@dataclass
class Packed:
    """The result of packing. ``n_bytes`` is the size of the packed texts in UTF-8.

    ``rejects`` has a row per rejected file, with the file's position (from 1) as ``source_row``.
    """

    n_packed: int = 0
    n_bytes: int = 0
    rejects: list[dict[str, object]] = field(default_factory=list)


def text_files(sources: Sequence[Path]) -> dict[Path, str]:
    """Return {file: name} for each given file, and for each ``.txt`` file in a given directory.

    Files in subdirectories, and files that end in ``.TXT``, are included. Each file occurs once. A
    directory's files are sorted. A file's name is a relative path. For the directory ``letters`` or
    the file ``letters/anna.txt``, names start with ``letters/``. If the directories have different
    parents, names start below the closest directory that contains all of them.

    Raises:
        BadInput: a path does not exist, or a directory has no ``.txt`` file.
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
        # Make paths absolute, so that the directory "." has a name, but don't follow links.
        top = os.path.abspath(source if source.is_dir() else source.parent)
        tops.add(os.path.dirname(top))
        for path in texts:
            files.setdefault(os.path.realpath(path), path)
    start = os.path.commonpath(tops)
    return {path: terminal(os.path.relpath(path, start)) for path in files.values()}


def source_kind(names: Collection[str]) -> str:
    """Return whether the source of each document is its `folder` or its `file`.

    The source is the file if there are at most a hundred files, all in the same folder.

    >>> source_kind(["letters/a.txt", "letters/b.txt"]), source_kind(["x/a.txt", "y/b.txt"])
    ('file', 'folder')
    """
    folders = {os.path.dirname(name) for name in names}
    return "folder" if len(folders) > 1 or len(names) > _MOST_FILE_SOURCES else "file"


def pack_files(store: Store, files: Mapping[Path, str], out: Path, run_id: str) -> Packed:
    """Write each file as a document of the shard ``out``, in the order given.

    ``files`` is the result of ``text_files``. Each record has the file's name in ``meta.file``, and
    its source in ``meta.pile_set_name``. ``source_kind`` says what the source is.

    A file is rejected if it can't be read, isn't UTF-8 or has only white space. It is also rejected
    if more than a quarter of its characters are NUL, as in UTF-16. Each rejected file gets a row in
    table ``reject``, with the shard's name as ``subject``. A byte order mark is dropped. The shard
    is written completely or not at all, and replaces an earlier file. A file must fit in memory.

    Raises:
        BadInput: ``out`` does not end with ``.jsonl.zst``, no file is usable, or ``out`` can't be
            written.
    """
    if not out.name.endswith(_SUFFIX):
        raise BadInput(f"--out {out}", f"its name does not end with {_SUFFIX}")
    packed = Packed()
    with disk_problems(out):
        write_jsonl_zst(out, _records(files, packed))
    key = {"stage": "pack", "subject": terminal(out.name)}
    rows = [{**key, **row, "run_id": run_id} for row in packed.rejects]
    store.replace("reject", rows, key, run_id)
    return packed


def _records(files: Mapping[Path, str], packed: Packed) -> Iterator[dict[str, object]]:
    by_folder = source_kind(files.values()) == "folder"
    for position, (file, name) in enumerate(files.items(), start=1):
        text, reason, excerpt = "", "", ""
        try:
            data = content(file)
            excerpt = data[:_EXCERPT_BYTES].decode("utf-8", "backslashreplace")
            text = data.decode("utf-8-sig")
            reason = "" if text.strip() else "holds only white space"
            if 4 * text.count("\0") > len(text):
                reason = "more than a quarter of its characters are NUL"
        except OSError as e:
            reason = e.strerror or "can't be read"
        except UnicodeError as e:
            reason = f"not UTF-8: {e}"
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
        raise BadInput("texts", f"no file can be used; the first: {first}", _FIX)
