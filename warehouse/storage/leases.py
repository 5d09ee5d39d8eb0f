"""Locks of a warehouse: one command at a time writes a corpus, a benchmark, or all of it.

On a disk the operating system keeps them (``locks.py``). Where it can't, in an object store or on
a file system without file locks, a lock is a lease in the commit log itself: each commit of the
holder carries its token, and is refused if the newest state no longer has it. So a holder that was
suspended, and whose lease another command took meanwhile, can't publish anything any more.
"""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta, timezone

from plumbline.warehouse.errors import Interrupted, UsageProblem, disk_problems
from plumbline.warehouse.storage import log
from plumbline.warehouse.storage.locks import NoLocks, sole
from plumbline.warehouse.storage.log import Draft
from plumbline.warehouse.storage.paths import segment
from plumbline.warehouse.storage.place import Disk, Place
from plumbline.warehouse.storage.store import Store

#: How long a lease lasts that nobody renews.
LEASE = timedelta(minutes=5)


@contextmanager
def lock(store: Store, name: str, what: str, fix: str = "wait until it ends") -> Iterator[None]:
    """Hold a lock of a warehouse for the block.

    Raises ``UsageProblem`` that begins with ``what`` and names the holder, if there is one;
    ``BadInput`` for a disk that can't be written.

    >>> import tempfile
    >>> store = Store.open(tempfile.mkdtemp() + "/w")
    >>> with lock(store, "corpus novels", "corpus 'novels'"):
    ...     try:
    ...         with lock(store, "corpus novels", "corpus 'novels'"):
    ...             pass
    ...     except UsageProblem as e:
    ...         str(e).startswith("corpus 'novels': another command writes to it: process")
    True
    """
    with ExitStack() as held:
        if isinstance(store.place, Disk):
            with disk_problems(store.root):
                path = store.work_directory("locks") / segment(name, after=".claim")
            try:
                held.enter_context(sole(path, what, fix))
            except NoLocks:
                held.enter_context(lease(store.place, name, what, fix))
        else:
            held.enter_context(lease(store.place, name, what, fix))
        yield


@contextmanager
def lease(place: Place, name: str, what: str, fix: str) -> Iterator[None]:
    """Hold a lease for the block, renewed by a thread; see ``lock``."""
    token, ended = uuid.uuid4().hex, threading.Event()
    log.commit(place, lambda draft: _take(draft, name, token, what, fix), "", f"lock {name}")
    log.HELD[str(place), name] = token

    def renew() -> None:
        while not ended.wait(LEASE.total_seconds() / 3):
            try:
                log.commit(place, lambda draft: _renew(draft, name, token), "", f"lock {name}")
            except Interrupted:  # taken by another command: the next commit says so
                return
            except Exception:  # the server is away: it lasts a while without
                continue

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        del log.HELD[str(place), name]
        log.commit(place, lambda draft: _release(draft, name, token), "", f"unlock {name}")


def _take(draft: Draft, name: str, token: str, what: str, fix: str) -> None:
    found = draft.leases.get(name)
    if found and found["token"] != token and _is_alive(str(found["renewed"])):
        raise UsageProblem(what, f"another command writes to it: {found['holder']}", fix)
    _renew(draft, name, token, is_new=True)


def _is_alive(renewed: str) -> bool:
    """Whether a lease was renewed lately; one of a clock that is far ahead is not."""
    try:
        age = datetime.now(timezone.utc) - datetime.fromisoformat(renewed)
    except (ValueError, TypeError):
        return False
    return abs(age) < LEASE


def _renew(draft: Draft, name: str, token: str, *, is_new: bool = False) -> None:
    if not is_new:
        log.refuse_lost(draft, name, token)
    holder = f"process {os.getpid()} on {socket.gethostname()}"
    now = datetime.now(timezone.utc).isoformat()
    draft.leases[name] = {"token": token, "holder": holder, "renewed": now}


def _release(draft: Draft, name: str, token: str) -> None:
    if draft.leases.get(name, {}).get("token") == token:
        del draft.leases[name]
