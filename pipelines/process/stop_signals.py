"""Signals that stop a command: one line and status 5, whatever they interrupt."""

from __future__ import annotations

import _thread
import atexit
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from types import FrameType
from typing import Any, NoReturn

LINE = "interrupted; run the same command again to resume"
STATUS = 5
#: Seconds after which a stopped process ends even if a library is busy or its clean-up hangs.
_GRACE_S = 4.0
_SOON_S = 0.05
_STOPS = (signal.SIGINT, signal.SIGTERM)
_received = threading.Event()
_complained = threading.Event()
#: Set when the exception of a stop was lost and the interrupt is sent again: the watching thread
#: (``_lost``) and the handler (``_expected``) must not take it for a second signal.
_lost, _expected = threading.Event(), threading.Event()


def received() -> bool:
    """True if this process got a signal to stop, whatever became of the exception."""
    return _received.is_set()


def listen() -> None:
    """Have Ctrl-C and SIGTERM raise ``KeyboardInterrupt`` here, and the next one end the process.

    A process that a shell starts in the background keeps ignoring Ctrl-C. A forked process has to
    call this again.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _stop)
    sigterm_interrupts(_stop)
    sys.unraisablehook = _again
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
    threading.Thread(target=_end_in_time, args=(ours,), daemon=True).start()


def sigterm_interrupts(
    handler: Callable[[int, FrameType | None], object] = signal.default_int_handler,
) -> None:
    """Have SIGTERM end this process as Ctrl-C does; flows call it again, as Prefect replaces it.

    By default SIGTERM ends a process at once, and the processes that it started live on. Prefect's
    own exception breaks into a running event loop; an interrupt cancels its tasks in order.
    """

    def interrupt(*_: object) -> None:
        # A process in a shell's background ignores Ctrl-C, but must not ignore SIGTERM.
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            signal.signal(signal.SIGINT, handler)
        signal.raise_signal(signal.SIGINT)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, interrupt)


def _stop(_number: int, _frame: FrameType | None) -> None:
    if _expected.is_set():
        _expected.clear()
    elif received():  # a second signal: end at once, since stored results survive a kill
        _end()
    _received.set()
    if (lock := _compiler_lock()) is None:
        raise KeyboardInterrupt
    _thread.start_new_thread(_interrupt_after, (lock,))


def _compiler_lock() -> AbstractContextManager[None] | None:
    """Numba's, if this thread compiles: an exception in LLVM's callbacks is lost or ends Python."""
    numba = sys.modules.get("numba.core.compiler_lock")
    lock = getattr(numba, "global_compiler_lock", None)
    return lock if lock is not None and lock.is_locked() else None


def _again(unraisable: Any) -> None:
    """Interrupt once more after a stop that was lost in a destructor or a library's callback."""
    if not received():
        sys.__unraisablehook__(unraisable)
    elif isinstance(unraisable.exc_value, KeyboardInterrupt):
        _thread.start_new_thread(_interrupt_after, (nullcontext(),))


def _interrupt_after(busy: AbstractContextManager[None]) -> None:
    with busy:
        time.sleep(_SOON_S)  # until the callback has returned
        _lost.set()
        _expected.set()
        # While this thread has the lock the main one compiles nothing; the signal ends its wait.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def _end_in_time(signals: int) -> None:
    """End the process in time even if a long call, such as a query, keeps the handler waiting."""
    while (first := os.read(signals, 1)[0]) not in _STOPS:
        pass
    end = time.monotonic() + _GRACE_S
    while select.select([signals], [], [], max(0.0, end - time.monotonic()))[0]:
        if os.read(signals, 1)[0] == first and not _lost.is_set():
            break  # a second signal: end at once
        _lost.clear()
    _end()


def _end(status: int = STATUS) -> NoReturn:
    """End at once and kill children of multiprocessing; others end when their pipes close."""
    if status:
        complain()
    if library := sys.modules.get("multiprocessing.process"):
        for child in library.active_children():
            with suppress(Exception):
                child.kill()
    os._exit(status)


def complain() -> None:
    """Print ``LINE`` once, in a way that works even while the process shuts down."""
    if not _complained.is_set():
        _complained.set()
        with suppress(OSError):
            os.write(2, f"error: {LINE}\n".encode())


def leave(status: int) -> NoReturn:
    """End this process with a status; signals are ignored from here on.

    After a stop libraries are not shut down: threads in the middle of work would abort.
    """
    for number in _STOPS:
        signal.signal(number, signal.SIG_IGN)
    if not received():
        sys.exit(status)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    _end(STATUS if status else 0)
