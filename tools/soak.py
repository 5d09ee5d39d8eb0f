"""Kill the closed-world pipeline at random until it has survived; then its tables must be the same.

A developer's tool, see docs/faults.md. Processes of the command are found by a mark in their
environment, so that one that left its session or its parent is found as well (Linux).

    python tools/soak.py --kills 20 --seed 1 --directory /tmp/soak
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from plumbline.warehouse.storage.check import check  # noqa: E402
from plumbline.warehouse.storage.store import Store  # noqa: E402
from tools.same_tables import differences  # noqa: E402

_ENTRY = "from plumbline.pipelines.command.main import entry; entry()"
#: What is left of a killed command has this long to go by itself.
_GRACE_S = 20.0
#: A kill comes so long after a stage was announced, at most.
_SPREAD_S = 4.0
#: A command that takes longer than this hangs.
_HANGS_S = 900.0


@dataclass
class Tally:
    """What happened: kills as (kind of process, stage), and what should not have."""

    kills: list[tuple[str, str]] = field(default_factory=list)
    starts: int = 0
    rounds: int = 0
    findings: list[str] = field(default_factory=list)


class Command:
    """A running pipeline in a directory, its output there, its processes marked."""

    def __init__(self, directory: Path, arguments: list[str]) -> None:
        self.directory, self.mark = directory, f"PLUMB_SOAK={uuid.uuid4().hex}"
        name, _, value = self.mark.partition("=")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "PLUMB"))}
        environment = {**kept, "PYTHONPATH": str(REPOSITORY), name: value}
        with (directory / "out.txt").open("wb") as out, (directory / "err.txt").open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _ENTRY, "pipeline", *arguments],
                cwd=directory,
                env={**environment, "SPARK_LOCAL_IP": "127.0.0.1"},
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def living(self) -> dict[int, str]:
        """Processes of the command and what each is; zombies are not among them."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = self._kind(entry)
            except OSError:
                continue  # it has ended meanwhile
        return found

    def _kind(self, entry: Path) -> str:
        words = (entry / "cmdline").read_bytes().decode(errors="replace")
        if int(entry.name) == self.process.pid:
            return "command"
        if "uvicorn" in words:
            return "Prefect server"
        if "pyspark" in words and "daemon" in words:
            return "Python worker"
        return "JVM" if words.split("\0")[0].endswith("java") else f"other ({words[:60]!r})"

    def stage(self) -> str:
        """The stage that it announced last."""
        lines = [line for line in self.lines() if line[:1].isalpha()]  # not the closing table
        return lines[-1].split(" ━")[0].split(" closed-world")[0].strip() if lines else "start"

    def lines(self) -> list[str]:
        """What it has said so far, most of it stages that begin."""
        return (self.directory / "out.txt").read_text("utf-8", "replace").splitlines()

    def said(self) -> str:
        return (self.directory / "err.txt").read_text("utf-8", "replace")

    def remains(self) -> dict[int, str]:
        """What still lives some time after the command has ended; killed after that."""
        deadline = time.monotonic() + _GRACE_S
        while (left := self.living()) and time.monotonic() < deadline:
            time.sleep(0.2)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return left


def kill_one(command: Command, rng: random.Random, tally: Tally) -> None:
    """SIGKILL to one process, each kind as likely as another."""
    living = {pid: kind for pid, kind in command.living().items() if not kind.startswith("other")}
    if not living:
        return
    kind = rng.choice(sorted(set(living.values())))
    pid = rng.choice(sorted(p for p, k in living.items() if k == kind))
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    tally.kills.append((kind, command.stage()))
    print(f"  kill {len(tally.kills)}: {kind} during {tally.kills[-1][1]}", flush=True)


