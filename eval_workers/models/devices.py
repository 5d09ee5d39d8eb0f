"""The CUDA devices, threads and free memory that this process can use.

Lanes are forward passes that run at the same time on one copy of the weights. On a CPU, threads
that share a matrix product wait for each other at every small kernel; if another program uses one
core, all these threads are delayed. So each lane is a thread that computes one whole pass after
another. Lanes don't wait for each other, so one lane per core also works well on a busy machine.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import torch

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.cores import n_cores
from plumbline.warehouse.errors import UsageProblem

#: Tokens per forward pass. Larger passes aren't faster on a CPU: there a causal model reads a pass
#: as one tree of texts, and the cost of attention is quadratic in the length of the tree.
_BATCH_TOKENS = {"cpu": 512, "cuda": 4096}
#: Backends whose workers each need devices of their own.
_OF_DEVICES = ("transformers", "vllm")
#: In a lane's thread, the attribute ``stop`` is the event that ends all lanes of the same call.
_lane = threading.local()
Part = TypeVar("Part")


def batch_tokens(options: ModelOptions, device: str) -> int:
    """Return the tokens per forward pass: the option's number, or the default for the device.

    >>> batch_tokens(ModelOptions(), "cpu"), batch_tokens(ModelOptions(batch_tokens=9), "cuda")
    (512, 9)
    """
    return options.batch_tokens or _BATCH_TOKENS[device]


def visible() -> list[str]:
    """Return the names of this process's CUDA devices, as in ``CUDA_VISIBLE_DEVICES``."""
    n_devices = torch.cuda.device_count()
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return [str(i) for i in range(n_devices)]
    return [name.strip() for name in named.split(",")][:n_devices]


def worker_environments(options: ModelOptions, n_workers: int) -> list[dict[str, str]]:
    """Return the environment of each worker process, which sets its devices and threads.

    If ``OMP_NUM_THREADS`` isn't set, this process, the first worker, is also limited to its share
    of the threads. Raises ``UsageProblem`` if there are too few devices.
    """
    environment = dict(os.environ)
    if "OMP_NUM_THREADS" not in environment:
        n_each = max(1, n_cores() // n_workers)
        limit_threads(n_each)
        environment["OMP_NUM_THREADS"] = str(n_each)
    uses_devices = options.backend in _OF_DEVICES and options.device != "cpu"
    if not (names := visible() if uses_devices else []):
        return [environment] * n_workers
    n_each = options.tensor_parallel
    n_needed = n_each * n_workers
    if n_needed > len(names):
        each = f", {n_each} for each" if n_each > 1 else ""
        problem = f"needs {n_needed} CUDA devices{each}, {len(names)} visible"
        raise UsageProblem(f"--workers {n_workers}", problem, "give fewer workers")
    shares = (names[i : i + n_each] for i in range(0, n_needed, n_each))
    return [{**environment, "CUDA_VISIBLE_DEVICES": ",".join(share)} for share in shares]


def n_threads() -> int:
    """Return the number of threads for matrix products: torch's, but at most one per core."""
    return min(torch.get_num_threads(), n_cores())


def limit_threads(n_threads: int) -> None:
    """Set how many threads a matrix product uses, in this Python thread and in later ones."""
    torch.set_num_threads(n_threads)


class Stopped(Exception):
    """Raised in a lane whose results aren't needed: another lane failed, or Ctrl-C was pressed."""


def in_lanes(work: Callable[[Part], object], items: Sequence[Part], n_threads: int) -> None:
    """Call ``work`` on each item, in lanes that share ``n_threads``; items are started in order.

    A single lane runs in the calling thread. After the first error, or Ctrl-C, no further pass is
    started. The error is raised once the running passes end or stop at ``raise_if_stopped``.
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
        limit_threads(n_threads)  # otherwise later threads would inherit a lane's limit


def _start_lane(n_threads: int, stop: threading.Event) -> None:
    limit_threads(n_threads)
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
    """Return the free memory of the device in bytes (outside Linux, all memory of the machine)."""
    if device != "cpu":
        return int(torch.cuda.mem_get_info()[0])
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvailable:"))
    except (OSError, StopIteration):  # not Linux
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    of_container = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current"))
    with suppress(OSError, ValueError):  # the container (cgroup 2) has no memory limit
        limit, used = (int(path.read_text()) for path in of_container)
        free = min(free, limit - used)
    return free
