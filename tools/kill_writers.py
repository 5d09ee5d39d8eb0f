"""Kill processes that write, compact and read one warehouse: nothing acknowledged may be lost.

A developer's tool, see docs/faults.md. Three writers publish counters, each in two tables at once,
and a compactor merges and removes behind them. One of the four is killed at a random moment and
started again, time after time. A writer says on a pipe which number it has published; after each
kill the tables must hold at least that number, all rows of it, and the same in both tables.

    python tools/kill_writers.py --kills 1000 --seed 1
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from plumbline.warehouse.errors import PlumblineError  # noqa: E402
from plumbline.warehouse.storage.check import check  # noqa: E402
from plumbline.warehouse.storage.compaction import compact  # noqa: E402
from plumbline.warehouse.storage.store import Store  # noqa: E402

_UNITS, _N_ROWS = ("a", "b", "c"), 20
_COMPACTOR = "compactor"
#: A kill comes this long after the one before, at most.
_SPREAD_S = 0.12
#: A writer rests this long between two numbers, at most.
_PAUSE_S = 0.05
#: Problems that a killed process may leave until the next compaction.
_LEFT = ("a file that no version to keep names", "a file or partition that was not finished")


def publish(store: Store, unit: str, number: int) -> None:
    """Publish a number under a unit, in all rows of two tables."""
    words = [{"corpus": "c", "word": f"{unit}{i}", "n_word": number} for i in range(_N_ROWS)]
    shared = {"corpus": "c", "contrast": "she/he", "word": unit, "n_word": number}
    delta = {**shared, "n_pair_f": 1, "n_pair_m": 1, "n_defined": 1, "delta_nats": 0.0}
    with store.together("r"):
        store.publish("word_count", words, unit=unit, run_id="r")
        store.publish("word_delta", [delta], unit=unit, run_id="r")


def numbers(store: Store) -> dict[str, tuple[int, int]]:
    """By unit the number in ``word_count`` and in ``word_delta``; fails if rows differ.

    The compactor keeps no version but the newest, so the one that is read may be gone meanwhile.
    """
    while True:
        try:
            return _numbers(store.pinned())
        except PlumblineError as e:
            if not ("No such file" in str(e) or "kept" in str(e)):
                raise


def _numbers(now: Store) -> dict[str, tuple[int, int]]:
    found = {}
    for unit in _UNITS:
        rows = [r for r in now.read("word_count").to_pylist() if r["word"][0] == unit]
        values = {row["n_word"] for row in rows}
        assert (len(rows), len(values)) in ((_N_ROWS, 1), (0, 0)), f"{unit}: torn rows {rows}"
        deltas = [r["n_word"] for r in now.read("word_delta").to_pylist() if r["word"] == unit]
        assert len(deltas) == len(values), f"{unit}: in one table only"
        found[unit] = (*(values or {0}), *(deltas or [0]))
    return found


class Worker:
    """A child process that writes one unit, or compacts, until it is killed."""

    def __init__(self, root: Path, name: str, number: int) -> None:
        self.acknowledged = number
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._work(root, name, number, write)
            finally:
                os._exit(1)
        os.close(write)

    @staticmethod
    def _work(root: Path, name: str, number: int, write: int) -> None:
        store = Store.open(root)
        while True:
            if name == _COMPACTOR:
                compact(store, "r", 0)
            else:
                number += 1
                time.sleep(random.uniform(0, _PAUSE_S))
                publish(store, name, number)
                os.write(write, number.to_bytes(8, "little"))

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


def run(n_kills: int, seed: int, root: Path) -> str:
    """Kill so often; returns what was published. Raises ``AssertionError`` for anything lost."""
    store, rng = Store.open(root), random.Random(seed)
    names = (*_UNITS, _COMPACTOR)
    workers = {name: Worker(root, name, 0) for name in names}
    for done in range(n_kills):
        time.sleep(rng.uniform(0, _SPREAD_S))
        name = rng.choice(names)
        heard = {unit: workers[unit].heard() for unit in _UNITS}
        last = workers[name].kill()
        found = numbers(store)
        for unit, (counted, delta) in found.items():
            assert counted == delta >= heard[unit], f"{unit}: {counted}, {delta}, {heard[unit]}"
        if name != _COMPACTOR:
            assert found[name][0] in (last, last + 1), f"{name}: {found[name]} after {last}"
        workers[name].close()
        workers[name] = Worker(root, name, found[name][0] if name in found else 0)
        if done % 100 == 99:
            print(f"{done + 1} kills, version {store.snapshot().version}", flush=True)
    for worker in workers.values():
        worker.kill()
        worker.close()
    left = {p.problem for p in check(store)} - {"its run r is not in `run`", *_LEFT}
    assert not left, left
    compact(store, "r", 0)
    left = {p.problem for p in check(store)} - {"its run r is not in `run`"}
    assert not left, left
    return f"{n_kills} kills, {store.snapshot().version} commits, numbers {numbers(store)}"


def main() -> None:
    """Print what happened; ends with an ``AssertionError`` when anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options, started = parser.parse_args(), time.monotonic()
    with tempfile.TemporaryDirectory() as here:
        print(f"{run(options.kills, options.seed, Path(here) / 'w')}, tables whole")
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
