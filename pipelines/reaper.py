"""What a flow started ends with it, also when it is killed: Prefect's server would go on for ever.

A small process waits for the end of this one, which closes its standard input, and then ends all
that carries this process's mark in its environment. Where there is no /proc (not Linux), nothing is
found. Run as a script by its path: it imports nothing of ours.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

#: Inherited by all that a flow starts.
_MARK = "PLUMBLINE_STARTED_BY"
#: After this what has not ended is killed; it is also how long something may yet come up.
_PATIENCE_S = 5.0


@contextmanager
def reaped() -> Iterator[None]:
    """Run the block so that what it starts outlives this process by some seconds at most."""
    mark = os.environ[_MARK] = uuid4().hex
    # A session of its own: a terminal's Ctrl-C is not for it.
    with subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, mark], stdin=subprocess.PIPE, start_new_session=True
    ) as waiting:
        try:
            yield
        finally:
            waiting.kill()
            os.environ.pop(_MARK, None)


def marked(mark: str) -> list[int]:
    """Processes that carry a mark, this one apart.

    >>> marked("no process has this")
    []
    """
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile, or is another user's
            if f"{_MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


def end_all(mark: str) -> None:
    """SIGTERM to all that carry the mark; SIGKILL to those that do not go."""
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        _send(mark, signal.SIGTERM)
        time.sleep(0.5)
    _send(mark, signal.SIGKILL)


def _send(mark: str, number: signal.Signals) -> None:
    for pid in marked(mark):
        with suppress(OSError):
            os.kill(pid, number)


if __name__ == "__main__":
    os.environ.pop(_MARK, None)
    sys.stdin.buffer.read()
    end_all(sys.argv[1])
