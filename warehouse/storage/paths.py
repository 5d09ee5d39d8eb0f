"""Names made parts of paths, and paths that stay where they belong.

Names of corpora, benchmarks, models and runs come from files and servers; none of them leads out of
its directory. Nor does a link in a warehouse that somebody else made.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from plumbline.warehouse.errors import BadInput

#: What the usual file systems take, in bytes.
_LONGEST = 255


def segment(name: str, before: str = "", after: str = "") -> str:
    """A name as one part of a path, between two fixed texts; different names stay different.

    Raises ``BadInput`` for names that are longer than a file's may be, are not Unicode, or would
    mean another directory.

    >>> segment("../a=b", "corpus=")
    'corpus=..%2Fa%3Db'
    >>> segment("..")
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.BadInput: name '..': can't name a file (choose another name)
    """
    fix = "choose another name"
    try:
        part = f"{before}{quote(name, safe='')}{after}"
    except UnicodeEncodeError as e:
        raise BadInput(f"name {name[:40]!r}", "is not Unicode", fix) from e
    if part in ("", ".", ".."):
        raise BadInput(f"name {name!r}", "can't name a file", fix)
    if len(part) > _LONGEST:
        problem = f"is too long to name a file, {len(part)} bytes of {_LONGEST} as it is written"
        raise BadInput(f"name {name[:40]!r}...", problem, fix)
    return part


def unlinked(root: Path, path: Path) -> Path:
    """``path``, which is under ``root``, if no symbolic link is on the way from there.

    What replaces or removes it would else do that somewhere else. Raises ``BadInput`` for a link.

    >>> unlinked(Path("/"), Path("/nowhere/at/all")).name
    'all'
    """
    try:
        is_link = path.resolve() != root.resolve() / path.relative_to(root)
    except (OSError, RuntimeError):  # links in a circle
        is_link = True
    if is_link:
        what = f"warehouse {root}"
        problem = f"{path.relative_to(root)} is a link or below one, and is not written through it"
        raise BadInput(what, problem, "put the directory itself in its place")
    return path
