"""Count the CPU cores that this process may use, given CPU affinity and container quota."""

from __future__ import annotations

import os
from functools import cache


def n_cores() -> int:
    """Return how many cores this process may use, at least 1. A fractional quota is rounded up."""
    within_quota = _n_threads_of_duckdb()
    if hasattr(os, "sched_getaffinity"):
        return min(within_quota, len(os.sched_getaffinity(0)))
    return within_quota


@cache
def _n_threads_of_duckdb() -> int:
    import duckdb

    with duckdb.connect() as connection:
        [(n,)] = connection.execute("SELECT current_setting('threads')").fetchall()
    return int(n)
