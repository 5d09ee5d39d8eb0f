"""``make bench``: every benchmark in one run, figures as ratios to ours."""

from __future__ import annotations

import tempfile

from rich.console import Console
from rich.table import Table

from benchmarks import counting


def main() -> None:
    """Write a closed-world shard, time every side on it and print the table."""
    from eval_workers.closed_world.writer import WorldOptions, write_world

    with tempfile.TemporaryDirectory() as directory:
        world = write_world(WorldOptions(n_tokens=1_000_000, n_shards=1), directory)
        timings, kept = counting.run(world.shards[0])
    ours = timings[0]
    table = Table(title=f"one core, {ours.megabytes:.1f} MB of text, {kept:,} kept tokens")
    for heading in ("what", "seconds", "MB/s", "ours is faster by"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for timing in timings:
        ratio = ours.megabytes_per_second / timing.megabytes_per_second
        cells = (f"{timing.seconds:.3f}", f"{timing.megabytes_per_second:.1f}", f"{ratio:.2f}x")
        table.add_row(timing.name, *cells)
    Console().print(table)
    Console().print(f"plumbline: {kept / ours.seconds / 1e6:.2f} M kept tokens/s on one core")


if __name__ == "__main__":
    main()
