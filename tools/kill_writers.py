"""Kill processes that write, compact and restore a warehouse; its tables must stay correct.

A developer's tool, see docs/warehouse.md. Three writers publish counters, each in two tables at
once. Meanwhile `warehouse compact` merges and removes files, and `warehouse restore` goes back to
earlier versions. Every few commits one of the five is killed, at a random moment or before a random
file operation, and started again. The tables of each version must be what its commit says: a number
that was published or a state that was restored, the same in both tables. This also holds for
earlier versions that must still be kept. A writer reports each published number on a pipe, and that
number's commit must exist. The tool runs until each writer has published, compaction has merged and
removed files, and a state was restored.

    python tools/kill_writers.py --kills 300 --seed 1 --directory /tmp/killed

With --directory, the tool can be stopped at any time and resumed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from plumbline.pipelines.command.base import execute  # noqa: E402
from plumbline.pipelines.commands.warehouse import Compact, Restore  # noqa: E402
from plumbline.warehouse.errors import UsageProblem  # noqa: E402
from plumbline.warehouse.storage import compaction, log, place  # noqa: E402
from plumbline.warehouse.storage.check import check  # noqa: E402
from plumbline.warehouse.storage.compaction import compact, leftovers  # noqa: E402
from plumbline.warehouse.storage.store import Store  # noqa: E402

_UNITS, _N_ROWS = ("a", "b", "c"), 20
_COMPACTOR, _RESTORER = "compactor", "restorer"
_NAMES = (*_UNITS, _COMPACTOR, _RESTORER)
#: A kill comes at most this many commits, and then this many seconds, after the previous kill.
_COMMITS, _SPREAD_S = 8, 0.1
#: Every other kill comes before one of the next file operations of these kinds, at most this many.
#: Publishing in two tables takes about 30.
_N_OPERATIONS, _OPERATIONS = 40, ("link", "rename", "unlink", "fsync", "mkdir", "rmdir")
#: If no commit comes for this long, something hangs.
_WAIT_S = 300
#: A writer rests at most this long between two numbers; compaction and restore five times as long.
_PAUSE_S = 0.05
#: Versions are kept this long, since what is read after a kill must still exist.
_KEPT_S = 60
#: A file that no version names is removed after 10 s.
compaction.UNFINISHED = timedelta(seconds=10)
#: A restore goes back at most this many versions.
_BACK = 20
#: Problems that a killed process may leave until the next compaction; the last is of a Delta log.
_LEFT = (
    "a file that no kept version names",
    "a file or partition that was not finished",
    "lacks the newest state of the table",
)
#: What the journal stores of a history, besides its states.
_KEPT = ("published", "n_restored", "n_merged", "n_removed")
#: The number of each unit in the tables.
State = dict[str, int]


def publish(store: Store, unit: str, number: int) -> None:
    """Publish a unit's number in all rows of two tables that aren't made from each other."""
    run_id = f"{unit}-{number}"
    words = [{"corpus": "c", "word": f"{unit}{i}", "n_word": number} for i in range(_N_ROWS)]
    planted = {"corpus": "c", "world": "straight", "word": unit, "word_class": "noun"}
    with store.transaction(run_id):
        store.publish("word_count", words, unit=unit, run_id=run_id)
        row = {**planted, "planted_delta_nats": float(number)}
        store.publish("planted_word", [row], unit=unit, run_id=run_id)


def state_of(now: Store) -> State:
    """Return the number of each unit; fail if rows, or the two tables, disagree."""
    found = {}
    for unit in _UNITS:
        rows = [r for r in now.read("word_count").to_pylist() if r["word"][0] == unit]
        values = {row["n_word"] for row in rows}
        assert (len(rows), len(values)) in ((_N_ROWS, 1), (0, 0)), f"{unit}: torn rows {rows}"
        planted = [r for r in now.read("planted_word").to_pylist() if r["word"] == unit]
        others = {int(r["planted_delta_nats"]) for r in planted}
        assert others == values, f"{unit}: {values} in one table, {others} in the other"
        found[unit] = max(values, default=0)
    return found


@dataclass
class History:
    """What the commits say: the state of each version, and each unit's newest published number."""

    states: dict[int, State] = field(default_factory=lambda: {0: dict.fromkeys(_UNITS, 0)})
    published: State = field(default_factory=lambda: dict.fromkeys(_UNITS, 0))
    n_restored: int = 0
    n_merged: int = 0
    n_removed: int = 0
    times: dict[int, datetime] = field(default_factory=dict)

    def follow(self, store: Store) -> None:
        """Read the commits since the last call, and compare the tables with each one's state."""
        newest = store.snapshot().version
        for version in range(max(self.states) + 1, newest + 1):
            commit = log.snapshot(store.place, version)
            state, (unit, _, number) = self.states[version - 1], commit.run_id.partition("-")
            if commit.about.startswith("restore "):
                state = self.states[int(commit.about.split()[1])]
                self.n_restored += 1
            elif unit in _UNITS:
                state = state | {unit: int(number)}
                self.published[unit] = max(self.published[unit], int(number))
            self.n_merged += commit.about.startswith("compact ")
            self.states[version], self.times[version] = state, commit.time
            self._compare(store, version)

    def look_back(self, store: Store, rng: random.Random) -> None:
        """Compare the tables of an earlier version that must still be kept."""
        since = datetime.now(timezone.utc) - timedelta(seconds=_KEPT_S / 2)
        if kept := [version for version, time in self.times.items() if time > since]:
            self._compare(store, rng.choice(kept))

    def _compare(self, store: Store, version: int) -> None:
        found = state_of(store.pinned(version))
        assert found == self.states[version], f"{version}: {found}, not {self.states[version]}"

    def all_worked(self) -> bool:
        """Return whether all writers published, files were merged and removed, and one restored."""
        done = (*self.published.values(), self.n_restored, self.n_merged, self.n_removed)
        return all(done)


