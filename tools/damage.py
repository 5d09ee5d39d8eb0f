"""Damage a warehouse's files and run commands on it: no wrong row may be read or published.

A developer's tool, see docs/warehouse.md. Each trial damages one file in a copy of a warehouse: a
data file, a commit, or an entry of the Delta Lake log, of the newest or an earlier version. The
damage may keep the file's size and time. Then a child process runs one command. The command may
end with a one-line error, before or after it has published its rows. Or it may print the same as on
the undamaged warehouse, and write the same rows once the file is repaired. `plumbline warehouse
check` must name the file. The status is 1 if anything else happens.

    python tools/damage.py --trials 300 --seed 1
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from plumbline.pipelines.command.main import main as plumbline  # noqa: E402
from plumbline.warehouse.errors import PlumblineError  # noqa: E402
from plumbline.warehouse.storage import log  # noqa: E402
from plumbline.warehouse.storage.store import Store  # noqa: E402
from tools.fuzz import mutated  # noqa: E402
from tools.same_tables import differences  # noqa: E402

_SECONDS = 120
_WORLD = (
    "corpus demo --out text --tokens 200000",
    "corpus count text/*.zst --corpus c",
    "corpus associate --corpus c",
    "corpus words --corpus c --n 20 --seed 1",
    "benchmark import closed-world",
    "benchmark constrain --benchmark closed-world --corpus c",
    "train text/*.zst --corpus c --name grams --preset 5gram",
    "score --model models/grams --benchmark closed-world",
    "measure",
    "measure --eta 0.3",
)
#: Commands to run on a damaged warehouse; {past} is a version that can be restored.
COMMANDS = (
    "sql FROM\\ pair_score\\ ORDER\\ BY\\ ALL --format csv",
    "sql FROM\\ word_delta\\ ORDER\\ BY\\ ALL --format csv",
    *("warehouse check", "corpus list", "corpus list c"),
    *("benchmark show", "benchmark show closed-world", "runs", "warehouse restore"),
    "report table preference-closed-world-all-pairs",
    "corpus words --corpus c --n 10 --seed 2",
    "benchmark constrain --benchmark closed-world --corpus c",
    *("corpus associate --corpus c", "benchmark export closed-world", "measure"),
    *("score --model models/grams --benchmark closed-world", "report --out page"),
    "warehouse compact",
    *("warehouse compact --keep-days 0", "warehouse restore {past}"),
    "benchmark import closed-world",
)
KINDS = ("data", "commit")
#: Times, ids and durations, which differ from run to run.
_ODD = re.compile(r"\d{8}T\d+-\w+|\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*|[0-9a-f]{8,}|\d+(\.\d+)? s\b")


@dataclass(frozen=True)
class Ended:
    """The exit status of a command, what it printed and wrote as CSV, and its errors."""

    status: int
    out: str
    err: str


def run(directory: Path, command: str) -> Ended:
    """Run a command line in a directory, in a child process with a time limit."""
    streams = [directory / "out.txt", directory / "err.txt"]
    child = os.fork()
    if not child:
        status = 1
        try:
            os.chdir(directory)
            for number, path in zip((1, 2), streams, strict=True):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            signal.alarm(_SECONDS)
            words = re.findall(r"(?:\\.|\S)+", command)
            status = plumbline([word.replace("\\ ", " ") for word in words])
        except BaseException as e:
            os.write(2, f"Traceback {type(e).__name__}: {e}".encode())
        os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    out, err = (path.read_text(errors="replace") for path in streams)
    figures = (path.read_text(errors="replace") for path in sorted(directory.glob("*/*.csv")))
    return Ended(status, _ODD.sub("_", "".join((out, *figures))), err)


def victims(store: Store) -> dict[str, list[str]]:
    """Return the files that a trial may damage, by kind of file and age of the version."""
    newest = store.snapshot()
    found: dict[str, list[str]] = {}
    needed: set[str] = set()
    for version in reversed(log.versions(store.place)):
        state = log.snapshot(store.place, version)
        age = "newest" if version == newest.version else "earlier"
        files = [f.path for table in state.tables for f in state.files(table)]
        for kind, names in zip(KINDS, (files, [log.commit_name(version)]), strict=True):
            found.setdefault(f"{kind}, {age}", []).extend(n for n in names if n not in needed)
        needed.update(files)
    found["delta"] = []
    for table in newest.tables:  # readers begin at the last checkpoint
        names = store.place.names(f"{table}/_delta_log")
        last = max(name for name in names if "checkpoint" in name)
        found["delta"] += [f"{table}/_delta_log/{n}" for n in names if n[:20] >= last[:20]]
    return {kind: sorted(set(names)) for kind, names in found.items()}


def damaged(path: Path, rng: random.Random) -> str:
    """Damage a file at random, and perhaps keep its time. Return what was done."""
    about, whole = path.stat(), path.read_bytes()
    how = rng.choice(("bit", "bit", "cut", "empty", "noise", "mutated"))
    at = rng.randrange(len(whole))
    if how == "bit":
        made = whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :]
    elif how == "noise":
        made = whole[:at] + rng.randbytes(len(whole[at:][:64])) + whole[at:][64:]
    else:
        made = (
            {"cut": whole[:at], "empty": b""}.get(how) if how != "mutated" else mutated(whole, rng)
        )
    assert made is not None
    path.write_bytes(made)
    if rng.random() < 0.5:
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
        how += ", time kept"
    return how if made != whole else "nothing"


def trial(world: Path, here: Path, sound: dict[str, tuple[Ended, Path]], rng: random.Random) -> str:
    """Damage a file and run a command; return how it ended or, after ``FOUND``, what is wrong."""
    shutil.rmtree(here, ignore_errors=True)
    shutil.copytree(world, here)
    store = Store.open(here / "out/warehouse")
    kinds = victims(store)
    kind = rng.choice(sorted(kinds))
    name = rng.choice(kinds[kind])
    command = rng.choice(sorted(sound))
    path = store.root / name
    whole = path.read_bytes()
    how = damaged(path, rng)
    ended, (expected, after) = run(here, command), sound[command]
    about = f"{kind} {name} ({how}), {command}: status {ended.status}"
    if ended.status not in (0, 2, 3) or "Traceback" in ended.err:
        return f"FOUND {about} {ended.err[-300:]}"
    is_refused = ended.status != 0
    if not is_refused and ended.out != expected.out:
        return f"FOUND {about}, another output"
    is_old = kind == "delta" and max(path.parent.glob("*.parquet")).name[:20] > path.name[:20]
    is_made_again = is_old or (kind == "delta" and "compact" in command)
    is_dropped = kind.endswith("earlier") and "--keep-days 0" in command  # no version is kept
    is_damaged = path.exists() and path.read_bytes() != whole and not is_dropped
    if is_damaged and not is_made_again and not is_named(here, path):
        return f"FOUND {about}, then check does not name it"
    if path.exists():
        path.write_bytes(whole)
    try:
        now = Store.open(store.root)
        same = [after, *([world / "out/warehouse"] if is_refused else [])]
        if all(differences(now, Store.open(other)) for other in same):
            return f"FOUND {about}, other rows"
    except PlumblineError as e:
        return f"FOUND {about}, then {e}"
    return f"{kind}: {'refused' if is_refused else 'as on the whole warehouse'}"


def is_named(here: Path, path: Path) -> bool:
    """Return whether ``check`` names a damaged file, or the directory of its log."""
    checked = run(here, "warehouse check")
    said = (checked.out + checked.err).replace("\n", "")
    name = _ODD.sub("_", str(path.relative_to(here / "out/warehouse")))
    return checked.status == 3 and (name in said or str(Path(name).parent) in said)


def main() -> int:
    """Print how the trials ended; return status 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options, started = parser.parse_args(), time.monotonic()
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        os.environ["XDG_CACHE_HOME"] = str(top / "cache")
        world = top / "world"
        world.mkdir()
        for command in _WORLD:
            ended = run(world, command)
            assert ended.status == 0, (command, ended)
        past = log.versions(Store.open(world / "out/warehouse").place)[-4]
        sound = {}
        for number, text in enumerate(COMMANDS):
            command = text.format(past=past)
            after = top / f"after-{number}"
            shutil.copytree(world, after)
            sound[command] = run(after, command), after / "out/warehouse"
            assert sound[command][0].status == 0, (command, sound[command][0])
            again = top / "again"
            shutil.copytree(world, again)
            assert run(again, command).out == sound[command][0].out, f"{command} is not repeatable"
            shutil.rmtree(again)
        for number in range(options.trials):
            shutil.rmtree(top / "cache", ignore_errors=True)
            said = trial(world, top / "trial", sound, random.Random(f"{options.seed}-{number}"))
            if said.startswith("FOUND"):
                print(f"trial {number}: {said}", flush=True)
            ends[said.split()[0] if said.startswith("FOUND") else said] += 1
    for said, n in sorted(ends.items()):
        print(f"{said} {n:,}")
    print(f"{options.trials:,} trials, {time.monotonic() - started:.0f} s")
    return 1 if ends["FOUND"] else 0


if __name__ == "__main__":
    sys.exit(main())
