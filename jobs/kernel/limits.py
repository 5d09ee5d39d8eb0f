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
        n_bytes: limit on the total size of the tables. At the limit counts are handed over.
        cache_slots: most slots of the chunk cache, a power of 2; emptying it loses no counts.
    """

    n_bytes: int = 1 << 62
    cache_slots: int = 1 << 20

    @property
    def n_answers(self) -> int:
        """Most chunks whose pieces are remembered, for languages other than English.

        A chunk takes about 100 bytes, twice that while the table grows.
        """
        return min(self.cache_slots, max(self.n_bytes >> 10, 1 << 14))


def limits_within(memory_bytes: int, all_pairs: bool = False) -> Limits:
    """Limits under which this process stays below ``memory_bytes``.

    The counter gets two fifths of the memory that the process hasn't used at the first call. Arrow
    tables of its counts take as much again, and writing them takes more. With all pairs it gets
    half, since pairs are handed over in smaller tables. Below ``jobs.corpus_options.LEAST_MEMORY``
    the process may use more.
    """
    left = max(memory_bytes - _bytes_at_first(), 1 << 27)
    share = left // 2 if all_pairs else 2 * left // 5
    return Limits(share, min(1 << 20, 1 << (share // 128).bit_length()))


@cache
def _bytes_at_first() -> int:
    """Resident bytes of this process at the first call; without /proc, 300 MiB."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 300 << 20
    return pages * resource.getpagesize()
