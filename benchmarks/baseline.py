"""Time typical commands of this checkout and of another in turns, to see what a change costs.

``python -m benchmarks.baseline --against CHECKOUT --out benchmarks/baseline.toml``

Each checkout runs by its own ``.venv/bin/plumbline``. The sides take turns and the first place
alternates, so a machine whose speed drifts slows both alike: compare the ratios, not the seconds
of different days. Processor seconds are those of a command and of all processes it waited for.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

HERE = Path(__file__).resolve().parents[1]
_WORDS = (
    "meditation driver ate apples shelf sharpened valley forest sledge soldier slowly milk bucket "
    "badminton college skilfully nervously tea polished aquarium"
)
#: What is typed after ``plumbline``, in a directory whose warehouse is ``w``. `{inputs}` holds the
#: text and the model that both sides read, `{data}` is PLUMBLINE_DATA.
LINES = {
    "text": "corpus demo --tokens 20000000 --out {inputs}/text --warehouse {inputs}/w",
    "count": "corpus count '{inputs}/text/*.jsonl.zst' --corpus world --warehouse w",
    "all pairs": "corpus count '{inputs}/text/*.jsonl.zst' --corpus world --targets all "
    "--warehouse w",
    "count real": "corpus count '{data}/corpora/*/*.jsonl.zst' --corpus real --warehouse w",
    "all pairs real": "corpus count '{data}/corpora/*/*.jsonl.zst' --corpus real --targets all "
    "--warehouse w",
    "count part": "corpus count '{inputs}/text/*-00.jsonl.zst' --corpus world --warehouse w",
    "associate": "corpus associate --corpus world --warehouse w",
    "benchmark": "benchmark import closed-world --warehouse w",
    "score": "score --model {inputs}/model --benchmark closed-world --warehouse w",
    "why": f"why {_WORDS} --corpus world --warehouse w",
    "released": "reproduce unstereoeval --data {data}/unstereo-eval --warehouse w",
    "measure": "measure --warehouse w",
    "report": "report --warehouse w --out report",
    "pipeline": "pipeline --out out",
}
#: The lines of the other checkout, where a command has another name there.
OTHER_LINES: dict[str, str] = {}
#: Prints the names of all commands, one a line; the second for the other checkout.
NAMES = "from plumbline.pipelines.command import registry; print(*registry.targets(), sep='\\n')"
OTHER_NAMES = NAMES
#: Warehouses that workloads start from, and the lines that make them.
WAREHOUSES = {
    "empty": (),
    "world": ("count part", "associate", "benchmark"),
    "released": ("released",),
}


class Workload(NamedTuple):
    """A line to time: the warehouse it starts from, and if it is long and so runs only once."""

    line: str
    warehouse: str = "empty"
    once: bool = False


WORKLOADS = {
    "counting": Workload("count"),
    "counting of real text": Workload("count real"),
    "all pairs": Workload("all pairs"),
    "all pairs of real text": Workload("all pairs real"),
    "scoring": Workload("score", "world"),
    "why of 20 words": Workload("why", "world"),
    "measure of 28 models": Workload("measure", "released"),
    "report of 28 models": Workload("report", "released", once=True),
    "start of commands": Workload("", once=True),
    "make setup": Workload("", once=True),
    "make pipeline": Workload("pipeline", once=True),
}


class Took(NamedTuple):
    """Wall and processor seconds."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Side:
    """A checkout, its lines and its working directory."""

    checkout: Path
    lines: Mapping[str, str]
    names: str
    directory: Path
    made: set[str] = field(default_factory=set)

    def commit(self) -> str:
        """Return the commit, counted from the last tag."""
        describe = ("git", "describe", "--tags", "--always", "--dirty")
        return subprocess.check_output(describe, cwd=self.checkout, text=True).strip()

    def run(self, arguments: Sequence[str], directory: Path) -> Took:
        """Time a command line in a directory. Raises ``SystemExit`` if it fails."""
        # Without its cache pip installs the second side no faster than the first.
        environment = os.environ | {"PIP_NO_CACHE_DIR": "1"}
        with tempfile.TemporaryFile() as said:
            start = time.perf_counter()
            process = subprocess.Popen(
                arguments, cwd=directory, env=environment, stdout=said, stderr=said
            )
            _, status, used = os.wait4(process.pid, 0)
            wall = time.perf_counter() - start
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                said.seek(0)
                raise SystemExit(f"{shlex.join(arguments)}\n{said.read().decode()[-2000:]}")
        return Took(wall, used.ru_utime + used.ru_stime)

    def plumbline(self, line: str, directory: Path) -> Took:
        """Time one of the lines."""
        data = os.environ.get("PLUMBLINE_DATA", "")
        words = shlex.split(self.lines[line].format(inputs=self.directory.parent, data=data))
        return self.run([str(self.checkout / ".venv/bin/plumbline"), *words], directory)

    def take(self, name: str) -> dict[str, Took]:
        """Run a workload once, in a new directory with a copy of the warehouse it starts from."""
        workload = WORKLOADS[name]
        prepared = self.directory / workload.warehouse
        if workload.warehouse not in self.made:
            prepared.mkdir(parents=True)
            for line in WAREHOUSES[workload.warehouse]:
                self.plumbline(line, prepared)
            self.made.add(workload.warehouse)
        place = self.directory / "now"
        shutil.copytree(prepared, place)
        try:
            if name == "start of commands":
                return self._start(place)
            if name == "make setup":
                source = str(self.checkout)
                subprocess.run(["git", "clone", "--quiet", source, "clone"], cwd=place, check=True)
                return {name: self.run(["make", "setup"], place / "clone")}
            return {name: self.plumbline(workload.line, place)}
        finally:
            shutil.rmtree(place)

    def _start(self, place: Path) -> dict[str, Took]:
        """Ask each command for its help."""
        program = self.checkout / ".venv/bin"
        listed = subprocess.check_output([program / "python", "-c", self.names], text=True)
        runs = [
            self.run([str(program / "plumbline"), *command.split(), "--help"], place)
            for command in listed.splitlines()
        ]
        wall, cpu = (sum(column) for column in zip(*runs, strict=True))
        return {
            "start of all commands": Took(wall, cpu),
            "start of a command, mean": Took(wall / len(runs), cpu / len(runs)),
            "start of a command, slowest": Took(*map(max, zip(*runs, strict=True))),
        }


