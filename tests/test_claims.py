"""Locks on files: one holder at a time, and the locks of dead holders are free."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from filelock import FileLock

from plumbline.eval_workers.models.scoring_contract import TextScore
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.steps import step as chunks
from plumbline.warehouse.steps.step import Chunk, ChunkPlan
from plumbline.warehouse.storage.locks import claimed, holder, sole
from tests.conftest import REPOSITORY


def test_of_many_one_holds_a_claim(tmp_path: Path) -> None:
    path, held, most = tmp_path / "a.claim", [0], [0]
    start, lock = threading.Barrier(8), threading.Lock()
    wins: list[int] = []

    def work(number: int) -> None:
        start.wait()
        with claimed(path) as mine:
            if mine:
                with lock:
                    held[0] += 1
                    most[0] = max(most[0], held[0])
                wins.append(number)
                time.sleep(0.05)
                with lock:
                    held[0] -= 1

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wins and most[0] == 1
    assert not list(tmp_path.iterdir())


def test_each_gets_its_turn(tmp_path: Path) -> None:
    path, order = tmp_path / "a.claim", []

    def work(number: int) -> None:
        with claimed(path, wait=True):
            order.append(number)
            time.sleep(0.01)
            order.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert order[::2] == order[1::2] and sorted(order[::2]) == [0, 1, 2, 3]


_HOLDER = """
import sys
from pathlib import Path
from plumbline.warehouse.storage.locks import claimed
with claimed(Path(sys.argv[1])) as mine:
    print(mine, flush=True)
    sys.stdin.read()
"""


@contextmanager
def _held_elsewhere(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    command = [sys.executable, "-c", _HOLDER, str(path)]
    pipe = subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "True\n"
        yield other
        other.kill()


def test_a_killed_process_loses_its_lock_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.claim"
    with _held_elsewhere(path) as other:
        with claimed(path) as mine:
            assert not mine
        assert holder(path) == f"process {other.pid} on {socket.gethostname()}"
        other.kill()
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)  # dead, but still in the table
        with claimed(path) as mine:
            assert mine and holder(path).startswith(f"process {os.getpid()} on ")
    assert not list(tmp_path.iterdir())


def test_a_live_process_keeps_its_lock_whatever_its_file_says(tmp_path: Path) -> None:
    """Neither an old time, nor an empty file, nor a stopped process frees it."""
    path = tmp_path / "a.claim"
    with _held_elsewhere(path) as other:
        other.send_signal(signal.SIGSTOP)
        path.write_text("")
        os.utime(path, (0, 0))
        with claimed(path) as mine:
            assert not mine
        with pytest.raises(UsageProblem, match=r"^model m: another command"), sole(path, "model m"):
            pass


def test_a_child_process_does_not_keep_its_parents_lock(tmp_path: Path) -> None:
    path = tmp_path / "a.claim"
    with claimed(path):
        forked = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        forked.start()
        started = subprocess.Popen(["sleep", "60"])
    with claimed(path) as mine:
        assert mine
    for child in (forked, started):
        child.kill()
    forked.join()
    started.wait()


def test_a_full_disk_does_not_keep_a_lock_from_being_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "a.claim"
    monkeypatch.setattr(Path, "write_text", refused)
    with claimed(path) as mine, claimed(path) as second:
        assert mine and not second


def test_a_file_removed_by_another_machine_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acquire, errors = FileLock.acquire, [OSError(errno.ESTALE, "Stale file handle")]

    def stale_once(self: FileLock, **options: bool) -> object:
        if errors:
            raise errors.pop()
        return acquire(self, **options)

    monkeypatch.setattr(FileLock, "acquire", stale_once)
    with claimed(tmp_path / "a.claim") as mine:
        assert mine and not errors


def test_chunks_that_were_published_are_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker may remove their directory just before this one locks a chunk."""

    directory = tmp_path / "work" / "benchmark"
    directory.mkdir(parents=True)

    def late(path: Path) -> AbstractContextManager[bool]:
        directory.rmdir()
        return claimed(path)

    def compute(texts: Sequence[str]) -> Sequence[TextScore]:
        raise AssertionError(f"computes {texts}")

    monkeypatch.setattr(chunks, "claimed", late)
    ChunkPlan.of([Chunk(["text"], 1)], directory, TextScore).work(compute, lambda n_left: None)
    assert not directory.exists() and not list(tmp_path.rglob("*.claim"))
