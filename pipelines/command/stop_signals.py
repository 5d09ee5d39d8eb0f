"""Handle Ctrl-C and SIGTERM: print one line and exit with status 5, at any time."""

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import Any, NoReturn

LINE = "interrupted; finished steps are kept: run the same command again"
STATUS = 5
#: A stopped process ends after this many seconds, even if a library is busy or clean-up hangs.
_GRACE_S = 4.0
_STOPS = (signal.SIGINT, signal.SIGTERM)
_received = threading.Event()
_complained = threading.Event()


def received() -> bool:
    """True if this process got a stop signal, even if a library caught ``KeyboardInterrupt``."""
    return _received.is_set()


def listen() -> None:
    """Make the first Ctrl-C or SIGTERM raise ``KeyboardInterrupt``, and the second end the process.

    A thread ends the process ``_GRACE_S`` seconds after the first signal. If Ctrl-C was ignored
    when the process started, it stays ignored. A forked process must call ``listen`` again.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _stop)
    signal.signal(signal.SIGTERM, _stop)
    sys.unraisablehook = _without_stops
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)  # Python writes signals here
    threading.Thread(target=_end_in_time, args=(read_end,), daemon=True).start()


def _stop(_number: int, _frame: object) -> None:
    if received():  # a second signal: end at once; stored results are kept
        _end()
    _received.set()
    # Don't raise while Numba compiles: an exception in an LLVM callback could abort Python.
    # `_end_in_time` ends the process instead.
    lock = getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None)
    if lock is None or not lock.is_locked():
        raise KeyboardInterrupt


def _without_stops(unraisable: Any) -> None:
    """Print an exception from a destructor or callback, unless the process got a stop signal."""
    if not received():
        sys.__unraisablehook__(unraisable)


def _end_in_time(signals: int) -> None:
    """End the process when the first signal is repeated, or after ``_GRACE_S`` seconds.

    Runs in a thread, because Python runs no signal handler during a long call such as a query.
    ``signals`` is the read end of a pipe. Python writes each signal's number to this pipe.
    """
    while (first := os.read(signals, 1)[0]) not in _STOPS:
        pass
    end = time.monotonic() + _GRACE_S
    while select.select([signals], [], [], max(0.0, end - time.monotonic()))[0]:
        if os.read(signals, 1)[0] == first:
            break
    _end()


def _end(status: int = STATUS) -> NoReturn:
    """End this process and its multiprocessing children at once.

    Other child processes end when their pipes close.
    """
    if status:
        complain()
    if library := sys.modules.get("multiprocessing.process"):
        for child in library.active_children():
            with suppress(Exception):
                child.kill()
    os._exit(status)


def complain() -> None:
    """Print the error ``LINE``, but only once. Works even while the process shuts down."""
    if not _complained.is_set():
        _complained.set()
        with suppress(OSError):
            os.write(2, f"error: {LINE}\n".encode())


def leave(status: int) -> NoReturn:
    """End this process with an exit status, and ignore further signals.

    After a stop signal, runs ``atexit`` functions but skips the rest of Python's shutdown, because
    running threads could make Python abort. The exit status is then 0 or ``STATUS``.
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
