"""Checkpoints an hour of ``score --revisions``: a model of the closed world, all its checkpoints.

The commands run as a user runs them: training is not timed, the start of scoring is. The models
are read from a disk, so that no checkpoint is downloaded while one is scored.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

#: Checkpoints in training; the model before it is one more.
N_CHECKPOINTS = 8
MAX_TOKENS = 60_000
_COMMAND = "from plumbline.pipelines.command.main import entry; entry()"


@dataclass(frozen=True)
class Rate:
    """What was scored, and the wall seconds of the whole command and of no checkpoint anew."""

    n_checkpoints: int
    n_pairs: int
    seconds: float
    seconds_again: float

    @property
    def an_hour(self) -> float:
        """Checkpoints an hour, with the start of the command."""
        return 3600 * self.n_checkpoints / self.seconds


def run(directory: Path) -> Rate:
    """Write, train and score in a directory."""
    from plumbline.warehouse.query.connection import rows_of

    name = "closed-world-straight"
    _plumbline(directory, "demo", "write", "--tokens", "200000", "--out", "text")
    shards = f"text/{name}-*.jsonl.zst"
    _plumbline(
        directory,
        *("train", shards, "--name", "timed", "--corpus", name, "--preset", "closed"),
        *("--max-tokens", str(MAX_TOKENS), "--checkpoints", str(N_CHECKPOINTS)),
    )
    _plumbline(directory, "benchmark", "import", "closed-world")
    score = ("score", "--model", "models/timed", "--revisions", "all")
    seconds, again = (
        _plumbline(directory, *score, "--benchmark", "closed-world") for _ in range(2)
    )
    text = "SELECT count(DISTINCT model_key) AS n, count(*) AS n_scores FROM pair_score"
    (found,) = rows_of(directory / "out" / "warehouse", text)
    return Rate(found["n"], found["n_scores"] // found["n"], seconds, again)


def _plumbline(directory: Path, *given: str) -> float:
    """Wall seconds of a command."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", _COMMAND, *given],
        cwd=directory,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - start
