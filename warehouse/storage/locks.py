"""Locks: let only one command at a time write to a corpus, a benchmark, or a warehouse.

On a disk, the operating system manages locks (``flock``, through ``filelock``). A process holds a
lock until it releases the lock or ends. On NFS, the server manages locks. With NFSv4, the server
frees a crashed machine's locks after the lease time (90 s by default). With NFSv3, the server may
keep these locks until the machine is up again.

In an object store, a lock is a lease. The commit log has a token of the process that holds the
lease. If this process is suspended, the lease expires, and another command can take it. The newest
commit then has the other command's token, and commits of the first process are refused.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from plumbline.warehouse.errors import BadInput, Interrupted, UsageProblem, disk_problems
from plumbline.warehouse.paths import content, segment
from plumbline.warehouse.storage import log
from plumbline.warehouse.storage.log import Draft
from plumbline.warehouse.storage.place import Disk, Place
from plumbline.warehouse.storage.store import Store

#: Time after which a lease expires unless it is renewed.
LEASE = timedelta(minutes=5)
_POLL_S = 0.2
_PROCESS = re.compile(r"process (\d+) on (.+)$")


def this_process() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def lives(holder: str) -> bool | None:
    """Return whether the process named at the end of ``holder`` is still running.

    Return ``None`` for a process on another machine, and for a text that names no process.
    """
    process = _PROCESS.search(holder)
    if not process or process[2] != socket.gethostname():
        return None
    try:
        os.kill(int(process[1]), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


@contextmanager
def claimed(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Try to lock the file ``path`` during the block. Yield true if this process has the lock.

    With ``wait``, wait until the lock is free. A missing directory is created. Raises ``OSError``
    if the disk can't be written to or doesn't support locks.
    """
    lock = FileLock(path, poll_interval=_POLL_S, thread_local=False, fallback_to_soft=False)
    try:
        _acquire(lock, wait)
    except Timeout:
        yield False
        return
    try:
        with suppress(OSError):  # if the disk is full, the holder's name is missing
            path.write_text(this_process(), encoding="utf-8")
        yield True
    finally:
        # Remove the file before releasing the lock, so that a waiting process locks a new file.
        path.unlink(missing_ok=True)
        lock.release()


def _acquire(lock: BaseFileLock, wait: bool) -> None:
    while True:
        try:
            lock.acquire(blocking=wait)
            return
        except OSError as e:
            if e.errno != errno.ESTALE:  # NFS: another machine has just removed the file
                raise


@contextmanager
def sole(path: Path, what: str) -> Iterator[None]:
    """Lock the file ``path`` during the block.

    Raises ``UsageProblem`` if another process has the lock. The message begins with ``what`` and
    names that process. Raises ``BadInput`` if the disk can't be written to or can't lock files.
    """
    with ExitStack() as stack:
        with disk_problems(path.parent):
            is_locked_here = stack.enter_context(claimed(path))
        if not is_locked_here:
            raise _is_busy(what, holder(path))
        yield


def holder(path: Path) -> str:
    """Return which process holds a lock, as text for a message."""
    try:
        return content(path).decode(errors="replace") or "a process that has just begun"
    except OSError:
        return "a process that has ended"


def _is_busy(what: str, holder: str) -> UsageProblem:
    return UsageProblem(what, f"another command writes to it: {holder}", "wait until it ends")


def lock(store: Store, name: str, what: str) -> AbstractContextManager[None]:
    """Hold the lock ``name`` of a warehouse during the block. Raises the errors of ``sole``.

    On a disk, the lock is a file (see ``sole``). In an object store, it is a ``lease``.
    """
    if not isinstance(store.place, Disk):
        return lease(store.place, name, what)
    with disk_problems(store.root):
        path = store.work_directory("locks") / segment(name, after=".claim")
    return sole(path, what)


@contextmanager
def lease(place: Place, name: str, what: str) -> Iterator[None]:
    """Hold a lease during the block, while a thread renews it. Raises the errors of ``lock``."""
    token, ended = uuid.uuid4().hex, threading.Event()
    log.commit(place, lambda draft: _take(draft, name, token, what), "", f"lock {name}")
    log.HELD[str(place), name] = token

    def renew() -> None:
        while not ended.wait(LEASE.total_seconds() / 3):
            try:
                log.commit(place, lambda draft: _renew(draft, name, token), "", f"lock {name}")
            except log.LeaseLost:  # the block's next commit raises LeaseLost
                return
            except Exception:  # the server is down: try again before the lease expires
                continue

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        del log.HELD[str(place), name]
        with suppress(OSError, BadInput, Interrupted):  # store is down: the lease will expire
            log.commit(place, lambda draft: _release(draft, name, token), "", f"unlock {name}")


def _take(draft: Draft, name: str, token: str, what: str) -> None:
    lease = draft.leases.get(name)
    if lease and lease["token"] != token and _is_alive(lease):
        raise _is_busy(what, str(lease["holder"]))
    _renew(draft, name, token)


def _is_alive(lease: Mapping[str, object]) -> bool:
    """Return whether a lease is valid. It expires after ``LEASE``, or when its process has ended.

    A lease whose time is far in the future is also invalid, because some clock was wrong.
    """
    age = datetime.now(timezone.utc) - datetime.fromisoformat(str(lease["renewed"]))
    return abs(age) < LEASE and lives(str(lease["holder"])) is not False


def _renew(draft: Draft, name: str, token: str) -> None:
    """Set a lease's time to now. If the lease was lost, ``log.commit`` raises ``LeaseLost``."""
    now = datetime.now(timezone.utc).isoformat()
    draft.leases[name] = {"token": token, "holder": this_process(), "renewed": now}


def _release(draft: Draft, name: str, token: str) -> None:
    if draft.leases.get(name, {}).get("token") == token:
        del draft.leases[name]