def _median(runs: Sequence[Took]) -> Took:
    return Took(*(statistics.median(column) for column in zip(*runs, strict=True)))


def measured(name: str, sides: Sequence[Side], rounds: int) -> dict[str, dict[str, object]]:
    """Return medians of a workload: of this side, of the other and of their ratios."""
    runs: list[list[dict[str, Took]]] = [[] for _ in sides]
    for k in range(1 if WORKLOADS[name].once else rounds):
        for i in sorted(range(len(sides)), reverse=k % 2 == 1):
            runs[i].append(sides[i].take(name))
    found: dict[str, dict[str, object]] = {}
    for what in runs[0][0]:
        columns = [[run[what] for run in taken] for taken in runs]
        found[what] = {"cores": os.cpu_count(), "python": platform.python_version()}
        found[what]["rounds"] = len(columns[0])
        for key, side, column in zip(("this", "other"), sides, columns, strict=False):
            found[what][key] = {"commit": side.commit(), **_median(column)._asdict()}
        if len(sides) == 2:
            ratios = [
                Took(*(ours / theirs for ours, theirs in zip(*pair, strict=True)))
                for pair in zip(*columns, strict=True)
            ]
            found[what]["ratio"] = _median(ratios)._asdict()
    return found


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_inline(v)}" for k, v in value.items()) + " }"
    return f"{value:.2f}" if isinstance(value, float) else json.dumps(value)


def as_toml(results: Mapping[str, Mapping[str, object]]) -> str:
    """Return the text of a file with the results."""
    lines = [
        "# Medians of wall and processor seconds, by python -m benchmarks.baseline. Other work on",
        "# the machine slows a side: compare the ratios (this / other), taken from runs in turns.",
    ]
    for name, result in results.items():
        values = (f"{key} = {_inline(value)}" for key, value in result.items())
        lines += ["", f'["{name}"]', *values]
    return "\n".join(lines) + "\n"


def main(
    against: Annotated[Path | None, typer.Option(help="Another checkout with a .venv.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="A workload: " + "; ".join(WORKLOADS) + ". Repeatable.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of the shorter workloads.")] = 3,
    out: Annotated[Path | None, typer.Option(help="TOML file; other results in it stay.")] = None,
) -> None:
    """Time the workloads of this checkout, beside those of another in turns."""
    from benchmarks.scoring_model import write_model

    results = tomllib.loads(out.read_text("utf-8")) if out is not None and out.exists() else {}
    with tempfile.TemporaryDirectory() as directory:
        inputs = Path(directory)
        sides = [Side(HERE, LINES, NAMES, inputs / "this")]
        if against is not None:
            theirs = LINES | OTHER_LINES
            sides.append(Side(against.resolve(), theirs, OTHER_NAMES, inputs / "other"))
        for name in only or WORKLOADS:
            line, warehouse, _ = WORKLOADS[name]
            lines = " ".join(LINES.get(each, "") for each in (line, *WAREHOUSES[warehouse]))
            if "{data}" in lines and not os.environ.get("PLUMBLINE_DATA"):
                print(f"{name}: skipped, PLUMBLINE_DATA is not set")
                continue
            if "{inputs}/text" in lines and not (inputs / "text").exists():
                sides[0].plumbline("text", inputs)
            if "{inputs}/model" in lines:
                write_model(sorted((inputs / "text").glob("*.zst")), inputs / "model")
            found = measured(name, sides, rounds)
            print(as_toml(found).split("\n\n", 1)[1], flush=True)
            results |= found
            if out is not None:
                out.write_text(as_toml(results), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
