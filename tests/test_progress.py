"""Steps say how far they are: lines where no terminal is, a bar on one."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.jobs.association.associations import associate
from plumbline.jobs.counting import merge as pairs
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.warehouse.storage.store import Store
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


#: What steps reported: name, number done, total.
Shown = list[tuple[str, int, int]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """Everything that steps with a count report from now on, in order."""
    reported: Shown = []
    real = module._Step.update

    def update(step: module._Step, done: int, n: int, /, note: str = "") -> None:
        reported.append((step.what, done, n))
        real(step, done, n, note=note)

    monkeypatch.setattr(module._Step, "update", update)
    return reported


def totals(shown: Shown) -> dict[str, int]:
    """The total of each step, in order; each was reported from 0 up to its total, and once."""
    found: dict[str, list[tuple[int, int]]] = {}
    last = ""
    for what, done, n in shown:
        assert what == last or what not in found, f"{what} was shown before {last}"
        found.setdefault(what, []).append((done, n))
        last = what
    for what, counts in found.items():
        done = [n for n, _ in counts]
        (n_all,) = {n for _, n in counts}
        assert done == sorted(done) and done[-1] == n_all, (what, counts)
    return {what: counts[0][1] for what, counts in found.items()}


def shards_of(directory: Path, n: int) -> list[Path]:
    """n shards with the same pairs of words."""
    texts = [f'{{"text": "she drinks tea with him, number{k}"}}\n' for k in range(50)]
    paths = [directory / f"{number}.jsonl" for number in range(n)]
    for number, path in enumerate(paths):
        path.write_text("".join(texts) + f'{{"text": "{number}"}}\n')
    return paths


def test_counting_merging_and_associating_are_steps_of_their_own(
    store: Store, tmp_path: Path, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With so little memory that pairs are sorted in several runs and summed in several ranges."""
    monkeypatch.setattr(pairs, "_ROW_BYTES", 1 << 23)
    count_corpus(store, "c", shards_of(tmp_path, 20))
    associate(store, "c")
    found = totals(shown)
    assert list(found) == [
        "count c",
        "merge pairs of c: sort",
        "merge pairs of c: sum",
        "associations of c",
        "deltas of c",
        "bounds of c",
    ]
    # The same pairs in each run, of at least 128 rows.
    n_pairs = store.read("pair_count", corpus="c").num_rows
    assert found["merge pairs of c: sum"] > n_pairs > 100
    assert len([1 for what, *_ in shown if what == "merge pairs of c: sum"]) > 2
    targets = {row["target"] for row in store.read("word_association", corpus="c").to_pylist()}
    assert found["count c"] == 20 and found["associations of c"] >= len(targets) == 2
