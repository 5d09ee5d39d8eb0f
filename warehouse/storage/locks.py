"""Claims on pieces of work by files: any number of workers share a directory, without a server.

A claim is a file that is made in one step and touched every few seconds while its holder works. A
claim whose process is gone (on this host), or that has not been touched for ``EXPIRES_S`` (on any),
is abandoned, and whoever comes next takes it over. Claims only keep workers from doing the same
work twice: what is done must be published so that doing it twice changes nothing.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from plumbline.warehouse.errors import UsageProblem, disk_problems

#: Seconds without a touch after which a claim from another host is abandoned.
EXPIRES_S = 60.0
_WAIT_S = 0.2


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Try to claim ``path``; true inside if it is ours, and released at the end.

    Without the directory of ``path`` there is nothing to claim: false.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.claim"
    >>> with claimed(path) as one, claimed(path) as two:
    ...     one, two
    (True, False)
    >>> path.exists()
    False
    """
    mark = _take(path)
    if mark is None:
        yield False
        return
    done = threading.Event()
    beat = threading.Thread(target=_touch, args=(path, done), daemon=True)
    beat.start()
    try:
        yield True
    finally:
        done.set()
        beat.join()
        if _read(path) == mark:
            path.unlink(missing_ok=True)


@contextmanager
def claimed_in_turn(path: Path) -> Iterator[None]:
    """Claim ``path`` after all who hold it before; its directory must stay."""
    while True:
        with claimed(path) as mine:
            if mine:
                yield
                return
        time.sleep(_WAIT_S)


@contextmanager
def sole(path: Path, place: str, fix: str = "wait for its end") -> Iterator[None]:
    """Claim ``path`` for the block; its directory is made where there is none.

    Raises ``UsageProblem`` naming ``place`` and the process that holds it, ``BadInput`` for a disk
    that can't be written.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.claim"
    >>> with sole(path, "model m"):
    ...     try:
    ...         with sole(path, "model m"):
    ...             pass
    ...     except UsageProblem as e:
    ...         str(e).startswith("model m: another command writes to it: process")
    True
    """
    with ExitStack() as held:
        with disk_problems(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
            is_mine = held.enter_context(claimed(path))
        if not is_mine:
            raise UsageProblem(place, f"another command writes to it: {holder(path)}", fix)
        yield


def holder(path: Path) -> str:
    """Who holds a claim, for a message; where nobody does any more, ``a process that has ended``.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.claim"
    >>> with claimed(path):
    ...     holder(path) == f"process {os.getpid()} on {socket.gethostname()}"
    True
    >>> holder(path)
    'a process that has ended'
    """
    parts = (_read(path) or "").split()
    return f"process {parts[1]} on {parts[0]}" if len(parts) == 3 else "a process that has ended"


def _touch(path: Path, done: threading.Event) -> None:
    while not done.wait(EXPIRES_S / 6):
        with suppress(OSError):  # taken over while this process was stopped
            os.utime(path)


def _take(path: Path) -> str | None:
    """Make the claim's file; its text, or None when it is another's."""
    mark = f"{socket.gethostname()} {os.getpid()} {uuid.uuid4().hex}"
    for _ in range(2):
        try:
            _make(path, mark)
            return mark
        except FileNotFoundError:
            return None
        except FileExistsError:
            found = _read(path)
            if found is None or not _is_abandoned(path, found):
                return None
            _retire(path, found)
    return None


def _make(path: Path, mark: str) -> None:
    with path.open("x", encoding="utf-8") as file:
        try:
            file.write(mark)
            file.flush()
        except OSError:  # a full disk: an empty claim is nobody's and would hold others up
            path.unlink(missing_ok=True)
            raise


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None


def _is_abandoned(path: Path, text: str) -> bool:
    parts = text.split()
    if len(parts) == 3 and parts[0] == socket.gethostname() and not _is_alive(int(parts[1])):
        return True
    try:
        return time.time() - path.stat().st_mtime > EXPIRES_S
    except OSError:
        return False


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:  # a dead child that its parent has not asked after yet still has its number (Linux)
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state != "Z"


def _retire(path: Path, text: str) -> None:
    """Take an abandoned claim away, unless another worker has done so and made its own."""
    aside = path.with_name(f"{uuid.uuid4().hex}.retired")
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return
    if _read(aside) != text:
        with suppress(OSError):
            os.link(aside, path)
    aside.unlink(missing_ok=True)
