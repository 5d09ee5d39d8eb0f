"""The commands between released scores and a page, with their seconds and memory.

Each is typed as a user would, in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scoring import BENCHMARKS

_COMMANDS = (
    *(("benchmark", "import", name) for name in BENCHMARKS),
    ("score", "import", "{results}"),
    ("measure",),
    ("report", "--out", "{out}"),
)
#: Runs a command and prints its status, seconds and memory: a small process of its own, as the
#: memory of whoever starts a command counts as the command's.
_WATCH = """
import json, resource, subprocess, sys
null = subprocess.DEVNULL
status = subprocess.run(sys.argv[1:], stdout=null, stderr=null).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([status, used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""


@dataclass(frozen=True)
class Cost:
    """A command: wall and processor seconds, and the most memory of its process in bytes."""

    command: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int


def run(data: Path, directory: Path) -> Iterator[Cost]:
    """28 models by five benchmarks: each command in turn.

    Raises ``SystemExit`` for a command that fails.
    """
    places = {"results": str(data / "unstereo-eval" / "results"), "out": str(directory / "report")}
    environment = os.environ | {"PLUMBLINE_WAREHOUSE": str(directory / "results")}
    for words in _COMMANDS:
        line = [sys.executable, "-m", "plumbline", *(word.format(**places) for word in words)]
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", _WATCH, *line], env=environment, capture_output=True, check=True
        )
        status, cpu_seconds, peak_kb = json.loads(done.stdout)
        if status:
            raise SystemExit(f"{' '.join(line)} failed")
        shown = " ".join(words).format(results="RESULTS", out="DIRECTORY")
        yield Cost(shown, time.perf_counter() - start, cpu_seconds, peak_kb << 10)
