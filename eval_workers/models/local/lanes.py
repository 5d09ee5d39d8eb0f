"""Lanes: forward passes at the same time on one copy of the weights.

On a CPU, threads of one matrix product wait for each other at every small kernel; if another
program uses a core, all of them are delayed. So each lane is a thread that computes one whole pass
after another. Lanes don't wait for each other; one lane per core suits a busy machine too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from plumbline.eval_workers.models import devices

Item = TypeVar("Item", bound=Hashable)
Part = TypeVar("Part")
#: Maps items, a pass's start index and its token limit to the pass's end index (exclusive).
EndOfPass = Callable[[Sequence[Item], int, int], int]
#: In the thread of a lane, ``stop`` is the event that ends its lanes.
_lane = threading.local()


class Stopped(Exception):
    """Another lane failed, or Ctrl-C was pressed: the results of this pass aren't needed."""


def in_lanes(work: Callable[[Part], object], items: Sequence[Part], n_threads: int) -> None:
    """Call ``work`` on each item in lanes that share ``n_threads``; items are started in order.

    A single lane runs in the calling thread. The first error, or Ctrl-C, is raised once the passes
    that run already have ended, or stopped at ``raise_if_stopped``; no other is started.
    """
    n_lanes, n_each = shares(n_threads, len(items))
    if n_lanes == 1:
        for item in items:
            work(item)
        return
    stop = threading.Event()
    pool = ThreadPoolExecutor(n_lanes, initializer=_start_lane, initargs=(n_each, stop))
    try:
        for done in as_completed([pool.submit(work, item) for item in items]):
            done.result()
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        devices.limit_threads(n_threads)  # later threads would inherit a lane's number


def raise_if_stopped() -> None:
    """Raise ``Stopped`` if this thread is a lane that has to end."""
    if hasattr(_lane, "stop") and _lane.stop.is_set():
        raise Stopped


def _start_lane(n_threads: int, stop: threading.Event) -> None:
    devices.limit_threads(n_threads)
    _lane.stop = stop


def shares(n_threads: int, n_items: int) -> tuple[int, int]:
    """Return the number of lanes for ``n_items`` passes, and the number of threads per lane.

    >>> shares(2, 20), shares(16, 6), shares(16, 1), shares(1, 20)
    ((2, 1), (6, 2), (1, 16), (1, 1))
    """
    n_lanes = max(1, min(n_threads, n_items))
    return n_lanes, n_threads // n_lanes


def passes(items: Sequence[Item], end_of: EndOfPass[Item], n_tokens: int) -> Iterator[list[Item]]:
    """Yield consecutive items in passes of at most ``n_tokens``, as ``end_of`` ends them."""
    start = 0
    while start < len(items):
        end = end_of(items, start, n_tokens)
        yield list(items[start:end])
        start = end


def equal_lengths(length: Callable[[Item], int]) -> EndOfPass[Item]:
    """End a pass at a change of length, or before it exceeds its token limit.

    >>> equal_lengths(len)(["ab", "cd", "ef", "ghi"], 0, 4)
    2
    """

    def end_of(items: Sequence[Item], start: int, n_tokens: int) -> int:
        n_each, end = length(items[start]), start + 1
        while end < len(items) and length(items[end]) == n_each:
            if (end + 1 - start) * n_each > n_tokens:
                break
            end += 1
        return end

    return end_of
