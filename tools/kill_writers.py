"""Kill processes that write, compact, restore and read one warehouse: the log decides what is so.

A developer's tool, see docs/faults.md. Three writers publish counters, each in two tables at once;
beside them `warehouse compact` merges and removes, and `warehouse restore` goes back to an earlier
version. One of the five is killed at a random moment and started again, time after time. After each
kill the tables must be what the commits since the last one say: a number that was published, a
state that was restored, and the same in both tables. A writer says on a pipe which number it has
published; that number's commit must be there.

    python tools/kill_writers.py --kills 300 --seed 1 --directory /tmp/killed

With a directory it can be stopped at any time and goes on there.
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
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from plumbline.pipelines.command.base import execute  # noqa: E402
from plumbline.pipelines.commands.warehouse import Compact, Restore  # noqa: E402
from plumbline.warehouse.errors import UsageProblem  # noqa: E402
from plumbline.warehouse.storage import log  # noqa: E402
from plumbline.warehouse.storage.check import check  # noqa: E402
from plumbline.warehouse.storage.compaction import compact, leftovers  # noqa: E402
from plumbline.warehouse.storage.store import Store  # noqa: E402

_UNITS, _N_ROWS = ("a", "b", "c"), 20
_COMPACTOR, _RESTORER = "compactor", "restorer"
_NAMES = (*_UNITS, _COMPACTOR, _RESTORER)
#: A kill comes this long after the one before, at most.
_SPREAD_S = 0.5
#: A writer rests this long between two numbers, at most; what compacts and restores five times.
_PAUSE_S = 0.05
#: Versions are kept this long: what is read after a kill must still be there.
_KEPT_S = 60
#: A restore goes back so many versions, at most.
_BACK = 20
#: Problems that a killed process may leave until the next compaction; the last is of a Delta log.
_LEFT = (
    "a file that no version to keep names",
    "a file or partition that was not finished",
    "ends before the newest state of the table",
)
#: The number of each unit, as the tables have it.
State = dict[str, int]


def publish(store: Store, unit: str, number: int) -> None:
    """Publish a number under a unit, in all rows of two tables."""
    run_id = f"{unit}-{number}"
    words = [{"corpus": "c", "word": f"{unit}{i}", "n_word": number} for i in range(_N_ROWS)]
    shared = {"corpus": "c", "contrast": "she/he", "word": unit, "n_word": number}
    delta = {**shared, "n_pair_f": 1, "n_pair_m": 1, "n_defined": 1, "delta_nats": 0.0}
    with store.together(run_id):
        store.publish("word_count", words, unit=unit, run_id=run_id)
        store.publish("word_delta", [delta], unit=unit, run_id=run_id)


def state_of(now: Store) -> State:
    """By unit its number; fails if rows, or the two tables, differ."""
    found = {}
    for unit in _UNITS:
        rows = [r for r in now.read("word_count").to_pylist() if r["word"][0] == unit]
        values = {row["n_word"] for row in rows}
        assert (len(rows), len(values)) in ((_N_ROWS, 1), (0, 0)), f"{unit}: torn rows {rows}"
        deltas = {r["n_word"] for r in now.read("word_delta").to_pylist() if r["word"] == unit}
        assert deltas == values, f"{unit}: {values} in one table, {deltas} in the other"
        found[unit] = max(values, default=0)
    return found


@dataclass
class History:
    """What the commits say: the state of each version, and each unit's newest published number."""

    states: dict[int, State] = field(default_factory=lambda: {0: dict.fromkeys(_UNITS, 0)})
    published: State = field(default_factory=lambda: dict.fromkeys(_UNITS, 0))
    n_restored: int = 0

    def follow(self, store: Store) -> None:
        """Read the commits since the last call, and compare the tables with the newest state."""
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
            self.states[version] = state
        found = state_of(store.pinned(newest))
        assert found == self.states[newest], f"{newest}: {found}, not {self.states[newest]}"


