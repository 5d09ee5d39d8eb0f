"""Further processes of one command that compute chunks: their start, their work and their end.

A helper is this module in a fresh interpreter. It computes chunks and publishes nothing, so its
death loses one chunk at most. Its standard input is a pipe that closes when the command ends: no
helper outlives the command.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from plumbline.warehouse.errors import Interrupted, PlumblineError
from plumbline.warehouse.steps.step import Step
from plumbline.warehouse.storage.locks import temporary_directory
from plumbline.warehouse.storage.store import Store

#: Seconds that a helper has to stop, and seconds until its death is reported. If the command itself
#: ends with an error in this time, only this error is shown.
_GRACE_S = 5.0
_PATIENCE_S = 1.0
#: With -P, a file in the working directory replaces no module.
_HELPER = (sys.executable, "-P", "-m", "plumbline.warehouse.steps.helper_processes")


@dataclass(frozen=True)
class HelperJob:
    """A helper's work as data, sent to it as a line of JSON.

    ``opener``: a dataclass of plain values. Its method ``opened`` gets the store; the block that it
    returns has the steps' resource.
    """

    warehouse: str
    opener: Any
    steps: tuple[Step[Any], ...]

    def to_json(self) -> bytes:
        """One line of JSON; opener and steps are the names of module and class, and the fields."""
        parts = [(type(part), part) for part in (self.opener, *self.steps)]
        values = [
            (kind.__module__, kind.__name__, TypeAdapter(kind).dump_python(part, mode="json"))
            for kind, part in parts
        ]
        return json.dumps([self.warehouse, *values]).encode()

    @classmethod
    def from_json(cls, line: bytes) -> HelperJob:
        """The job that ``to_json`` wrote."""
        warehouse, *parts = json.loads(line)
        opener, *steps = (
            TypeAdapter(getattr(import_module(module), name)).validate_json(json.dumps(values))
            for module, name, values in parts
        )
        return cls(warehouse, opener, tuple(steps))


@contextmanager
def helpers(
    job: HelperJob, environments: Sequence[Mapping[str, str]], top: Path, say: Callable[[str], None]
) -> Iterator[None]:
    """Run a helper in each environment but the first for the length of the block.

    This process is the first worker. The helpers' logs are in ``top`` until the block ends. ``say``
    gets a line for each helper that fails.
    """
    stopping = threading.Event()
    with temporary_directory(top, "helpers-") as logs:
        running = []
        try:
            for number, environment in enumerate(environments[1:], 2):
                log = logs / f"{number}.log"
                running.append(_start(job, environment, log))
                watch = (running[-1], number, log, stopping, say)
                threading.Thread(target=_watch, args=watch, daemon=True).start()
            yield
        finally:
            stopping.set()
            _stop(running)


def _start(job: HelperJob, environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        process = subprocess.Popen(
            _HELPER,
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=file,
            env=environment,
            start_new_session=True,  # Ctrl-C reaches the command, which stops its helpers
        )
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it died at once; its watcher reports it
        process.stdin.write(job.to_json() + b"\n")
        process.stdin.flush()
    return process


def _watch(
    process: subprocess.Popen[bytes],
    number: int,
    log: Path,
    stopping: threading.Event,
    say: Callable[[str], None],
) -> None:
    """Wait for a helper's end; report it by a line if it failed and isn't being stopped."""
    status = process.wait()
    if status == 0 or stopping.wait(_PATIENCE_S):
        return
    lines = log.read_text("utf-8", "replace").split("\n") if log.exists() else []
    last = next((line for line in reversed(lines) if line.strip()), "")
    end = f"killed by {signal.Signals(-status).name}" if status < 0 else f"ended with {status}"
    reason = f": {last.strip()}" if last and status > 0 else ""
    say(f"worker {number} {end}{reason}; the others take over its work")


def _stop(running: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in running:
        if process.poll() is None:
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
    """Compute chunks of the job on standard input until none is left; returns the exit status."""
    job = HelperJob.from_json(sys.stdin.buffer.readline())
    threading.Thread(target=_leave_with_the_command, daemon=True).start()
    try:
        store = Store.open(job.warehouse, create=False)
        with job.opener.opened(store) as resource:
            for step in job.steps:
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
