"""Helpers: further processes of one command that compute chunks.

A helper runs this module in a fresh interpreter. It computes chunks and publishes nothing, so if
it dies, at most one chunk is lost. Its standard input is a pipe that closes when the command ends,
so no helper outlives the command.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from tempfile import TemporaryFile
from typing import IO, Any

from plumbline.warehouse.errors import Interrupted, PlumblineError
from plumbline.warehouse.steps.step import Step
from plumbline.warehouse.storage.store import Store

#: Seconds that a helper gets to stop by itself.
_GRACE_S = 5.0
#: With -P, a file in the working directory can't replace a module.
_HELPER = (sys.executable, "-P", "-m", "plumbline.warehouse.steps.helper_processes")


@contextmanager
def helpers(
    store: Store,
    opened: Callable[[Store], AbstractContextManager[Any]],
    steps: Sequence[Step[Any]],
    environments: Sequence[Mapping[str, str]],
    say: Callable[[str], None],
) -> Iterator[None]:
    """Run a helper in each environment except the first for the length of the block.

    This process is the first worker. ``opened`` returns a context manager that opens the steps'
    resource; it and the steps are pickled. ``say`` gets a line for each helper that fails.
    """
    job, stopping = pickle.dumps((str(store.root), opened, steps)), threading.Event()
    running: list[subprocess.Popen[bytes]] = []

    def watch(process: subprocess.Popen[bytes], number: int, output: IO[bytes]) -> None:
        with output:
            if process.wait() and not stopping.is_set():
                output.seek(0)
                lines = output.read().decode(errors="replace").split("\n")
                last = next((line for line in reversed(lines) if line.strip()), "")
                if process.returncode < 0 or not last:
                    last = f"ended with {process.returncode}"
                say(f"worker {number} failed: {last.strip()}; the others take over its work")

    try:
        for number, environment in enumerate(environments[1:], 2):
            output = TemporaryFile()  # noqa: SIM115  (``watch`` closes it)
            process = _started(job, environment, output)
            running.append(process)
            arguments = (process, number, output)
            threading.Thread(target=watch, args=arguments, daemon=True).start()
        yield
    finally:
        stopping.set()
        _stop(running)


def _started(
    job: bytes, environment: Mapping[str, str], output: IO[bytes]
) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        _HELPER,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        env=environment,
        start_new_session=True,  # Ctrl-C reaches the command, which stops its helpers
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it died at once; its watcher reports it
        process.stdin.write(job)
        process.stdin.flush()
    return process


def _stop(running: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in running:
        process.send_signal(signal.SIGINT)
    for process in running:
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin is not None:
            with suppress(BrokenPipeError):
                process.stdin.close()


def main() -> int:
    """Compute chunks of the job on standard input until none is left; return the exit status."""
    warehouse, opened, steps = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_leave_with_the_command, daemon=True).start()
    try:
        store = Store.open(warehouse, create=False)
        with opened(store) as resource:
            for step in steps:
                plan = step.plan(store, resource, step.state(store, resource))
                plan.work(partial(step.compute, resource), lambda n_left: None)
    except PlumblineError as e:
        print(e, file=sys.stderr)
        return e.exit_code
    except KeyboardInterrupt:
        return Interrupted.exit_code
    return 0


def _leave_with_the_command() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(Interrupted.exit_code)


if __name__ == "__main__":
    sys.exit(main())
