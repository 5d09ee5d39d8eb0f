"""Claims by files: one holder at a time, and the work of dead holders is taken over."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from plumbline.warehouse.storage import locks as claims
from plumbline.warehouse.storage.locks import claimed, claimed_in_turn


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
        with claimed_in_turn(path):
            order.append(number)
            time.sleep(0.01)
            order.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert order[::2] == order[1::2] and sorted(order[::2]) == [0, 1, 2, 3]


def test_a_dead_process_loses_its_claim_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.claim"
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    path.write_text(f"{socket.gethostname()} {child.pid} 0")
    with claimed(path) as mine:
        assert not mine
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, but not asked after
    with claimed(path) as mine:
        assert mine
    child.wait()
    path.write_text(f"{socket.gethostname()} {child.pid} 0")
    with claimed(path) as mine:
        assert mine
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["another-host {pid} 0", "", "half"])
def test_other_claims_are_held_until_they_expire(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.claim"
    text = text.format(pid=os.getpid())
    path.write_text(text)
    with claimed(path) as mine:
        assert not mine
    assert path.read_text() == text
    past = time.time() - claims.EXPIRES_S - 5
    os.utime(path, (past, past))
    with claimed(path) as mine:
        assert mine


def test_a_holder_keeps_its_claim_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "EXPIRES_S", 0.3)
    monkeypatch.setattr(claims, "_is_alive", lambda pid: True)
    path = tmp_path / "a.claim"
    with claimed(path) as mine:
        time.sleep(0.9)
        with claimed(path) as second:
            assert mine and not second


def test_a_claim_made_meanwhile_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "a.claim"
    path.write_text("newer")
    claims._retire(path, "older")
    assert path.read_text() == "newer"
    assert [p.name for p in tmp_path.iterdir()] == ["a.claim"]


def test_without_its_directory_there_is_nothing_to_claim(tmp_path: Path) -> None:
    with claimed(tmp_path / "gone" / "a.claim") as mine:
        assert not mine
