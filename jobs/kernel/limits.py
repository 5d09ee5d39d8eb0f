"""How much memory a counter may use."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from functools import cache
from pathlib import Path

#: Smallest cap of a task's memory that can be kept.
LEAST_MEMORY = 512 << 20


@dataclass(frozen=True)
class Limits:
    """Bounds of a counter's memory.

    Attributes:
        n_bytes: size of all tables at which counts are handed over before any of them grows.
        cache_slots: most slots of the chunk cache, which may be emptied without losing counts.
    """

    n_bytes: int = 1 << 62
    cache_slots: int = 1 << 20


def limits_within(memory_bytes: int, all_pairs: bool = False) -> Limits:
    """Limits under which this process stays below ``memory_bytes``.

    Two fifths of what it did not use from the start go to the counter: tables made of its counts
    take as much again, and writing them some more. Pairs of any two words are handed over in
    smaller tables, so half may be taken with them. Below :data:`LEAST_MEMORY` no bound is promised.
    """
    left = max(memory_bytes - _bytes_at_first(), 1 << 27)
    share = left // 2 if all_pairs else 2 * left // 5
    return Limits(share, min(1 << 20, 1 << (share // 128).bit_length()))


@cache
def _bytes_at_first() -> int:
    """Memory of this process when first asked for, before any count; a guess where unknown."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 300 << 20
    return pages * resource.getpagesize()