class Worker:
    """A child process that writes one unit, compacts or restores, until it is killed."""

    def __init__(self, root: Path, name: str, number: int) -> None:
        self.acknowledged = number
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                random.seed(os.getpid())
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
                execute(Compact(warehouse=root, keep_days=_KEPT_S / 86_400))
            else:
                back = max(0, store.snapshot().version - random.randint(1, _BACK))
                with contextlib.suppress(UsageProblem):  # that version has gone meanwhile
                    execute(Restore(warehouse=root, version=str(back)))

    def kill(self) -> int:
        """Kill it; returns the last number it said that it has published."""
        os.kill(self.pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        assert status == -signal.SIGKILL, f"ended by itself with {status}"
        return self.heard()

    def heard(self) -> int:
        """The last number it said so far."""
        while piece := self._piece():
            self.acknowledged = int.from_bytes(piece[-8:], "little")
        return self.acknowledged

    def _piece(self) -> bytes:
        try:
            return os.read(self._read, 8 * 512)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        os.close(self._read)


def run(n_kills: int, seed: int, root: Path, journal: Path) -> str:
    """Kill so often; returns what happened. Raises ``AssertionError`` for anything lost."""
    store, history = Store.open(root), History()
    kills: Counter[str] = Counter()
    if journal.exists():
        known = json.loads(journal.read_text())
        kills.update(known["kills"])
        kept = {int(version): state for version, state in known["states"].items()}
        history = History(kept, known["published"], known["n_restored"])
    history.follow(store)
    workers = {name: Worker(root, name, history.published.get(name, 0)) for name in _NAMES}
    try:
        while kills.total() < n_kills:
            rng = random.Random(f"{seed} {kills.total()}")
            time.sleep(rng.uniform(0, _SPREAD_S))
            name = rng.choice(_NAMES)
            heard = {unit: workers[unit].heard() for unit in _UNITS}
            last = workers[name].kill()
            kills[name] += 1
            history.follow(store)
            for unit in _UNITS:
                assert history.published[unit] >= heard[unit], f"{unit}: {heard[unit]} is lost"
            if name in _UNITS:
                assert history.published[name] in (last, last + 1), f"{name}: after {last}"
            workers[name].close()
            workers[name] = Worker(root, name, history.published.get(name, 0))
            kept = dict(sorted(history.states.items())[-1000:])
            after = {"kills": kills, "states": kept} | {
                "published": history.published,
                "n_restored": history.n_restored,
            }
            journal.with_suffix(".new").write_text(json.dumps(after))
            journal.with_suffix(".new").replace(journal)
            if kills.total() % 50 == 0:
                print(f"{kills.total()} kills, version {max(history.states)}", flush=True)
    finally:
        for worker in workers.values():
            with contextlib.suppress(AssertionError):
                worker.kill()
            worker.close()
    history.follow(store)
    problems = _problems(store)
    assert not problems - set(_LEFT), problems
    n_left = len(leftovers(store))
    compact(store, "r", 0)
    assert not _problems(store), _problems(store)
    assert state_of(store) == history.states[max(history.states)]
    by_kind = ", ".join(f"{name} {kills[name]}" for name in _NAMES)
    ended = Counter(row["status"] for row in store.read("run").to_pylist())
    return (
        f"{kills.total()} kills ({by_kind}), {max(history.states)} commits, "
        f"{history.n_restored} restores, runs {dict(ended)}, {n_left} files left"
    )


def _problems(store: Store) -> set[str]:
    """What `warehouse check` finds; the writers' numbers are no recorded runs."""
    return {p.problem for p in check(store) if not p.problem.startswith("its run ")}


def main() -> None:
    """Print what happened; ends with an ``AssertionError`` when anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--directory", help="for the warehouse; kept, and gone on with")
    options, started = parser.parse_args(), time.monotonic()
    with contextlib.ExitStack() as held:
        here = Path(options.directory or held.enter_context(tempfile.TemporaryDirectory()))
        here.mkdir(parents=True, exist_ok=True)
        print(f"{run(options.kills, options.seed, here / 'w', here / 'kills.json')}, tables whole")
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
