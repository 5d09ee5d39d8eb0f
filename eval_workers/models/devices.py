"""The CUDA devices, threads and free memory that this process can use.

Lanes are forward passes at the same time on one copy of the weights. On a CPU, threads of one
matrix product wait for each other at every small kernel; if another program uses a core, all of
them are delayed. So each lane is a thread that computes one whole pass after another. Lanes don't
wait for each other; one lane per core suits a busy machine too.
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

#: Tokens per forward pass. More aren't faster on a CPU: there a causal model reads a pass as one
#: tree of texts, and attention is quadratic in the length of the tree.
_BATCH_TOKENS = {"cpu": 512, "cuda": 4096}
#: Backends whose workers need devices of their own.
_OF_DEVICES = ("transformers", "vllm")
#: In the thread of a lane, ``stop`` is the event that ends its lanes.
_lane = threading.local()
Part = TypeVar("Part")


def batch_tokens(options: ModelOptions, device: str) -> int:
    """Tokens per forward pass: the option's number, or the default of ``cpu`` or ``cuda``.

    >>> batch_tokens(ModelOptions(), "cpu"), batch_tokens(ModelOptions(batch_tokens=9), "cuda")
    (512, 9)
    """
    return options.batch_tokens or _BATCH_TOKENS[device]


def visible() -> list[str]:
    """CUDA devices of this process, by their names in ``CUDA_VISIBLE_DEVICES``."""
    n_devices = torch.cuda.device_count()
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return [str(i) for i in range(n_devices)]
    return [name.strip() for name in named.split(",")][:n_devices]


def worker_environments(options: ModelOptions, n_workers: int) -> list[dict[str, str]]:
    """The environment of each of several processes with a model: its devices and threads.

    Without ``OMP_NUM_THREADS`` this process, the first, gets its share of the threads, too. Raises
    ``UsageProblem`` for too few devices.
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
    """Threads for matrix products: torch's number, at most the cores of this process."""
    return min(torch.get_num_threads(), n_cores())


def limit_threads(n_threads: int) -> None:
    """Set how many threads a matrix product takes, in this Python thread and in later ones."""
    torch.set_num_threads(n_threads)


class Stopped(Exception):
    """Another lane failed, or Ctrl-C was pressed: the results of this pass aren't needed."""


def in_lanes(work: Callable[[Part], object], items: Sequence[Part], n_threads: int) -> None:
    """Call ``work`` on each item in lanes that share ``n_threads``; items are started in order.

    A single lane runs in the calling thread. The first error, or Ctrl-C, is raised once the passes
    that run already have ended, or stopped at ``raise_if_stopped``; no other is started.
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
        limit_threads(n_threads)  # later threads would inherit a lane's number


def _start_lane(n_threads: int, stop: threading.Event) -> None:
    limit_threads(n_threads)
    _lane.stop = stop


def raise_if_stopped() -> None:
    """Raise ``Stopped`` if this thread is a lane that has to end."""
    if hasattr(_lane, "stop") and _lane.stop.is_set():
        raise Stopped


def release() -> None:
    """Free the memory of models that are no longer used."""
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def free_bytes(device: str) -> int:
    """Free memory of ``cpu`` or ``cuda`` in bytes; outside Linux all memory of the machine."""
    if device != "cpu":
        return int(torch.cuda.mem_get_info()[0])
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvailable:"))
    except (OSError, StopIteration):  # not Linux
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    of_container = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current"))
    with suppress(OSError, ValueError):  # without a limit (cgroup 2)
        limit, used = (int(path.read_text()) for path in of_container)
        free = min(free, limit - used)
    return free
