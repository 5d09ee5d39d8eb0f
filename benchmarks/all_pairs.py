"""All pairs of a shard to files under a cap of memory, in a process of its own."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

_WORK = """
import json, sys, threading, time
from pathlib import Path
from jobs.partial import count_shard
from jobs.sweep import CountOptions, sweep_shard, warm_up
from warehouse import wordlists

shard, where, megabytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
warm_up()
peak, done = [0], threading.Event()

def watch():
    while not done.is_set():
        status = Path("/proc/self/status").read_text()
        peak[0] = max(peak[0], int(status.split("RssAnon:")[1].split()[0]))
        time.sleep(0.005)

targets = wordlists.load("gendered").targets
options = {"targets": list(targets), "rule": "pairs", "window": 10, "all_pairs": True}
# The functions of this mode are loaded first.
from jobs.sweep import count_texts
count_texts(["tea nurse"], CountOptions(targets, all_pairs=True))
watcher = threading.Thread(target=watch)
watcher.start()
started = time.perf_counter()
ledger = count_shard(shard, where, options, megabytes << 20)
seconds = time.perf_counter() - started
done.set()
watcher.join()
files = list(Path(where).glob("*.pairs.parquet"))
print(json.dumps({
    "seconds": seconds, "peak_mb": peak[0] / 1024, "kept": ledger.n_kept_tokens,
    "n_files": len(files), "megabytes": sum(f.stat().st_size for f in files) / 1e6,
}))
"""


@dataclass(frozen=True)
class AllPairs:
    """Median seconds, the highest peak of the process's own memory, and what was written."""

    cap_mb: int
    seconds: float
    peak_mb: float
    n_kept: int
    n_files: int
    megabytes: float


def run(shard: Path, cap_mb: int, rounds: int = 3) -> AllPairs:
    """Count all pairs of a shard to Parquet files with ``cap_mb`` MiB of memory."""
    found = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as where:
            command = [sys.executable, "-c", _WORK, str(shard), where, str(cap_mb)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found.append(json.loads(done.stdout))
    last = found[-1]
    seconds = statistics.median(x["seconds"] for x in found)
    peak = max(x["peak_mb"] for x in found)
    return AllPairs(cap_mb, seconds, peak, last["kept"], last["n_files"], last["megabytes"])
