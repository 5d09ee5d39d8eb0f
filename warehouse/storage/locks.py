"""Locks on files: any number of processes share a directory without a server.

The operating system keeps the locks (``flock``, through ``filelock``): a process holds one until it
releases it or ends, in whatever way. The lock file names its holder, for messages only.

On NFS the server keeps the locks, which then work between machines. It frees the lock of a crashed
machine after the lease time of NFSv4 (90 s by default); with NFSv3, maybe only when that machine is
up again. A file system without ``flock`` (Lustre mounted without that option) raises ``BadInput``.
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


class NoLocks(BadInput):
    """A file system without locks."""


@contextmanager
def claimed(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Try to lock the file ``path`` for the block; yields whether this process holds the lock.

    With ``wait``, waits until the lock is free. A missing directory is created. Raises ``OSError``
    for a disk that can't be written, ``BadInput`` for one without locks.

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
        with suppress(OSError):  # a full disk; the lock itself takes no space
            path.write_text(f"process {os.getpid()} on {socket.gethostname()}", encoding="utf-8")
        yield True
    finally:
        # Before the release: a process waiting for this file notices, and makes a new one.
        path.unlink(missing_ok=True)
        lock.release()


@contextmanager
def sole(path: Path, what: str, fix: str = "wait until it ends") -> Iterator[None]:
    """Lock the file ``path`` for the block.

    Raises ``UsageProblem`` naming ``what`` and the process that holds it, ``BadInput`` for a disk
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
            raise UsageProblem(what, f"another command writes to it: {holder(path)}", fix)
        yield


def holder(path: Path) -> str:
    """Which process holds a lock, for a message; ``a process that has ended`` if it is free.

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
                raise NoLocks(where, "its file system has no file locks", fix) from e
            if e.errno != errno.ESTALE:  # NFS: another machine has just removed the file
                raise