def examine_end(command: Command, tally: Tally, killed: bool) -> bool:
    """Look at how a command ended; whether it is done. Findings go to the tally."""
    status, said = command.process.returncode, command.said()
    last = (said.strip().splitlines() or ["(nothing)"])[-1]
    if left := command.remains():
        tally.findings.append(f"left running: {sorted(left.values())}")
    if status == -signal.SIGKILL and killed:
        return False
    print(f"  ended with {status}: {last if status else 'done'}", flush=True)
    lines = [line for line in said.splitlines() if line.strip()]
    if status and (not last.startswith("error:") or "Traceback" in said):
        tally.findings.append(f"status {status}, no clear line: {said[-1500:]}")
    elif status and len(lines) > 1:
        tally.findings.append(f"status {status}, more than one line: {lines[:6]}")
    return status == 0


def one_round(
    directory: Path,
    arguments: list[str],
    options: argparse.Namespace,
    tally: Tally,
    rng: random.Random,
) -> None:
    """One world from its start to its end, killed until the kills are used up."""
    directory.mkdir(parents=True)
    done = False
    while not done:
        command, n_before = Command(directory, arguments), len(tally.kills)
        tally.starts += 1
        started = time.monotonic()
        line, moment = rng.randint(0, options.lines), 0.0
        while command.process.poll() is None:
            now = time.monotonic()
            if not moment and len(command.lines()) >= line:
                moment = now + rng.uniform(0, _SPREAD_S)
            if moment and now > moment and len(tally.kills) < options.kills:
                kill_one(command, rng, tally)
                line, moment = len(command.lines()) + rng.randint(1, options.lines), 0.0
            if now - started > _HANGS_S:
                tally.findings.append(f"hangs in {command.stage()}; {command.living()}")
                os.killpg(command.process.pid, signal.SIGKILL)
            time.sleep(0.02)
        done = examine_end(command, tally, len(tally.kills) > n_before)
        if tally.starts > 4 * options.kills + 10:
            tally.findings.append("it never ends")
            return
    tally.rounds += 1


def soak(options: argparse.Namespace) -> Tally:
    """An undisturbed run, then disturbed ones until all kills are used up and the last is done."""
    root = Path(options.directory).resolve()
    arguments = ["--demo-tokens", str(options.demo_tokens)]
    arguments += ["--train-tokens", str(options.train_tokens)]
    reference, tally, rng = root / "undisturbed", Tally(), random.Random(options.seed)
    if not (reference / "out/report/index.html").exists():
        one_round(reference, arguments, argparse.Namespace(kills=0, lines=0), Tally(), rng)
    while len(tally.kills) < options.kills and not (tally.findings and options.first):
        directory = root / f"seed-{options.seed}-{tally.rounds}"
        print(f"round {tally.rounds + 1}: {directory}", flush=True)
        one_round(directory, arguments, options, tally, rng)
        store = Store.open(directory / "out/warehouse")
        found = differences(Store.open(reference / "out/warehouse"), store)
        tally.findings += [f"{directory.name}: {line}" for line in found]
        tally.findings += [f"check: {p.path}: {p.problem}" for p in check(store)]
        print(f"  tables equal: {'no' if found else 'yes'}", flush=True)
    return tally


def main() -> int:
    """Print what happened; status 1 when anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of moments and processes")
    parser.add_argument("--directory", required=True, help="for all runs; kept")
    parser.add_argument("--demo-tokens", type=int, default=60_000)
    parser.add_argument("--train-tokens", type=int, default=500_000)
    parser.add_argument("--lines", type=int, default=45, help="kill within so many lines of output")
    parser.add_argument("--first", action="store_true", help="stop after the round with a finding")
    options, started = parser.parse_args(), time.monotonic()
    tally = soak(options)
    for what, number in (("kind", 0), ("stage", 1)):
        counted = Counter(kill[number] for kill in tally.kills).most_common()
        print(f"kills by {what}: {', '.join(f'{name} {n}' for name, n in counted)}")
    took = time.monotonic() - started
    print(f"{len(tally.kills)} kills, {tally.starts} starts, {tally.rounds} worlds, {took:.0f} s")
    for finding in tally.findings:
        print(f"FOUND {finding}")
    return 1 if tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())
