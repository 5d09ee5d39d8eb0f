"""All pairs of a shard to files under a cap of memory, in a process of its own."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from plumbline.warehouse import wordlists


@dataclass(frozen=True)
class AllPairs:
    """Median seconds, the highest peak of the process's own memory, and what was written."""

    cap_mb: int
    seconds: float
    peak_mb: float
    n_kept: int
    n_rows: int
    n_files: int
    megabytes: float


def run(shard: Path, before: Path, cap_mb: int, rounds: int = 5) -> AllPairs:
    """Count all pairs of a shard to Parquet files with ``cap_mb`` MiB of memory.

    The process counts ``before`` first, as a worker in the middle of a job has counted others.
    """
    options = json.dumps(
        {"words": wordlists.load("gendered").targets, "targets": "all", "evidence": False}
    )
    found = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as where:
            arguments = (where, str(cap_mb), options, str(before), str(shard))
            command = [sys.executable, "-m", "benchmarks.peak", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found.append(json.loads(done.stdout))
            mark = found[-1]["ledgers"][-1]["fingerprint"]
            files = list(Path(where).glob(f"{mark}.*.pairs.parquet"))
            n_rows = sum(pq.read_metadata(file).num_rows for file in files)
            megabytes = sum(file.stat().st_size for file in files) / 1e6
    seconds = statistics.median(x["ledgers"][-1]["seconds"] for x in found)
    peak_mb = max(x["peak_bytes"] for x in found) / (1 << 20)
    n_kept = found[-1]["ledgers"][-1]["n_kept_tokens"]
    return AllPairs(cap_mb, seconds, peak_mb, n_kept, n_rows, len(files), megabytes)
