"""Apply seeded faults one at a time and run the tests that are known to notice them.

A developer's tool. `tests/mutants.toml` lists the faults. Each consists of a text that occurs
once in the product and its replacement, so a fault follows its text when a file is moved or
renamed. Faults are applied in a copy of the working tree, never in the tree itself. First the named
tests must pass in the unchanged copy, then at least one of them must fail for each fault.

    python -m tools.mutants
    python -m tools.mutants --only pairs-reach
    python -m tools.mutants --only pairs-reach --tests tests/test_count_kernel.py
    python -m tools.mutants --folder eval_workers/pairs --folder jobs
    python -m tools.mutants --changed --minutes 8

`--changed` runs the faults in the folders of the files that the last commit changed, as CI does. In
a clone without the previous commit, every tenth fault is run.

`--tests` runs these tests instead of those in the list, and prints those that fail. Use it to find
the tests to name for a new fault.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

REPOSITORY = Path(__file__).resolve().parents[1]
LIST = REPOSITORY / "tests" / "mutants.toml"
#: Directories of the product, and the kinds of files in which faults are seeded.
ROOMS = ("warehouse", "jobs", "eval_workers", "pipelines", "plumbline")
ENDINGS = (".py", ".sql", ".jinja")
#: What `make setup` writes into the product and git ignores; pages need it.
BUILT = Path("pipelines/report/vega.js")
#: Time limit of a run, since a fault may make a test run forever.
_MOST_SECONDS = 600
#: How many faults' tests are first run together without a fault.
_AT_ONCE = 10
#: A pytest plugin that keeps Hypothesis from shrinking failing examples, which takes minutes.
_PLUGIN = """
from hypothesis import Phase, settings
phases = (Phase.explicit, Phase.reuse, Phase.generate)
settings.register_profile("mutants", deadline=None, phases=phases)
"""
_OPTIONS = ("-p", "seeded", "--hypothesis-profile=mutants", "--hypothesis-seed=0")


@dataclass(frozen=True)
class Mutant:
    """A seeded fault: what it breaks, the text that it replaces, and the tests that notice it."""

    id: str
    group: str
    breaks: str
    find: str
    replace: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """The outcome of tests: how many ran, which failed and why, and which were skipped."""

    n: int
    failed: Mapping[str, str]
    skipped: tuple[str, ...]


class BadMutant(Exception):
    """A fault whose text isn't found exactly once, or whose tests can't be run."""


def read(path: Path = LIST) -> list[Mutant]:
    """Return the listed faults, in their order."""
    groups = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        Mutant(id, group, **{**fault, "tests": tuple(fault["tests"])})
        for group, faults in groups.items()
        for id, fault in faults.items()
    ]


def tree(root: Path) -> list[Path]:
    """List the files of a working tree that git tracks or would add, as relative paths."""
    listing = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    found = subprocess.run(listing, cwd=root, check=True, capture_output=True).stdout
    names = sorted({Path(name) for name in found.decode().split("\0") if name})
    return [name for name in names if os.path.lexists(root / name)]


def product(root: Path) -> dict[Path, str]:
    """Return the text of every file in which faults may be seeded, by its path in the tree."""
    files = (path for room in ROOMS for path in (root / room).rglob("*") if path.suffix in ENDINGS)
    real = (path for path in files if path.is_file() and not path.is_symlink())
    return {path.relative_to(root): path.read_text(encoding="utf-8") for path in real}


def place(mutant: Mutant, texts: Mapping[Path, str]) -> Path:
    """Return the file with a fault's text. Raises ``BadMutant`` unless it occurs exactly once."""
    holding = {name: n for name, text in texts.items() if (n := text.count(mutant.find))}
    if sum(holding.values()) != 1:
        where = ", ".join(f"{name} ({n})" for name, n in holding.items()) or "no file"
        raise BadMutant(f"{mutant.id}: its text must be found once in the product, is in {where}")
    return next(iter(holding))


def within(mutants: Iterable[Mutant], folders: Iterable[Path], root: Path) -> list[Mutant]:
    """Return the faults whose text is in or below one of the folders."""
    texts = product(root)
    parents = {mutant: place(mutant, texts).parents for mutant in mutants}
    return [mutant for mutant in parents if not set(folders).isdisjoint(parents[mutant])]


def changed(mutants: Sequence[Mutant], root: Path) -> list[Mutant]:
    """Return the faults whose file is in the same folder as a file that the last commit changed.

    Returns every tenth fault if git doesn't know the previous commit.
    """
    command = ("git", "diff", "--name-only", "--no-renames", "-z", "HEAD~1", "HEAD")
    done = subprocess.run(command, cwd=root, capture_output=True)
    if done.returncode:
        return list(mutants[::10])
    folders = {Path(name).parent for name in done.stdout.decode().split("\0") if name}
    texts = product(root)
    return [mutant for mutant in mutants if place(mutant, texts).parent in folders]


def mutated(mutant: Mutant, text: str) -> str:
    """Return the text of a file with the fault in it."""
    return text.replace(mutant.find, mutant.replace)


