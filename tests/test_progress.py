"""Steps say how far they are: lines in a file, one line on a terminal."""

import sys
import time

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


def test_a_long_step_prints_a_line_every_30_s(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress("outer"), progress("inner", "pairs") as update:
        for clock.now in (1, 29, 31, 60):
            update(1, 4)
        assert lines(capsys) == ["inner: 1 of 4 pairs, 31 s"]
    assert lines(capsys) == ["inner: 1 of 4 pairs, 60 s"], "outer took no longer"


def test_a_step_without_updates_prints_lines_too(
    clock: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TICK_S", 0.001)
    deadline = time.monotonic() + 60
    with progress("outer"), progress("inner"):
        clock.now = 31
        while not (said := lines(capsys)) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert said == ["inner: 31 s"]


def test_a_terminal_shows_one_line_again_and_again(
    clock: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "16")
    with progress("inner", "pairs") as update:
        for clock.now in (0.1, 1, 1.1):
            update(1, 4)
    assert capsys.readouterr().err == "\r\x1b[Kinner: 1 of 4 p\r\x1b[K"
