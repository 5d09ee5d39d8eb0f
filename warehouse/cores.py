"""Count the CPU cores that this process may use, given its affinity and container's quota."""

from __future__ import annotations

import math
import os
from pathlib import Path


def n_cores() -> int:
    """Return how many cores this process may use, at least 1. A fractional quota is rounded up."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    limits = quotas(Path("/sys/fs/cgroup"), Path("/proc/self/cgroup"))
    return max(1, math.ceil(min([allowed, *limits])))


def quotas(cgroups: Path, listing: Path) -> list[float]:
    """Return the CPU quotas, in cores, of a process's control group (v2) and of its parent groups.

    ``listing`` is a file that names the group, like ``/proc/self/cgroup``. In a container, it may
    name a group of the host that doesn't exist under ``cgroups``. Then only the parents have
    quotas.
    """
    name = next((line[4:] for line in _text(listing).splitlines() if line[:4] == "0::/"), "")
    limits = []
    for group in (cgroups / name, *(cgroups / name).parents):
        quota, _, period = _text(group / "cpu.max").partition(" ")
        # If the group has no quota, the file has "max" instead of a number.
        limits += [int(quota) / int(period)] if quota.isdecimal() else []
    return limits


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError:
        return ""
