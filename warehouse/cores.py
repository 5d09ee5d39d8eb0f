"""Cores that this process may use: its affinity and the CPU quota of its container."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_LISTING = Path("/proc/self/cgroup")


def n_cores() -> int:
    """Cores that this process may use, at least 1.

    >>> 1 <= n_cores() <= (os.cpu_count() or 1)
    True
    """
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    return within(allowed, quotas(_CGROUPS, _LISTING))


def within(n_cores: int, quotas: Sequence[float]) -> int:
    """``n_cores``, or the smallest quota (in cores, rounded up) if it is less; at least 1.

    >>> within(64, [3.5, 16.0]), within(2, []), within(2, [8.0]), within(8, [0.5])
    (4, 2, 2, 1)
    """
    return max(1, math.ceil(min([n_cores, *quotas])))


def quotas(cgroups: Path, listing: Path) -> list[float]:
    """CPU quotas, in cores, of a process's control groups (v1 or v2) and of their parent groups.

    ``listing``: a file that lists the groups, as ``/proc/self/cgroup``. In a container it may have
    paths on the host: groups that don't exist under ``cgroups`` are left out.
    """
    limits = []
    for line in _lines(listing):
        _, controllers, name = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = cgroups / controllers  # v2 names no controllers
        group = root / name.lstrip("/")
        for directory in (group, *(p for p in group.parents if p.is_relative_to(root))):
            limits += _quota(directory)
    return limits


def _quota(group: Path) -> list[float]:
    """A group's quota in cores (CPU time per period / period); empty without a limit."""
    words = " ".join(_lines(group / "cpu.max")).split()
    if not words:
        words = [*_lines(group / "cpu.cfs_quota_us"), *_lines(group / "cpu.cfs_period_us")]
    try:
        quota, period = map(int, words)
    except ValueError:  # "max", or neither file
        return []
    return [quota / period] if quota > 0 and period > 0 else []


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except OSError:
        return []
