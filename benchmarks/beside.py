"""Counting by this checkout and by another, in turns: ``python -m benchmarks.beside CHECKOUT``.

Each counts in a process of its own that has counted the shard before, so that a machine whose
speed drifts slows both alike.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.shards import grown, joined

HERE = Path(__file__).resolve().parents[1]
#: Counts the shard at every line of its input and prints the milliseconds. A checkout from before
#: there was a thread that reads ahead counts without one.
_COUNTER = """
import inspect, sys, time
from pathlib import Path
from plumbline.jobs.counting.shard import count_shard
from plumbline.jobs.counting.corpus_options import CorpusOptions

options = CorpusOptions(evidence=False)
more = {"read_ahead": sys.argv[2] == "2"}
if "read_ahead" not in inspect.signature(count_shard).parameters:
    more = {}
count_shard(Path(sys.argv[1]), options.listed, options, **more)
print("ready", flush=True)
for _ in sys.stdin:
    start = time.perf_counter()
    count_shard(Path(sys.argv[1]), options.listed, options, **more)
    print(1000 * (time.perf_counter() - start), flush=True)
"""


def in_turns(
    checkouts: Sequence[Path], shard: Path, n_cores: int, rounds: int
) -> Iterator[tuple[float, ...]]:
    """Yield the milliseconds of each checkout in one round after the other.

    With one core both processes share core 0 and take turns on it; with two, one thread reads
    ahead where the checkout can.
    """
    pinned = ["taskset", "-c", "0"] if n_cores == 1 else []
    command = [*pinned, sys.executable, "-c", _COUNTER, str(shard), str(n_cores)]
    counters = []
    for checkout in checkouts:
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        counters.append(subprocess.Popen(command, cwd=checkout, env=environment, **pipes))
    try:
        if any(counter.stdout.readline() != "ready\n" for counter in counters):
            raise SystemExit("a checkout can't count: see above")
        for _ in range(rounds):
            yield tuple(_milliseconds(counter) for counter in counters)
    finally:
        for counter in counters:
            counter.kill()
            counter.wait()


def _milliseconds(counter: subprocess.Popen[str]) -> float:
    counter.stdin.write("\n")
    counter.stdin.flush()
    return float(counter.stdout.readline())


def main(other: Path) -> None:
    """Print the table, with the median of the ratios of the rounds."""
    real = sorted((Path(os.environ["PLUMBLINE_DATA"]) / "corpora").glob("*/*.jsonl.zst"))
    table = Table(title=f"Counting a shard, beside {other.name}")
    for head in ("shard", "cores", "other, least ms", "this, least ms", "times as fast, median"):
        table.add_column(head, justify="left" if head == "shard" else "right")
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory)
        shards = {
            name: (
                joined([p for p in real if p.parent.name == name], here / f"{name}.jsonl.zst"),
                25,
            )
            for name in ("gutenberg", "nltk")
        }
        shards["a gigabyte"] = grown(real, here / "large.jsonl.zst", 21), 3
        for name, (shard, rounds) in shards.items():
            for n_cores in (1, 2):
                times = list(in_turns((other, HERE), shard, n_cores, rounds))
                ratio = statistics.median(before / now for before, now in times)
                least = (f"{min(column):,.0f}" for column in zip(*times, strict=True))
                table.add_row(name, str(n_cores), *least, f"{ratio:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
