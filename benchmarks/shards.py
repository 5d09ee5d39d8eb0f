"""Shards for the benchmarks: real text in the sizes that a measurement needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def joined(parts: Sequence[Path], out: Path) -> Path:
    """One `.jsonl.zst` shard with the documents of several: their frames one after another."""
    with out.open("wb") as file:
        for part in parts:
            file.write(part.read_bytes())
    return out


def rotated(parts: Sequence[Path], directory: Path, times: int) -> list[Path]:
    """As many shards as parts, of equal documents in other orders, so that no two have equal bytes.

    Each holds all parts ``times`` times. Their words repeat, as those of a text of that size
    would not: for comparing ways to run the same counting, not for its speed as such.
    """
    shards = []
    for k in range(len(parts)):
        order = [*parts[k:], *parts[:k]] * times
        shards.append(joined(order, directory / f"{k:03}.jsonl.zst"))
    return shards
