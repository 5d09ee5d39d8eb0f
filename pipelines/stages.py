"""What flows share: announcing stages, timing them, and being stopped by a signal."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from plumbline.pipelines import disk
from plumbline.pipelines.reaper import reaped
from plumbline.warehouse.errors import BadInput, Interrupted, PlumblineError
from plumbline.warehouse.text.escape import terminal
from plumbline.warehouse.text.progress import progress

CONSOLE = Console(highlight=False, markup=False, emoji=False)

Order = TypeVar("Order")
Outcome = TypeVar("Outcome")


class Stages:
    """Announces stages and keeps their wall times for the closing table."""

    def __init__(self) -> None:
        self.seconds: list[tuple[str, float]] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Run the block as the stage ``name``; a long one says how long it takes."""
        CONSOLE.print(terminal(name), style="bold")
        start = time.monotonic()
        with progress(name):
            yield
        self.seconds.append((name, time.monotonic() - start))

    def table(self) -> Table:
        """The stages and their wall times."""
        table = Table("stage", title="wall time", title_justify="left")
        table.add_column("seconds", justify="right")
        for name, seconds in self.seconds:
            table.add_row(terminal(name), f"{seconds:.1f}")
        table.add_row("all", f"{sum(s for _, s in self.seconds):.1f}", style="bold")
        return table


def sigterm_interrupts() -> None:
    """Have SIGTERM end this process as Ctrl-C does; a flow calls it again, Prefect takes it over.

    By default a process goes at once and leaves behind what it started. Prefect's own exception
    breaks into a running event loop, where an interrupt cancels its tasks in order.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(*_: object) -> None:
    # What a shell starts in the background ignores Ctrl-C; a SIGTERM is meant for it all the same.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)


def was_stopped(error: BaseException | None) -> bool:
    """Whether a signal is behind an error: it stops Prefect's server, too, which then complains."""
    from prefect.exceptions import TerminationSignal

    while error is not None:
        if isinstance(error, (KeyboardInterrupt, TerminationSignal, Interrupted)):
            return True
        error = error.__context__
    return False


def run_flow(flow: Callable[[Order], Outcome], order: Order) -> Outcome:
    """Run a flow; a stop by a signal is ``Interrupted``, one line like every error."""
    try:
        with reaped():
            return flow(order)
    except BaseException as e:
        line = e if isinstance(e, PlumblineError) else told(e)
        if line is None or line is e:
            raise
        raise line from None


def told(error: BaseException) -> PlumblineError | None:
    """The line for a flow that was stopped, or whose server is gone; ``None`` for other errors.

    A server that fails for want of room has its disk named.
    """
    if was_stopped(error):
        return Interrupted("stopped", "", "run the same command again to resume")
    if isinstance(error, PlumblineError) or not any(map(_is_of_server, disk.chain(error))):
        return None
    if (full := disk.full_place()) is not None:
        return BadInput(str(full), "no space left for Prefect", "make room, or set PREFECT_HOME")
    _forget_events()
    fix = "a machine too busy, or its process killed? Run the same command again to resume"
    return Interrupted("Prefect's server", "does not answer", fix)


def _forget_events() -> None:
    """At the end Prefect tries for seconds to tell each event to a server that is gone, aloud."""
    from prefect.events.worker import EventsWorker

    async def forget(*_: object) -> None:
        pass

    setattr(EventsWorker, "_handle", forget)  # noqa: B010 (there is no public way)
    logging.getLogger("EventsWorker").setLevel(logging.CRITICAL)


def _is_of_server(error: BaseException) -> bool:
    """Whether an error is about calls to Prefect's server: one that is gone or never came up."""
    if isinstance(error, RuntimeError) and "ephemeral Prefect API server" in str(error):
        return True
    request = getattr(error, "_request", None)  # its property raises where there is none
    return str(getattr(getattr(request, "url", None), "path", "")).startswith("/api/")
