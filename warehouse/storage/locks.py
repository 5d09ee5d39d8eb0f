"""Locks on files: any number of processes share a directory without a server.

A lock belongs to the process that holds it, however long that works, and is free when the process
ends, however that happens: the operating system keeps it (``flock``, through ``filelock``). The
lock file names its holder, for messages only.

On NFS the server keeps the locks. They exclude processes of different machines; the lock of a
machine that crashed is free when the server notices, which takes the lease time of NFSv4 (90 s
unless set) and with NFSv3 may take until that machine is up again. A file system without ``flock``
(Lustre mounted without that option) raises ``BadInput``.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from plumbline.warehouse.errors import BadInput, UsageProblem, disk_problems

_WAIT_S = 0.2
_UNSUPPORTED = frozenset((errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK))


@contextmanager
def claimed(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Try to lock the file ``path``; true inside if it is ours, and released at the end.

    With ``wait`` it is ours once all who hold it have released it. Its directory is made if it does
    not exist. Raises ``OSError`` for a disk that can't be written, ``BadInput`` for one without
    locks.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.claim"
    >>> with claimed(path) as one, claimed(path) as two:
    ...     one, two
    (True, False)
    >>> path.exists()
    False
    """
    lock = FileLock(path, poll_interval=_WAIT_S, thread_local=False, fallback_to_soft=False)
    try:
        _acquire(lock, wait)
    except Timeout:
        yield False
        return
    try:
        with suppress(OSError):  # a full disk; the lock itself needs no room
            path.write_text(f"process {os.getpid()} on {socket.gethostname()}", encoding="utf-8")
        yield True
    finally:
        # While it is locked: who waits for this very file notices, and makes a new one.
        path.unlink(missing_ok=True)
        lock.release()


@contextmanager
def sole(path: Path, place: str, fix: str = "wait until it ends") -> Iterator[None]:
    """Lock the file ``path`` for the block.

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
            is_mine = held.enter_context(claimed(path))
        if not is_mine:
            raise UsageProblem(place, f"another command writes to it: {holder(path)}", fix)
        yield


def holder(path: Path) -> str:
    """Which process holds a lock, for a message; a free one's is ``a process that has ended``.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.claim"
    >>> with claimed(path):
    ...     holder(path) == f"process {os.getpid()} on {socket.gethostname()}"
    True
    >>> holder(path)
    'a process that has ended'
    """
    try:
        return path.read_text(encoding="utf-8") or "a process that has just begun"
    except OSError:
        return "a process that has ended"


def _acquire(lock: BaseFileLock, wait: bool) -> None:
    while True:
        try:
            lock.acquire(blocking=wait)
            return
        except OSError as e:
            if e.errno in _UNSUPPORTED:
                fix = "mount it with flock, or use a directory on another disk"
                where = str(Path(lock.lock_file).parent)
                raise BadInput(where, "its file system has no file locks", fix) from e
            if e.errno != errno.ESTALE:  # NFS: another machine has just removed the file
                raise
