"""``make bench``: every benchmark in one run, figures as ratios to ours."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import counting, stages
from jobs.sweep import CountOptions
from warehouse import wordlists

#: Shards of the reference data that are measured when there is one.
REAL = ("gutenberg/00.jsonl.zst", "nltk/00.jsonl.zst")


def main() -> None:
    """Time every side on a written closed-world shard and, with PLUMBLINE_DATA, on real ones."""
    from eval_workers.closed_world.writer import WorldOptions, write_world

    with tempfile.TemporaryDirectory() as directory:
        world = write_world(WorldOptions(n_tokens=1_000_000, n_shards=1), directory)
        report("closed world", Path(world.shards[0]))
    data = os.environ.get("PLUMBLINE_DATA")
    for name in REAL if data else ():
        report(name, Path(str(data)) / "corpora" / name)


def report(name: str, shard: Path) -> None:
    """Measure one shard and print its two tables."""
    console = Console(width=100)
    timings, kept = counting.run(shard)
    ours = timings[0]
    table = Table(title=f"{name}: one core, {ours.megabytes:.1f} MB of JSON, {kept:,} kept tokens")
    for heading in ("what", "seconds", "MB/s", "ours is faster by"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for timing in timings:
        ratio = ours.megabytes_per_second / timing.megabytes_per_second
        cells = (f"{timing.seconds:.3f}", f"{timing.megabytes_per_second:.1f}", f"{ratio:.2f}x")
        table.add_row(timing.name, *cells)
    console.print(table)
    console.print(f"plumbline: {kept / ours.seconds / 1e6:.2f} M kept tokens/s on one core")
    parts = Table(title=f"{name}: where the time goes")
    parts.add_column("stage")
    parts.add_column("ms", justify="right")
    for part in stages.stages(shard, CountOptions(wordlists.load("gendered").targets)):
        parts.add_row(part.name, f"{1e3 * part.seconds:.1f}")
    console.print(parts)


if __name__ == "__main__":
    main()
