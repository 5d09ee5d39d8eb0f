"""Steps say how far they are: lines where no terminal is, a bar on one."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from plumbline.warehouse.text import progress as module
from plumbline.warehouse.text.progress import progress


class Clock:
    """A clock that stands still until it is moved."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "_clock", clock)
    return clock


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_the_last_line_holds_count_rate_note_and_time(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten were done before: the rate is that of the other thirty."""
    with progress("train \x1b[2Jm", "steps") as update:
        clock.now = 2
        update(10, 1040)
        clock.now = 12
        update(40, 1040, note="loss 1.5")
    assert lines(capsys) == [
        "train \\x1b[2Jm: 40 of 1,040 steps, 3.0 steps/s, loss 1.5, 12 s, about 333 s left"
    ]


def awaited(capsys: pytest.CaptureFixture[str], wanted: Callable[[str], bool]) -> None:
    """Wait until a line is printed; a minute is longer than any machine needs."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if any(map(wanted, lines(capsys))):
            return
        time.sleep(0.01)
    pytest.fail("no such line")


def test_a_long_step_prints_lines_while_it_runs_the_innermost_alone(
    clock: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVERY_S", 0.001)
    with progress("outer"):
        awaited(capsys, lambda line: line == "outer: 0 s")
        with progress("inner", "pairs") as update:
            lines(capsys)
            update(1, 4)
            clock.now = 30
            awaited(capsys, lambda line: line == "inner: 1 of 4 pairs, 30 s")
            assert all(line.startswith("inner") for line in lines(capsys))
