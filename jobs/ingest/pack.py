"""Text files as one shard: each file is a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.shards import write_jsonl_zst
from plumbline.warehouse.text.escape import terminal

Row = dict[str, object]
_SUFFIX = ".jsonl.zst"
_EXCERPT_BYTES = 120


@dataclass
class Packed:
    """What became of the files: files in = ``n_packed`` + rejected.

    ``n_bytes`` are bytes of text. ``rejects`` are rows of ``reject`` without ``run_id``, their
    ``source_row`` the file's place among all, from 1.
    """

    n_files: int
    n_packed: int = 0
    n_bytes: int = 0
    rejects: list[Row] = field(default_factory=list)


def text_files(sources: Sequence[Path]) -> list[Path]:
    """Files as given, and of directories every ``.txt`` in and below them, sorted; each once.

    Raises:
        BadInput: a path that is not there, or a directory without a ``.txt``.

    >>> text_files([Path("nowhere")])
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.BadInput: texts nowhere: no such file or directory (check the path)
    """
    found: dict[Path, None] = {}
    for source in sources:
        if not source.exists():
            raise BadInput(f"texts {source}", "no such file or directory", "check the path")
        inside = sorted(source.rglob("*.txt")) if source.is_dir() else [source]
        files = [path for path in inside if path.is_file()]
        if not files:
            raise BadInput(f"texts {source}", "holds no .txt file", "name the files themselves")
        found.update(dict.fromkeys(files))
    return list(found)


def pack(files: Sequence[Path], out: Path) -> Packed:
    """Write each file as a document of the shard ``out``, in the order given.

    Rejected: what can't be read, is not UTF-8 (a byte order mark is dropped), or holds white space
    alone. The shard appears whole or not at all, in place of an earlier one. A file is held in
    memory while it is packed.

    Raises:
        BadInput: ``out`` does not end with ``.jsonl.zst``, no file is usable, or ``out`` can't be
            written.
    """
    if not out.name.endswith(_SUFFIX):
        raise BadInput(f"--out {out}", f"its name does not end with {_SUFFIX}")
    packed = Packed(len(files))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_jsonl_zst(out, _texts(files, out.name, packed))
    except OSError as e:
        raise BadInput(f"--out {out}", f"can't be written: {e.strerror or e}") from e
    finally:
        out.with_name(f"_{out.name}.tmp").unlink(missing_ok=True)
    return packed


def _texts(files: Sequence[Path], subject: str, packed: Packed) -> Iterator[str]:
    for place, file in enumerate(files, start=1):
        text, reason, excerpt = _read(file)
        if reason:
            packed.rejects.append(
                {
                    "stage": "pack",
                    "subject": subject,
                    "source_file": terminal(str(file)),
                    "source_row": place,
                    "reason": reason,
                    "excerpt": terminal(excerpt),
                }
            )
            continue
        packed.n_packed += 1
        packed.n_bytes += len(text.encode())
        yield text
    if not packed.n_packed:
        first = packed.rejects[0]["reason"] if packed.rejects else "none given"
        raise BadInput("texts", f"no file can be used; the first: {first}", "save them as UTF-8")


def _read(file: Path) -> tuple[str, str, str]:
    """The text of a file, or the reason why there is none and how it begins."""
    try:
        content = file.read_bytes()
    except OSError as e:
        return "", e.strerror or "can't be read", ""
    start = content[:_EXCERPT_BYTES].decode("utf-8", "backslashreplace")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        return "", f"invalid UTF-8 at byte {e.start}: {e.reason}", start
    return (text, "", "") if text.strip() else ("", "holds white space alone", start)
