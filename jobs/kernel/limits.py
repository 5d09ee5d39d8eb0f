"""Memory limits of a counter."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Limits:
    """Bounds of a counter's memory.

    Attributes:
        n_bytes: total size of tables above which counts are handed over instead of growing one.
        cache_slots: most slots of the chunk cache, a power of 2; emptying it loses no counts.
    """

    n_bytes: int = 1 << 62
    cache_slots: int = 1 << 20

    @property
    def n_answers(self) -> int:
        """Most chunks of a language other than English whose pieces are remembered.

        They take about 100 bytes each, twice that while their table grows.
        """
        return min(self.cache_slots, max(self.n_bytes >> 10, 1 << 14))


def limits_within(memory_bytes: int, all_pairs: bool = False) -> Limits:
    """Limits under which this process stays below ``memory_bytes``.

    The counter gets two fifths of what the process doesn't use before it counts: tables made of its
    counts take as much again, and writing them takes more. With all pairs it gets half, since pairs
    are handed over in smaller tables. Nothing is guaranteed below
    ``jobs.corpus_options.LEAST_MEMORY``.
    """
    left = max(memory_bytes - _bytes_at_first(), 1 << 27)
    share = left // 2 if all_pairs else 2 * left // 5
    return Limits(share, min(1 << 20, 1 << (share // 128).bit_length()))


@cache
def _bytes_at_first() -> int:
    """Bytes this process used at the first call, before any count; without /proc, 300 MiB."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 300 << 20
    return pages * resource.getpagesize()
