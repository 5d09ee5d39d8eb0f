"""Steps say how far they are: lines where no terminal is, a bar on one."""

from __future__ import annotations

import io
import sys
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


def test_a_short_step_prints_nothing(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("count", "documents") as update:
        update(1, 2)
        clock.now = 4.9
    assert lines(capsys) == []


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


def test_a_rate_that_is_given_is_shown(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("sample", "samples") as update:
        clock.now = 60
        update(8, 8, 2.5)
    assert lines(capsys) == ["sample: 8 of 8 samples, 2.5 samples/s, 60 s"]


def test_a_step_without_a_count_says_how_long_it_took_also_when_it_fails(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="broken"), progress("report"):
        clock.now = 7
        raise ValueError("broken")
    assert lines(capsys) == ["report: 7 s"]


def test_of_nested_steps_the_outer_one_does_not_repeat_the_inner_one(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress("train m"):
        with progress("steps", "steps") as update:
            clock.now = 50
            update(2, 2)
        clock.now = 51
    assert lines(capsys) == ["steps: 2 of 2 steps, 50 s"]


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


def test_on_a_terminal_there_is_a_bar_and_the_last_line(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with progress("train [m]", "steps") as update:
        update(0, 50)
        clock.now = 10
        update(25, 50, note="loss 1.5")
    shown = screen.getvalue()
    assert "25/50" in shown and "loss 1.5" in shown
    assert "train [m]: 25 of 50 steps, 2.5 steps/s, loss 1.5, 10 s" in shown.splitlines()[-1]
