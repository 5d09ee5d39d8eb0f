"""Progress of the stages that Spark runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from plumbline.warehouse.errors import Interrupted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def running_tasks(session: SparkSession) -> tuple[int, int, int]:
    """Completed tasks of the stages that are running, all their tasks, and those that run now.

    How many stages follow is unknown: Spark plans each stage by the size of the last one's output.
    """
    tracker = session.sparkContext.statusTracker()
    stages = list(filter(None, map(tracker.getStageInfo, tracker.getActiveStageIds())))
    n_done, n_active = (sum(getattr(s, n) for s in stages) for n in _OF_TASKS)
    return n_done, sum(s.numTasks for s in stages), n_active


_OF_TASKS = ("numCompletedTasks", "numActiveTasks")
T = TypeVar("T")


def watched(
    work: Callable[[], T],
    *,
    report: Callable[[], None] | None = None,
    cancel: Callable[[], None] | None = None,
) -> T:
    """Run ``work`` in a thread; returns its result or raises its error.

    Args:
        report: called about five times a second while ``work`` runs.
        cancel: called repeatedly after Ctrl-C until ``work`` has ended; without it ``work``
            continues to its end.

    Raises:
        Interrupted: Ctrl-C was pressed.

    >>> watched(lambda: 1 + 1)
    2
    """
    with ThreadPoolExecutor(1) as pool, _interrupts() as pressed:
        outcome = pool.submit(work)
        while not outcome.done():
            wait([outcome], 0.2)
            step = cancel if pressed.is_set() else report
            if step:
                step()
        if pressed.is_set():
            raise Interrupted("interrupted; run the same command again to resume")
    return outcome.result()


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, instead of raising ``KeyboardInterrupt``.

    A ``KeyboardInterrupt`` inside a call to Java would print a traceback.
    """
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed  # signals reach the main thread only
        return
    before = signal.signal(signal.SIGINT, lambda *_: pressed.set())
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