class Doomed:
    """The module ``os``, but it kills the process before a file operation once SIGUSR1 has come."""

    def __init__(self) -> None:
        self._left = -1
        signal.signal(signal.SIGUSR1, self._doom)

    def _doom(self, *_: object) -> None:
        self._left = random.randint(1, _N_OPERATIONS)

    def __getattr__(self, name: str) -> Any:
        if name in _OPERATIONS:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return getattr(os, name)


class Worker:
    """A child process that writes one unit, compacts or restores, until it is killed."""

    def __init__(self, root: Path, name: str, number: int) -> None:
        self.acknowledged, self.is_there = number, True
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})  # until the child can take it
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                random.seed(os.getpid())
                place.os = Doomed()  # type: ignore[assignment,attr-defined]
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
                self._work(root, name, number, write)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(write)

    @staticmethod
    def _work(root: Path, name: str, number: int, write: int) -> None:
        store = Store.open(root)
        while True:
            if name in _UNITS:
                number += 1
                time.sleep(random.uniform(0, _PAUSE_S))
                publish(store, name, number)
                os.write(write, number.to_bytes(8, "little"))
                continue
            time.sleep(random.uniform(0, 5 * _PAUSE_S))
            if name == _COMPACTOR:
                done = execute(Compact(warehouse=root, keep_days=_KEPT_S / 86_400))
                number += int(str(done.rows[0]["n_files_removed"]))
                os.write(write, number.to_bytes(8, "little"))
            else:
                back = max(0, store.snapshot().version - random.randint(1, _BACK))
                with contextlib.suppress(UsageProblem):  # that version may be gone by now
                    execute(Restore(warehouse=root, version=back))

    def kill(self, how: signal.Signals = signal.SIGKILL) -> int:
        """Kill the worker, now or by SIGUSR1; return the last number that it reported."""
        os.kill(self.pid, how)
        status, self.is_there = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), False
        assert status == -signal.SIGKILL, f"ended by itself with {status}"
        last = self.heard()
        os.close(self._read)
        return last

    def heard(self) -> int:
        """Return the last number that the worker reported."""
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._read, 8 * 512):
                self.acknowledged = int.from_bytes(piece[-8:], "little")
        return self.acknowledged


@contextlib.contextmanager
def _stopped(workers: list[Worker]) -> Iterator[None]:
    """Stop all writers for the block; otherwise commits come faster than they are checked."""
    for worker in workers:
        os.kill(worker.pid, signal.SIGSTOP)
    yield
    for worker in workers:
        os.kill(worker.pid, signal.SIGCONT)


