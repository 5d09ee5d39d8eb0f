"""Forward passes side by side on a CPU, in lanes that share the weights.

Threads of one matrix product wait for each other at every small kernel; if another program uses a
core, all of them are delayed. Lanes don't wait for each other: each lane is a thread that computes
one whole pass after another. One lane per core of this process suits a busy machine too.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from plumbline.eval_workers.models import devices

Item = TypeVar("Item")


def shares(n_threads: int, n_items: int) -> tuple[int, int]:
    """Number of lanes for ``n_items`` passes, and number of threads per lane.

    >>> shares(2, 20), shares(16, 6), shares(16, 1), shares(1, 20)
    ((2, 1), (6, 2), (1, 16), (1, 1))
    """
    n_lanes = max(1, min(n_threads, n_items))
    return n_lanes, n_threads // n_lanes


def in_lanes(work: Callable[[Item], None], items: Sequence[Item], n_threads: int) -> None:
    """Call ``work`` on each item in lanes that share ``n_threads``; items are started in order.

    A single lane runs in the calling thread. The first error, or an interruption of the calling
    thread, stops all lanes and is raised.
    """
    n_lanes, n_each = shares(n_threads, len(items))
    if n_lanes == 1:
        for item in items:
            work(item)
        return
    remaining, errors = iter(items), list[BaseException]()
    lock = threading.Lock()

    def lane() -> None:
        try:
            devices.limit_threads(n_each)
            while not errors:
                with lock:
                    item = next(remaining, None)
                if item is None:
                    return
                work(item)
        except BaseException as e:  # raised in the calling thread
            errors.append(e)

    lanes = [threading.Thread(target=lane, daemon=True) for _ in range(n_lanes)]
    try:
        for thread in lanes:
            thread.start()
        for thread in lanes:
            thread.join()
    except BaseException as e:  # Ctrl-C, which only the calling thread gets
        errors.append(e)
        _interrupt(lanes)
        raise
    finally:
        for thread in lanes:
            if thread.ident is not None:
                thread.join()
        devices.limit_threads(n_threads)  # later threads would inherit a lane's number
    if errors:
        raise errors[0]


def _interrupt(threads: Sequence[threading.Thread]) -> None:
    """Raise ``KeyboardInterrupt`` in each live thread, once its current kernel is done."""
    for thread in threads:
        if thread.is_alive():
            id_, error = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(KeyboardInterrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(id_, error)
