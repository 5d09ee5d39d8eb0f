"""Mirror of a warehouse at a URI: only changed files are copied, then read back and compared.

The URI holds the published files under their local names, and a list of them with sizes and hashes,
which is written last. Unfinished work is not mirrored.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from plumbline.warehouse.errors import BadInput, UsageProblem, disk_problems
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.format import MARKER
from plumbline.warehouse.storage.paths import refuse_links, replacing
from plumbline.warehouse.storage.remote import Entry, Remote, shown, uri_problems

#: Called with files done and files to do.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Mirrored:
    """Numbers of files in the warehouse, files copied, their bytes, and files removed."""

    n_files: int
    n_copied: int
    n_bytes: int
    n_removed: int


def push(
    root: Path, uri: str, *, delete: bool = False, progress: Progress | None = None
) -> Mirrored:
    """Make the copy at a URI equal to a warehouse.

    Every file that is sent is read back and compared. After an interruption the same call sends
    what is missing; until then ``pull`` finds the earlier list, and refuses files that differ from
    it. With ``delete``, remote files that the warehouse lacks are removed.

    Raises ``UsageProblem`` for such files without ``delete``, ``BadInput`` for errors of the disk
    or server and for a file that is read back different.
    """
    remote = Remote(uri)
    with disk_problems(root):
        here = entries(root)
    with uri_problems(uri):
        before, sizes = remote.read_list() or {}, remote.sizes()
        gone = _not_in(before, here, delete, shown(uri), f"warehouse {root}")
        todo = [n for n in here if before.get(n) != here[n] or sizes.get(n) != here[n].size]
        sent = []
        for done, name in enumerate(todo):
            _report(progress, done, len(todo))
            is_there = sizes.get(name) == here[name].size and remote.entry(name) == here[name]
            if not is_there:
                _send(remote, root, name, here[name])
                sent.append(name)
        if todo or gone:
            remote.write_list(here)
        for name in gone:
            if name in sizes:
                remote.remove(name)
    return _summary(here, sent, gone)


def pull(
    uri: str, root: Path, *, delete: bool = False, progress: Progress | None = None
) -> Mirrored:
    """Make a warehouse equal to the copy at a URI; a missing directory is created.

    Files are fetched into ``_work`` and compared with the list; when all are complete they are
    moved into place, the warehouse's marker last. After an interruption the same call resumes. With
    ``delete``, files of the warehouse that the URI lacks are removed, such as those of local runs.

    Raises ``UsageProblem`` for such files without ``delete``, ``BadInput`` for a URI without a
    warehouse and for files that differ from the list.
    """
    remote = Remote(uri)
    with uri_problems(uri):
        there = remote.read_list()
    if there is None or MARKER not in there:
        fix = f"plumbline warehouse push {shown(uri)}"
        raise BadInput(shown(uri), "no warehouse was pushed there", fix)
    for name in there:
        _check_name(name, uri)
    with disk_problems(root):
        _refuse_foreign(root)
        here = entries(root)
        gone = _not_in(here, there, delete, f"warehouse {root}", shown(uri))
        todo = [n for n in there if here.get(n) != there[n]]
        if todo or gone:
            stage = refuse_links(root, root / "_work" / "pull")
            stage.mkdir(parents=True, exist_ok=True)
            _fetch_all(remote, stage, {n: there[n] for n in todo}, progress)
            _put_in_place(root, stage, {n: there[n] for n in todo}, gone)
    return _summary(there, todo, gone)


def entries(root: Path) -> dict[str, Entry]:
    """Published files of a warehouse by their path in it, the marker last; empty without one."""
    files = (f for t in TABLES for f in sorted((root / t).rglob("*")))
    found = {f.relative_to(root).as_posix(): f for f in files if _is_published(f)}
    if (root / MARKER).is_file():
        found[MARKER] = root / MARKER
    return {name: Entry.of_file(path) for name, path in found.items()}


def _refuse_foreign(root: Path) -> None:
    """Raise ``BadInput`` for a directory that is neither a warehouse nor an interrupted pull."""
    ours = {*TABLES, "_work"}
    if root.exists() and not (root / MARKER).exists():
        other = sorted(p.name for p in root.iterdir() if p.name not in ours)
        if other:
            problem = f"not a warehouse: it holds {other[0]}"
            raise BadInput(f"directory {root}", problem, "give another --warehouse")


def _is_published(path: Path) -> bool:
    return path.suffix == ".parquet" and path.is_file() and not path.is_symlink()


def _not_in(
    one: Iterable[str], other: Iterable[str], delete: bool, one_name: str, other_name: str
) -> list[str]:
    """Files of one side that the other lacks. Raises ``UsageProblem`` unless they may go."""
    missing = sorted(set(one) - set(other) - {MARKER})
    if missing and not delete:
        problem = f"holds {len(missing)} files that {other_name} lacks, first {missing[0]}"
        raise UsageProblem(one_name, problem, "--delete removes them; another place keeps both")
    return missing


def _send(remote: Remote, root: Path, name: str, entry: Entry) -> None:
    remote.send(root / name, name)
    if remote.entry(name) != entry:
        problem = "differs from the file sent: written meanwhile, or damaged on the way"
        raise BadInput(f"{shown(remote.uri)}/{name}", problem, "push again")


def _check_name(name: str, uri: str) -> None:
    """Raise ``BadInput`` for a name that can't be a file of a warehouse."""
    parts = PurePosixPath(name).parts
    is_file = len(parts) > 1 and parts[0] in TABLES and name.endswith(".parquet")
    if name != MARKER and (not is_file or ".." in parts or "\\" in name or "\0" in name):
        fix = "upgrade Plumbline, if a newer one pushed it"
        raise BadInput(shown(uri), f"lists {name!r}, which is not a file of a warehouse", fix)


def _fetch_all(
    remote: Remote, stage: Path, wanted: dict[str, Entry], progress: Progress | None
) -> None:
    """Fetch files to names that are their hashes, except those that an earlier call has fetched."""
    for done, (name, entry) in enumerate(wanted.items()):
        _report(progress, done, len(wanted))
        target = stage / entry.sha256
        if target.is_file() and Entry.of_file(target) == entry:
            continue
        with replacing(target) as temporary:
            with uri_problems(remote.uri):
                found = remote.fetch(name, temporary)
            if found != entry:
                problem = "differs from the list: pushed again meanwhile, or damaged"
                fix = "when no push is running, push once more, then pull"
                raise BadInput(f"{shown(remote.uri)}/{name}", problem, fix)


def _put_in_place(root: Path, stage: Path, wanted: dict[str, Entry], gone: list[str]) -> None:
    """Copy fetched files to their names; the marker is absent meanwhile, so nobody reads."""
    marker = stage / "marker"
    if MARKER in wanted:
        shutil.copyfile(stage / wanted[MARKER].sha256, marker)
        (root / MARKER).unlink(missing_ok=True)
    else:
        os.replace(root / MARKER, marker)
    for name, entry in wanted.items():
        if name != MARKER:
            target = refuse_links(root, root / name)
            with replacing(target) as temporary:  # a copy: two files may have one content
                shutil.copyfile(stage / entry.sha256, temporary)
    for name in gone:
        refuse_links(root, root / name).unlink(missing_ok=True)
    os.replace(marker, root / MARKER)
    shutil.rmtree(stage, ignore_errors=True)


def _report(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)


def _summary(files: dict[str, Entry], copied: list[str], gone: list[str]) -> Mirrored:
    n_bytes = sum(files[name].size for name in copied)
    return Mirrored(len(files), len(copied), n_bytes, len(gone))
