"""Progress of the stages that Spark runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from plumbline.warehouse.errors import Interrupted
from plumbline.warehouse.text.progress import Update, progress

if TYPE_CHECKING:
    from pyspark import SparkStageInfo
    from pyspark.sql import SparkSession


def tasks_done(session: SparkSession) -> int:
    """Completed tasks of the stages that are running."""
    return sum(stage.numCompletedTasks for stage in _running(session))


class StageSteps:
    """Shows each stage that Spark runs inside the block as a step of its own.

    A stage's number of tasks, and whether another stage follows, is known only once it begins:
    Spark plans each stage by the size of the last one's output.
    """

    def __init__(self, session: SparkSession, what: str) -> None:
        self._session, self._what = session, what
        self._n_shown = 0
        self._shown: SparkStageInfo | None = None
        self._step = ExitStack()
        self._update: Update

    def __enter__(self) -> StageSteps:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._end(completed=kind is None)

    def report(self) -> None:
        """Show the running stage; of several, the one shown before, else the first."""
        running = _running(self._session)
        stage = next((s for s in running if _id(s) == _id(self._shown)), None)
        if stage is None and running:
            stage = running[0]
            self._end(completed=True)
            self._n_shown += 1
            # A stage's name is a call and its place: `count at x.py:3`.
            what = f"{self._what}, Spark stage {self._n_shown} ({stage.name.split(' at ')[0]})"
            self._update = self._step.enter_context(progress(what, "tasks"))
        if stage is not None:
            self._shown = stage
            self._update(stage.numCompletedTasks, stage.numTasks)

    def _end(self, *, completed: bool) -> None:
        if self._shown and completed:
            self._update(self._shown.numTasks, self._shown.numTasks)
        self._shown = None
        self._step.close()


def _running(session: SparkSession) -> list[SparkStageInfo]:
    tracker = session.sparkContext.statusTracker()
    stages = (tracker.getStageInfo(number) for number in sorted(tracker.getActiveStageIds()))
    return [stage for stage in stages if stage is not None]


def _id(stage: SparkStageInfo | None) -> tuple[int, int] | None:
    return (stage.stageId, stage.currentAttemptId) if stage else None


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
    outcome: list[T] = []
    error: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as e:
            error.append(e)

    thread = threading.Thread(target=run, daemon=True)
    with _interrupts() as pressed:
        thread.start()
        while thread.is_alive():
            thread.join(0.2)
            step = cancel if pressed.is_set() else report
            if step:
                step()
        if pressed.is_set():
            raise Interrupted("interrupted; run the same command again to resume")
    if error:
        raise error[0]
    return outcome[0]


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