class Copy:
    """A copy of a working tree in which tests run, with caches of its own.

    Compiled Python is checked by its source's hash, since a fault may change neither a file's size
    nor, within a second, its time. Kernels are cached by the hash of their sources.
    """

    def __init__(self, source: Path, directory: Path) -> None:
        self.root = directory / "tree"
        self._caches = directory / "caches"
        for name in [*tree(source), *([BUILT] if (source / BUILT).is_file() else [])]:
            target = self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, target, follow_symlinks=False)
        self._report = directory / "report.xml"
        self._caches.mkdir()
        (self._caches / "seeded.py").write_text(_PLUGIN, encoding="utf-8")
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (self.root, self._caches))),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_CACHE_DIR": str(self._caches / "numba"),
            "XDG_CACHE_HOME": str(self._caches),
        }
        data = source.parent / "shared" / "data"  # where tests of the tree itself look for it
        if data.is_dir():
            self._environment.setdefault("PLUMBLINE_DATA", str(data))
        compiling = (sys.executable, "-m", "compileall", "-q", "--invalidation-mode")
        rooms = [name for name in (*ROOMS, "tests") if (self.root / name).is_dir()]
        subprocess.run([*compiling, "checked-hash", *rooms], cwd=self.root, check=True)

    @contextmanager
    def applied(self, mutant: Mutant) -> Iterator[None]:
        """Apply the fault to the copy for the block. Raises ``BadMutant`` like ``place``."""
        file = self.root / place(mutant, product(self.root))
        before = file.read_bytes()
        file.write_text(mutated(mutant, before.decode()), encoding="utf-8")
        try:
            yield
        finally:
            file.write_bytes(before)

    def run(self, tests: Sequence[str]) -> Outcome:
        """Run tests. Raises ``BadMutant`` if one can't be collected."""
        self._report.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider"]
        command += [*_OPTIONS, f"--junitxml={self._report}", *tests]
        try:
            done = subprocess.run(
                command,
                cwd=self.root,
                env=self._environment,
                timeout=_MOST_SECONDS,
                capture_output=True,
                text=True,
            )
        except subprocess.TimeoutExpired:
            return Outcome(len(tests), {"timeout": f"not done after {_MOST_SECONDS} s"}, ())
        if done.returncode not in (0, 1):
            last = "\n".join((done.stdout + done.stderr).splitlines()[-8:])
            raise BadMutant(f"pytest ended with status {done.returncode}:\n{last}")
        return _outcome(self._report)


def _outcome(report: Path) -> Outcome:
    failed, skipped, n = {}, [], 0
    for case in ElementTree.parse(report).iter("testcase"):
        n += 1
        # A class of tests follows its module: `tests.test_backend.TestTransformers`.
        module, _, group = case.get("classname", "").partition(".Test")
        file = f"{module.replace('.', '/')}.py"
        name = "::".join([file, *([f"Test{group}"] if group else []), case.get("name", "")])
        for child in case:
            if child.tag in ("failure", "error"):
                failed[name] = (child.get("message") or "").strip()
            elif child.tag == "skipped":
                skipped.append(name)
    return Outcome(n, failed, tuple(skipped))


def sound(copy: Copy, mutants: Iterable[Mutant]) -> set[str]:
    """Run all named tests without a fault and return those that are skipped.

    Raises ``BadMutant`` if one fails.
    """
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    found = copy.run(tests)
    if found.failed:
        raise BadMutant(f"fail without a fault: {', '.join(found.failed)}")
    return set(_named(found.skipped, tests))


def _named(cases: Iterable[str], tests: Iterable[str]) -> list[str]:
    """Return the tests to which any of the cases belongs."""
    return [
        test for test in tests if any(name == test or name.startswith(f"{test}[") for name in cases)
    ]


def _line(mutant: Mutant, found: Outcome, seconds: float) -> str:
    if not found.failed:
        return f"{mutant.id:<32} SURVIVED {seconds:5.0f} s  {mutant.breaks}"
    why = next(iter(found.failed.values())).splitlines() or [""]
    n = len(_named(found.failed, mutant.tests))
    by = f"{n} of {len(mutant.tests)}"
    return f"{mutant.id:<32} killed by {by} {seconds:5.0f} s  {why[0][:110]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tool; the status is 1 if a fault survives."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="ID", help="faults to run; default: all")
    parser.add_argument("--folder", action="append", type=Path, help="faults there; repeatable")
    parser.add_argument("--changed", action="store_true", help="only faults near the last commit")
    parser.add_argument("--minutes", type=float, help="start no fault after this time")
    parser.add_argument("--tests", nargs="+", help="run these instead of the listed tests")
    options = parser.parse_args(arguments)
    end = time.monotonic() + 60 * (math.inf if options.minutes is None else options.minutes)
    mutants = [m for m in read() if not options.only or m.id in options.only]
    if unknown := set(options.only or ()) - {m.id for m in mutants}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if options.folder and not all((REPOSITORY / folder).is_dir() for folder in options.folder):
        parser.error("--folder: give folders of the repository as relative paths")
    if options.folder:
        mutants = within(mutants, options.folder, REPOSITORY)
    if options.changed:
        mutants = changed(mutants, REPOSITORY)
    fates = dict.fromkeys((mutant.id for mutant in mutants), "not run, no time left")
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        copy = Copy(REPOSITORY, Path(directory))
        for start in range(0, len(mutants), _AT_ONCE):
            some = mutants[start : start + _AT_ONCE]
            if time.monotonic() > end:
                break
            idle = set() if options.tests else sound(copy, some)
            for mutant in some:
                if time.monotonic() > end:
                    break
                tests = options.tests or [test for test in mutant.tests if test not in idle]
                if not tests:
                    fates[mutant.id] = "not run, their tests are skipped here"
                    continue
                started = time.monotonic()
                with copy.applied(mutant):
                    found = copy.run(tests)
                print(_line(mutant, found, time.monotonic() - started), flush=True)
                if options.tests:
                    print("".join(f"    {name}\n" for name in found.failed), end="", flush=True)
                fates[mutant.id] = "killed" if found.failed else "SURVIVED"
    for fate, n in Counter({"killed": 0, **Counter(fates.values())}).items():
        print(f"{n} of {len(mutants)} {fate}")
    return "SURVIVED" in fates.values()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BadMutant as e:
        sys.exit(f"mutants: {e}")
