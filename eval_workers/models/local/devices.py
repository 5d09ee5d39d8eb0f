"""The CUDA devices, threads and free memory that this process can use.

A lane is a thread that computes one whole forward pass after another. All lanes share one copy of
the weights. Lanes don't wait for each other, so one lane per core works well even on a busy
machine. If threads shared each matrix product, all would wait for the slowest.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import psutil
import torch

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.cores import n_cores

#: Default tokens per forward pass. On a CPU, a pass reads one tree of texts. Larger trees aren't
#: faster, because the cost of attention grows with the square of the tree's size.
_BATCH_TOKENS = {"cpu": 512, "cuda": 4096}
#: In a lane, ``_lane.stop`` is the event that stops all lanes of the same call of ``in_lanes``.
_lane = threading.local()
Part = TypeVar("Part")


def batch_tokens(options: ModelOptions, device: str) -> int:
    """Return the maximum number of tokens per forward pass: ``options.batch_tokens`` or a default.

    >>> batch_tokens(ModelOptions(), "cpu"), batch_tokens(ModelOptions(batch_tokens=9), "cuda")
    (512, 9)
    """
    return options.batch_tokens or _BATCH_TOKENS[device]


def n_threads() -> int:
    """Return the number of threads for matrix products: torch's setting, at most one per core."""
    return min(torch.get_num_threads(), n_cores())


class Stopped(Exception):
    """Raised to stop a lane after another lane has failed or the user has pressed Ctrl-C."""


def in_lanes(work: Callable[[Part], object], items: Sequence[Part], n_threads: int) -> None:
    """Call ``work`` on each item, in up to ``n_threads`` threads (lanes) at once.

    Calls start in the order of the items. A single lane runs in the calling thread. After the first
    error, or Ctrl-C, no more calls start. The error is raised when all running calls have ended. To
    end early, ``work`` can call ``raise_if_stopped`` from time to time.
    """
    n_lanes = max(1, min(n_threads, len(items)))
    if n_lanes == 1:
        for item in items:
            work(item)
        return
    stop = threading.Event()
    pool = ThreadPoolExecutor(n_lanes, "", _start_lane, (n_threads // n_lanes, stop))
    try:
        for done in as_completed([pool.submit(work, item) for item in items]):
            done.result()
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(n_threads)  # otherwise, later threads would inherit a lane's limit


def _start_lane(n_threads: int, stop: threading.Event) -> None:
    torch.set_num_threads(n_threads)  # applies to this thread and to threads started later
    _lane.stop = stop


def raise_if_stopped() -> None:
    """Raise ``Stopped`` if this thread is a lane that should stop."""
    if hasattr(_lane, "stop") and _lane.stop.is_set():
        raise Stopped


def release() -> None:
    """Free the memory of models that are no longer used."""
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def free_bytes(device: str) -> int:
    """Return the free memory of the device in bytes."""
    if device != "cpu":
        return int(torch.cuda.mem_get_info()[0])
    free = int(psutil.virtual_memory().available)
    container = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current"))
    with suppress(OSError, ValueError):  # raised if cgroup 2 is missing or sets no memory limit
        limit, used = (int(path.read_text()) for path in container)
        free = min(free, limit - used)
    return free