def _wait_for_commits(store: Store, after: int, rng: random.Random) -> None:
    """Wait for a random number of versions after one, and a little longer."""
    wanted, until = after + rng.randint(1, _COMMITS), time.monotonic() + _WAIT_S
    while store.snapshot().version < wanted:
        assert time.monotonic() < until, f"no {wanted - after} commits in {_WAIT_S} s"
        time.sleep(0.01)
    time.sleep(rng.uniform(0, _SPREAD_S))


def run(n_kills: int, seed: int, root: Path, journal: Path) -> str:
    """Kill ``n_kills`` times; return what happened. Raises ``AssertionError`` for any loss."""
    store, history = Store.open(root), History()
    kills: Counter[str] = Counter()
    if journal.exists():
        known = json.loads(journal.read_text())
        kills.update(known["kills"])
        kept = {int(version): state for version, state in known["states"].items()}
        history = History(kept, **{name: known[name] for name in _KEPT})
    history.follow(store)
    workers = {name: Worker(root, name, history.published.get(name, 0)) for name in _NAMES}
    try:
        while kills.total() < n_kills or not history.all_worked():
            rng = random.Random(f"{seed} {kills.total()}")
            _wait_for_commits(store, max(history.states), rng)
            name = rng.choice(_NAMES)
            heard = {unit: workers[unit].heard() for unit in _UNITS}
            last = workers[name].kill(rng.choice((signal.SIGKILL, signal.SIGUSR1)))
            kills[name] += 1
            with _stopped([worker for one, worker in workers.items() if one != name]):
                history.follow(store)
                history.look_back(store, rng)
            for unit in _UNITS:
                assert history.published[unit] >= heard[unit], f"{unit}: {heard[unit]} is lost"
            if name in _UNITS:
                assert history.published[name] in (last, last + 1), f"{name}: after {last}"
            history.n_removed += last if name == _COMPACTOR else 0
            workers[name] = Worker(root, name, history.published.get(name, 0))
            _note(journal, kills, history)
            if kills.total() % 50 == 0:
                print(f"{kills.total()} kills, version {max(history.states)}", flush=True)
    finally:
        for worker in workers.values():
            if worker.is_there:
                with contextlib.suppress(AssertionError):
                    worker.kill()
    history.follow(store)
    problems = _problems(store)
    assert not problems - set(_LEFT), problems
    n_left = len(leftovers(store))
    time.sleep(compaction.UNFINISHED.total_seconds())  # so that compact can remove all leftovers
    compact(store, "r", 0)
    assert not _problems(store), _problems(store)
    assert state_of(store) == history.states[max(history.states)]
    history.states[store.snapshot().version] = state_of(store)  # the versions between are gone now
    _note(journal, kills, history)
    by_kind = ", ".join(f"{name} {kills[name]}" for name in _NAMES)
    ended = Counter(row["status"] for row in store.read("run").to_pylist())
    return (
        f"{kills.total()} kills ({by_kind}), {max(history.states)} commits, "
        f"{history.n_restored} restores, {history.n_merged} merges, {history.n_removed} files "
        f"removed, runs {dict(ended)}, {n_left} files left"
    )


def _note(journal: Path, kills: Counter[str], history: History) -> None:
    kept = dict(sorted(history.states.items())[-1000:])
    after = {"kills": kills, "states": kept} | {name: getattr(history, name) for name in _KEPT}
    journal.with_suffix(".new").write_text(json.dumps(after))
    journal.with_suffix(".new").replace(journal)


def _problems(store: Store) -> set[str]:
    """Return what `warehouse check` finds."""
    return {p["problem"] for p in check(store)}


def main() -> None:
    """Print what happened; raise ``AssertionError`` if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--directory", help="where the warehouse is kept; resumed if it exists")
    options, started = parser.parse_args(), time.monotonic()
    with contextlib.ExitStack() as held:
        here = Path(options.directory or held.enter_context(tempfile.TemporaryDirectory()))
        here.mkdir(parents=True, exist_ok=True)
        print(f"{run(options.kills, options.seed, here / 'w', here / 'kills.json')}, tables whole")
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
